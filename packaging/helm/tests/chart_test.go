// Package helm tests the Helm chart without a cluster: it is linted and rendered by Helm's own library, each object is decoded
// strictly, and the custom kind is checked by the code of the API server.
package helm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	schedulerconfig "k8s.io/kube-scheduler/config/v1"
)

const chart = "../leeward"

// parts are the parts of the chart that have pods.
var parts = []string{"agent", "controller", "evictor", "scheduler", "sync"}

// files renders the chart with values.
func files(t *testing.T, values string) map[string]string {
	t.Helper()
	rendered, err := render(values)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

// localImages are images that no registry has. Values that say nothing about images have these.
var localImages = map[string]any{"onNodes": true}

func render(values string) (map[string]string, error) { return renderBeside(nil, values) }

// renderBeside renders the chart with values, beside the objects of a cluster; nil for an empty one.
func renderBeside(cluster engine.ClientProvider, values string) (map[string]string, error) {
	loaded, err := loader.Load(chart)
	if err != nil {
		return nil, err
	}
	given, err := common.ReadValues([]byte(values))
	if err != nil {
		return nil, err
	}
	if _, ok := given["image"]; !ok {
		given["image"] = maps.Clone(localImages)
	}
	all, err := util.ToRenderValues(loaded, given, common.ReleaseOptions{
		Name: "leeward", Namespace: "network", Revision: 1, IsInstall: true,
	}, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	if cluster != nil {
		return engine.RenderWithClientProvider(loaded, all, cluster)
	}
	return engine.Render(loaded, all)
}

// objects returns all rendered objects. An unknown field is an error, as with `kubectl apply --validate=strict`.
func objects(t *testing.T, values string) []runtime.Object {
	t.Helper()
	return decode(t, files(t, values))
}

// decode returns the objects in rendered files.
func decode(t *testing.T, rendered map[string]string) []runtime.Object {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var result []runtime.Object
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for _, document := range documents(t, []byte(rendered[name])) {
			object, _, err := decoder.Decode(document, nil, nil)
			if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, document)
			}
			result = append(result, object)
		}
	}
	return result
}

// documents returns the documents of a file that have more than comments.
func documents(t *testing.T, text []byte) [][]byte {
	t.Helper()
	reader := utilyaml.NewYAMLReader(bufferOf(text))
	var result [][]byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return result
		}
		if err != nil {
			t.Fatal(err)
		}
		if hasContent(document) {
			result = append(result, document)
		}
	}
}

func hasContent(document []byte) bool {
	for line := range bytes.Lines(document) {
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' && string(text) != "---" {
			return true
		}
	}
	return false
}

// of returns the objects of a type by their names.
func of[T interface {
	runtime.Object
	metav1.Object
}](all []runtime.Object) map[string]T {
	result := map[string]T{}
	for _, object := range all {
		if typed, ok := object.(T); ok {
			result[typed.GetName()] = typed
		}
	}
	return result
}

// templates returns the pod template of each part.
func templates(all []runtime.Object) map[string]corev1.PodTemplateSpec {
	result := map[string]corev1.PodTemplateSpec{}
	for _, object := range all {
		var template corev1.PodTemplateSpec
		switch workload := object.(type) {
		case *appsv1.Deployment:
			template = workload.Spec.Template
		case *appsv1.StatefulSet:
			template = workload.Spec.Template
		case *appsv1.DaemonSet:
			template = workload.Spec.Template
		default:
			continue
		}
		result[template.Labels["app.kubernetes.io/component"]] = template
	}
	return result
}

func TestHelmFindsNothingToCriticize(t *testing.T) {
	for _, message := range lint.RunAll(chart, map[string]any{}, "network").Messages {
		// A chart of this repository has no icon.
		if !strings.Contains(message.Error(), "icon is recommended") {
			t.Errorf("%s", message.Error())
		}
	}
}

func TestEveryPartHasPods(t *testing.T) {
	if found := slices.Sorted(maps.Keys(templates(objects(t, "")))); !slices.Equal(found, parts) {
		t.Errorf("%v", found)
	}
	none := "{agent: {enabled: false}, scheduler: {enabled: false}, evictor: {enabled: false}, sync: {enabled: false}}"
	if found := slices.Sorted(maps.Keys(templates(objects(t, none)))); !slices.Equal(found, []string{"controller"}) {
		t.Errorf("%v", found)
	}
}

func TestNoContainerHasMorePowersThanItNeeds(t *testing.T) {
	for part, template := range templates(objects(t, "")) {
		spec := template.Spec
		if spec.HostNetwork != (part == "agent") || spec.HostPID || spec.HostIPC {
			t.Errorf("%s: %+v", part, spec)
		}
		security := spec.SecurityContext
		if !*security.RunAsNonRoot || *security.RunAsUser == 0 || security.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: %+v", part, security)
		}
		for _, container := range spec.Containers {
			security := container.SecurityContext
			if *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem || security.Privileged != nil ||
				fmt.Sprint(security.Capabilities.Drop) != "[ALL]" || len(security.Capabilities.Add) > 0 {
				t.Errorf("%s: %+v", part, security)
			}
			if container.Resources.Requests.Cpu().IsZero() || container.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: %+v", part, container.Resources)
			}
			// The agent serves nothing.
			if hasProbes := container.LivenessProbe != nil && container.ReadinessProbe != nil; hasProbes == (part == "agent") {
				t.Errorf("%s: probes: %v", part, hasProbes)
			}
		}
		for _, volume := range spec.Volumes {
			if volume.HostPath != nil && (part != "agent" || volume.HostPath.Path != "/proc") {
				t.Errorf("%s: %s is a folder of the node", part, volume.Name)
			}
		}
		needsAPI := part != "agent" && part != "controller"
		if automounts := spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken; automounts != needsAPI {
			t.Errorf("%s: has a token of the API server: %v", part, automounts)
		}
	}
}

// rules returns the rules that the chart grants to a part, each as group/resource:verb, for all namespaces or for its own.
func rules(all []runtime.Object, part string) (cluster, own []string) {
	flat := func(rules []rbacv1.PolicyRule) []string {
		var result []string
		for _, rule := range rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					result = append(result, fmt.Sprintf("%s/%s:%s", rule.APIGroups[0], resource, verb))
				}
			}
		}
		slices.Sort(result)
		return result
	}
	if role := of[*rbacv1.ClusterRole](all)["network-leeward-"+part]; role != nil {
		cluster = flat(role.Rules)
	}
	if role := of[*rbacv1.Role](all)["leeward-"+part]; role != nil {
		own = flat(role.Rules)
	}
	return cluster, own
}

func TestRolesHaveOnlyWhatIsUsed(t *testing.T) {
	all := objects(t, "")
	lease := []string{"coordination.k8s.io/leases:create", "coordination.k8s.io/leases:get", "coordination.k8s.io/leases:update"}
	events := []string{"events.k8s.io/events:create", "events.k8s.io/events:patch"}
	nodes := []string{"/nodes:list", "/nodes:watch"}
	pods := []string{"/pods:list", "/pods:watch"}
	budgets := []string{"policy/poddisruptionbudgets:list", "policy/poddisruptionbudgets:watch"}
	for part, expected := range map[string][2][]string{
		"agent": {}, "controller": {},
		"scheduler": {{"leeward.dev/trafficmatrices/status:patch", "leeward.dev/trafficmatrices:list", "leeward.dev/trafficmatrices:watch"}, lease},
		"evictor":   {slices.Concat(nodes, pods, events, budgets), lease},
		"sync":      {slices.Concat(nodes, events), lease},
	} {
		cluster, own := rules(all, part)
		if !slices.Equal(cluster, expected[0]) || !slices.Equal(own, expected[1]) {
			t.Errorf("%s: %v, %v", part, cluster, own)
		}
	}
	cluster, own := rules(objects(t, "{evictor: {mode: evict}}"), "evictor")
	if !slices.Contains(cluster, "/pods/eviction:create") || !slices.Contains(own, "/configmaps:update") {
		t.Errorf("%v, %v", cluster, own)
	}
	var bound []string
	for _, binding := range of[*rbacv1.ClusterRoleBinding](all) {
		bound = append(bound, binding.Subjects[0].Name+"="+binding.RoleRef.Name)
	}
	slices.Sort(bound)
	if fmt.Sprint(bound) != "[leeward-evictor=network-leeward-evictor leeward-scheduler=network-leeward-scheduler "+
		"leeward-scheduler=system:kube-scheduler leeward-scheduler=system:volume-scheduler leeward-sync=network-leeward-sync]" {
		t.Errorf("%v", bound)
	}
}

func TestSelectorsMatchThePodsOfTheirPart(t *testing.T) {
	all := objects(t, "")
	pods := templates(all)
	check := func(kind, part string, selector map[string]string) {
		t.Helper()
		for other, template := range pods {
			matches := true
			for label, value := range selector {
				matches = matches && template.Labels[label] == value
			}
			if matches != (other == part) {
				t.Errorf("%s of %s matches %s: %v", kind, part, other, matches)
			}
		}
	}
	policies, budgets := of[*networkingv1.NetworkPolicy](all), of[*policyv1.PodDisruptionBudget](all)
	for _, part := range parts {
		if part == "agent" {
			// Policies do not hold in the network of the node, and each node has one agent.
			continue
		}
		if policy, ok := policies["leeward-"+part]; ok {
			check("policy", part, policy.Spec.PodSelector.MatchLabels)
			if len(policy.Spec.PolicyTypes) != 2 {
				t.Errorf("%s: %v", part, policy.Spec.PolicyTypes)
			}
		} else {
			t.Errorf("%s has no policy", part)
		}
		if budget, ok := budgets["leeward-"+part]; ok {
			check("budget", part, budget.Spec.Selector.MatchLabels)
		} else {
			t.Errorf("%s has no budget", part)
		}
	}
	check("service", "controller", of[*corev1.Service](all)["leeward-controller"].Spec.Selector)
	if len(policies["leeward-controller"].Spec.Egress) != 0 || len(policies["leeward-controller"].Spec.Ingress[0].From) != 0 {
		t.Errorf("%+v", policies["leeward-controller"].Spec)
	}
	closed := of[*networkingv1.NetworkPolicy](objects(t, "{networkPolicy: {nodeCIDRs: [10.0.0.0/8]}}"))["leeward-controller"]
	if len(closed.Spec.Ingress[0].From) != 2 {
		t.Errorf("%+v", closed.Spec.Ingress)
	}
}

func TestUsersOfANamespaceMayHaveTrafficMatrices(t *testing.T) {
	roles := of[*rbacv1.ClusterRole](objects(t, ""))
	const to = "rbac.authorization.k8s.io/aggregate-to-"
	for name, expected := range map[string]struct {
		labels []string
		verbs  string
	}{
		"view": {[]string{to + "view"}, "[get list watch]"},
		"edit": {[]string{to + "admin", to + "edit"}, "[get list watch create update patch delete deletecollection]"},
	} {
		role := roles["network-leeward-matrices-"+name]
		var labels []string
		for label, value := range role.Labels {
			if strings.HasPrefix(label, to) && value == "true" {
				labels = append(labels, label)
			}
		}
		slices.Sort(labels)
		if len(role.Rules) != 1 || fmt.Sprint(role.Rules[0].Verbs) != expected.verbs || !slices.Equal(labels, expected.labels) ||
			fmt.Sprint(role.Rules[0].APIGroups, role.Rules[0].Resources) != "[leeward.dev] [trafficmatrices]" {
			t.Errorf("%s: %v, %+v", name, labels, role.Rules)
		}
	}
}

func TestHelmInstallsTheKindOfTheMatrices(t *testing.T) {
	loaded, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	kinds := loaded.CRDObjects()
	if len(kinds) != 1 || !bytes.Contains(kinds[0].File.Data, []byte("name: trafficmatrices.leeward.dev")) {
		t.Errorf("%d kinds", len(kinds))
	}
}

func TestTheFileOfTokensHasTheTokensOfAllParts(t *testing.T) {
	secret := of[*corev1.Secret](objects(t, ""))["leeward-tokens"]
	roles := map[string]string{"scheduler": "place", "agent": "report", "evictor": "place", "sync": "admin", "read": "read"}
	lines := strings.Split(strings.TrimSpace(secret.StringData["tokens"]), "\n")
	if len(lines) != len(roles) {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		words := strings.Fields(line)
		hash := sha256.Sum256([]byte(secret.StringData[words[0]]))
		if len(words) != 3 || roles[words[0]] != words[1] || hex.EncodeToString(hash[:]) != words[2] {
			t.Errorf("%s", line)
		}
		if !strings.HasPrefix(secret.StringData[words[0]], "leeward_") || len(secret.StringData[words[0]]) < 64 {
			t.Errorf("%s: a short token", words[0])
		}
	}
	if _, ok := of[*corev1.Secret](objects(t, "{tokens: {existingSecret: mine}}"))["leeward-tokens"]; ok {
		t.Error("a Secret beside the existing one")
	}
}

func TestEachPartHasOneTokenAndTheAuthorityOfTheController(t *testing.T) {
	for part, template := range templates(objects(t, "")) {
		var keys []string
		for _, volume := range template.Spec.Volumes {
			if volume.Projected == nil {
				continue
			}
			for _, source := range volume.Projected.Sources {
				for _, item := range source.Secret.Items {
					keys = append(keys, item.Key)
				}
			}
		}
		expected := part + " ca.crt"
		if part == "controller" {
			expected = "tokens tls.crt tls.key"
		}
		if strings.Join(keys, " ") != expected {
			t.Errorf("%s: %v", part, keys)
		}
	}
	for part, template := range templates(objects(t, "{tls: {mode: none}}")) {
		text := fmt.Sprint(template.Spec)
		if strings.Contains(text, "ca.crt") || strings.Contains(text, "https://leeward-controller") {
			t.Errorf("%s: TLS although the mode is none", part)
		}
	}
}

// configurationOf returns the configuration of the scheduler.
func configurationOf(t *testing.T, values string) *schedulerconfig.KubeSchedulerConfiguration {
	t.Helper()
	configuration := &schedulerconfig.KubeSchedulerConfiguration{}
	text := of[*corev1.ConfigMap](objects(t, values))["leeward-scheduler"].Data["scheduler.yaml"]
	known := runtime.NewScheme()
	if err := schedulerconfig.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	if _, _, err := decoder.Decode([]byte(text), nil, configuration); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return configuration
}

func TestTheSchedulerHasBothPluginsWithValidArguments(t *testing.T) {
	configuration := configurationOf(t, "")
	profile := configuration.Profiles[0]
	if *profile.SchedulerName != "leeward-scheduler" || len(profile.Plugins.MultiPoint.Enabled) != 2 || len(profile.PluginConfig) != 2 {
		t.Errorf("%+v", profile)
	}
	for _, plugin := range profile.PluginConfig {
		if args := string(plugin.Args.Raw); !strings.Contains(args, `"controllers":["https://leeward-controller.network.svc:7600"]`) {
			t.Errorf("%s: %s", plugin.Name, args)
		}
	}
	if *configuration.LeaderElection.LeaderElect != true || configuration.LeaderElection.ResourceName != "leeward-scheduler" {
		t.Errorf("%+v", configuration.LeaderElection)
	}
	if configuration.PercentageOfNodesToScore != nil {
		t.Errorf("%d", *configuration.PercentageOfNodesToScore)
	}
}

func TestTheExamplesAreValidObjects(t *testing.T) {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	paths, err := filepath.Glob("../../../examples/kubernetes/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v, %v", paths, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range documents(t, text) {
			if bytes.Contains(document, []byte("kind: TrafficMatrix")) {
				if problems := kind(t).validate(t, document); len(problems) > 0 {
					t.Errorf("%s: %v", path, problems)
				}
			} else if _, _, err := decoder.Decode(document, nil, nil); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}
