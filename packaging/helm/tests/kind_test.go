package helm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	schemavalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"leeward.dev/kubernetes/api/v1alpha1"
)

func bufferOf(text []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(text)) }

// definition is the custom kind, as the API server has it.
type definition struct {
	internal   *apiextensions.CustomResourceDefinition
	structural *structuralschema.Structural
}

func kind(t *testing.T) *definition {
	t.Helper()
	text, err := os.ReadFile("../leeward/crds/trafficmatrices.yaml")
	if err != nil {
		t.Fatal(err)
	}
	external := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, external); err != nil {
		t.Fatal(err)
	}
	known := runtime.NewScheme()
	install.Install(known)
	known.Default(external)
	result := &definition{internal: &apiextensions.CustomResourceDefinition{}}
	if err := known.Convert(external, result.internal, nil); err != nil {
		t.Fatal(err)
	}
	result.internal.Status.StoredVersions = []string{"v1alpha1"}
	if result.structural, err = structuralschema.NewStructural(result.schema()); err != nil {
		t.Fatal(err)
	}
	return result
}

func (d *definition) schema() *apiextensions.JSONSchemaProps {
	if d.internal.Spec.Validation != nil {
		return d.internal.Spec.Validation.OpenAPIV3Schema
	}
	return d.internal.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// validate returns the problems that the API server would find in an object.
func (d *definition) validate(t *testing.T, text []byte) []string {
	t.Helper()
	encoded, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(encoded, &object); err != nil {
		t.Fatal(err)
	}
	var problems []string
	for _, path := range pruning.PruneWithOptions(object, d.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		problems = append(problems, path+": unknown field")
	}
	validator, _, err := schemavalidation.NewSchemaValidator(d.schema())
	if err != nil {
		t.Fatal(err)
	}
	all := schemavalidation.ValidateCustomResource(nil, object, validator)
	all = append(all, listtype.ValidateListSetsAndMaps(nil, d.structural, object)...)
	rules := cel.NewValidator(d.structural, true, celconfig.PerCallLimit)
	if len(all) == 0 && rules != nil {
		broken, _ := rules.Validate(t.Context(), nil, d.structural, object, nil, celconfig.RuntimeCELCostBudget)
		all = append(all, broken...)
	}
	for _, problem := range all {
		problems = append(problems, problem.Error())
	}
	return problems
}

func TestTheApiServerAcceptsTheKind(t *testing.T) {
	if problems := validation.ValidateCustomResourceDefinition(t.Context(), kind(t).internal); len(problems) > 0 {
		t.Errorf("%v", problems.ToAggregate())
	}
	if problems := structuralschema.ValidateStructural(field.NewPath("schema"), kind(t).structural); len(problems) > 0 {
		t.Errorf("%v", problems.ToAggregate())
	}
}

const head = "apiVersion: leeward.dev/v1alpha1\nkind: TrafficMatrix\nmetadata: {name: m}\nspec: "

const workers = "groups: [{name: worker, count: 4, selector: {matchLabels: {app: a}}}]"

func TestTheKindRejectsWhatIsNoApp(t *testing.T) {
	of := kind(t)
	for spec, expected := range map[string]string{
		"{" + workers + ", collectives: [{pattern: Ring, groups: [worker], bytes: 4Gi}]}":    "",
		"{" + workers + ", transfers: [{from: worker, to: worker, toIndex: 0, bytes: 500}]}": "",
		"{groups: [{name: a, pods: [p, q]}], matrix: [[0, 5M], [1Ki, 0]]}":                   "",
		"{" + workers + "}":                    "give transfers, collectives or a matrix",
		"{groups: [], matrix: []}":             "spec.groups",
		"{matrix: []}":                         "spec.groups",
		"{groups: [{name: a}], matrix: [[0]]}": "a selector or names of pods",
		"{groups: [{name: a, pods: [p], selector: {}}], matrix: [[0]]}":                                            "a selector or names of pods",
		"{groups: [{name: a, pods: [p], count: 2}], matrix: [[0]]}":                                                "the count is the number of names",
		"{groups: [{name: a, pods: [p, p]}], matrix: [[0]]}":                                                       "spec.groups[0].pods[1]",
		"{groups: [{name: A_b, pods: [p]}], matrix: [[0]]}":                                                        "spec.groups[0].name",
		"{groups: [{name: a, pods: [p]}, {name: a, pods: [q]}], matrix: [[0]]}":                                    "spec.groups[1]",
		"{" + workers + ", transfers: [{from: worker, to: store, bytes: 1}]}":                                      "from and to of a transfer are names of groups",
		"{" + workers + ", collectives: [{pattern: Ring, groups: [store], bytes: 1}]}":                             "the groups of a collective are names of groups",
		"{" + workers + ", collectives: [{pattern: Star, groups: [worker], bytes: 1}]}":                            "spec.collectives[0].pattern",
		"{" + workers + ", collectives: [{pattern: Ring, groups: [worker], bytes: \"-1\"}]}":                       "spec.collectives[0].bytes",
		"{" + workers + ", collectives: [{pattern: Ring, groups: [worker], bytes: much}]}":                         "spec.collectives[0].bytes",
		"{" + workers + ", collectives: [{pattern: Ring, groups: [worker], byte: 1, bytes: 1}]}":                   "unknown field",
		"{groups: [{name: worker, count: 0, selector: {}}], transfers: [{from: worker, to: worker, bytes: 1}]}":    "spec.groups[0].count",
		"{groups: [{name: worker, count: 1001, selector: {}}], transfers: [{from: worker, to: worker, bytes: 1}]}": "spec.groups[0].count",
	} {
		problems := strings.Join(of.validate(t, []byte(head+spec)), "\n")
		if (problems == "") != (expected == "") || !strings.Contains(problems, expected) {
			t.Errorf("%s: %s", spec, problems)
		}
	}
}

// fields returns the paths of all fields of a type in JSON.
func fields(of reflect.Type, path string) []string {
	switch {
	case of.Kind() == reflect.Pointer:
		return fields(of.Elem(), path)
	case of.Kind() == reflect.Slice:
		return fields(of.Elem(), path+"[]")
	case of.Kind() != reflect.Struct || of.String() == "resource.Quantity" || of.String() == "v1.Time":
		return []string{path}
	case of.Kind() == reflect.Map:
		return []string{path}
	}
	var result []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		result = append(result, fields(of.Field(i).Type, path+"."+name)...)
	}
	return result
}

// described returns the paths of all fields of a schema.
func described(of *structuralschema.Structural, path string) []string {
	if of.Items != nil {
		return described(of.Items, path+"[]")
	}
	if len(of.Properties) == 0 {
		return []string{path}
	}
	var result []string
	for name, property := range of.Properties {
		result = append(result, described(&property, path+"."+name)...)
	}
	return result
}

func TestTheSchemaHasTheFieldsOfTheType(t *testing.T) {
	properties := kind(t).structural.Properties
	for name, of := range map[string]reflect.Type{
		"spec":   reflect.TypeFor[v1alpha1.TrafficMatrixSpec](),
		"status": reflect.TypeFor[v1alpha1.TrafficMatrixStatus](),
	} {
		schema := properties[name]
		inSchema, inType := described(&schema, name), fields(of, name)
		slices.Sort(inSchema)
		slices.Sort(inType)
		if !slices.Equal(inSchema, inType) {
			t.Errorf("schema: %v\ntype:   %v", inSchema, inType)
		}
	}
}
