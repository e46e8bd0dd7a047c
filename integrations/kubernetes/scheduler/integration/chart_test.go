package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"leeward.dev/kubernetes/clustersync"
	"leeward.dev/kubernetes/internal/service"
)

const (
	// repository is the folder of this repository.
	repository = "../../../../"
	// matrixKind is the file of the kind TrafficMatrix.
	matrixKind = repository + "packaging/helm/leeward/crds/trafficmatrices.yaml"
	// release is the namespace of the rendered charts.
	release = "network"
)

// renderedChart returns the file of a rendered chart. The tests of the chart check that it is up to date.
func renderedChart(name string) string {
	return repository + "packaging/helm/tests/rendered/" + name + ".yaml"
}

// addNamespace creates a namespace with labels. It stays: no controller here would empty it.
func addNamespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	_, err := plane.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// install applies a rendered chart, and removes it when the test ends. It returns the number of objects. The kind TrafficMatrix is not
// in the file: `helm install` and `helm template --include-crds` add it first, and so does this function.
func install(t *testing.T, chart string) int {
	t.Helper()
	addNamespace(t, release, nil)
	t.Cleanup(func() {
		if err := plane.Remove(context.Background(), renderedChart(chart)); err != nil {
			t.Error(err)
		}
	})
	if err := plane.AddKind(t.Context(), matrixKind); err != nil {
		t.Fatal(err)
	}
	count, err := plane.Apply(t.Context(), renderedChart(chart))
	if err != nil {
		t.Fatal(err)
	}
	return count
}

func TestAnApiServerAcceptsEveryObjectOfTheChart(t *testing.T) {
	for _, chart := range []string{"default", "links", "options"} {
		t.Run(chart, func(t *testing.T) {
			text, err := os.ReadFile(renderedChart(chart))
			if err != nil {
				t.Fatal(err)
			}
			if count := install(t, chart); count != strings.Count(string(text), "\nkind: ") || count < 30 {
				t.Errorf("%d objects", count)
			}
		})
	}
}

func TestAnApiServerAcceptsTheExamples(t *testing.T) {
	if err := plane.AddKind(t.Context(), matrixKind); err != nil {
		t.Fatal(err)
	}
	if count, err := plane.Validate(t.Context(), repository+"examples/kubernetes/training.yaml"); err != nil || count != 3 {
		t.Errorf("%d objects: %v", count, err)
	}
}

// The checks above would miss a wrong field otherwise.
func TestAnUnknownFieldOfAnObjectIsAnError(t *testing.T) {
	if err := plane.AddKind(t.Context(), matrixKind); err != nil {
		t.Fatal(err)
	}
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: work, image: none.invalid/none}]\n"
	const matrix = "apiVersion: leeward.dev/v1alpha1\nkind: TrafficMatrix\nmetadata: {name: m}\n" +
		"spec:\n  groups: [{name: a, pods: [p]}]\n  matrix: [[0]]\n"
	for text, field := range map[string]string{
		pod + "  securityContext: {seccompprofile: {type: RuntimeDefault}}\n": "seccompprofile",
		pod + "  hostNetwork: true\n  hostNetwork: true\n":                    "hostNetwork",
		matrix + "  colectives: []\n":                                         "colectives",
	} {
		path := filepath.Join(t.TempDir(), "objects.yaml")
		if err := os.WriteFile(path, []byte(pod+"---\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		if count, err := plane.Validate(t.Context(), path); count != 1 || err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %d objects are valid: %v", field, count, err)
		}
	}
}

// podsOfChart returns the pod template of each part.
func podsOfChart(t *testing.T) map[string]corev1.PodTemplateSpec {
	t.Helper()
	pods := map[string]corev1.PodTemplateSpec{}
	add := func(template corev1.PodTemplateSpec) { pods[template.Labels["app.kubernetes.io/component"]] = template }
	deployments, err := plane.Client.AppsV1().Deployments(release).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range deployments.Items {
		add(deployments.Items[i].Spec.Template)
	}
	sets, err := plane.Client.AppsV1().StatefulSets(release).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range sets.Items {
		template := sets.Items[i].Spec.Template
		for _, claim := range sets.Items[i].Spec.VolumeClaimTemplates {
			// As the controller of StatefulSets adds it.
			template.Spec.Volumes = append(template.Spec.Volumes, corev1.Volume{
				Name: claim.Name, VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
				},
			})
		}
		add(template)
	}
	daemons, err := plane.Client.AppsV1().DaemonSets(release).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range daemons.Items {
		add(daemons.Items[i].Spec.Template)
	}
	return pods
}

// The profile `restricted` demands a user other than root, a seccomp profile, and no capabilities. The API server enforces it.
func TestAllPodsButTheAgentsAreWithinTheRestrictedProfile(t *testing.T) {
	addNamespace(t, "restricted", map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	addNamespace(t, "privileged", map[string]string{"pod-security.kubernetes.io/enforce": "privileged"})
	const network = "host namespaces (hostNetwork=true)"
	for chart, exceptions := range map[string][]string{
		"default": {network, `restricted volume types (volume "proc" uses restricted volume type "hostPath")`},
		"links":   {network},
	} {
		t.Run(chart, func(t *testing.T) {
			install(t, chart)
			pods := podsOfChart(t)
			if len(pods) != 5 {
				t.Fatalf("%d parts have pods", len(pods))
			}
			create := func(part, namespace string) error {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: part, Labels: pods[part].Labels}, Spec: pods[part].Spec}
				_, err := plane.Client.CoreV1().Pods(namespace).Create(
					t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
				return err
			}
			for part := range pods {
				if err := create(part, "privileged"); err != nil {
					t.Errorf("%s: %v", part, err)
				}
				err := create(part, "restricted")
				if part != "agent" {
					if err != nil {
						t.Errorf("%s: %v", part, err)
					}
					continue
				}
				expected := `violates PodSecurity "restricted:latest": ` + strings.Join(exceptions, ", ")
				if err == nil || !strings.HasSuffix(err.Error(), expected) {
					t.Errorf("%s: %v, expected the exceptions %v alone", part, err, exceptions)
				}
			}
		})
	}
}

// The service reads the settings as its container has them, with the files of its volumes in another folder.
func TestTheServiceAcceptsTheSettingsOfTheChart(t *testing.T) {
	command := service.Command(t)
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, chart := range []string{"default", "options"} {
		t.Run(chart, func(t *testing.T) {
			install(t, chart)
			settings, err := plane.Client.CoreV1().ConfigMaps(release).Get(t.Context(), "leeward-controller", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir() + "/"
			paths := strings.NewReplacer("/etc/leeward/secret/", folder, "/etc/leeward/", folder, "/var/lib/leeward/", folder)
			for name, text := range map[string]string{
				"leeward.yaml": paths.Replace(settings.Data["leeward.yaml"]), "cluster.yaml": settings.Data["cluster.yaml"],
				"tokens": "read read " + strings.Repeat("0", 64) + "\n", "tls.crt": string(certificate), "tls.key": string(key),
			} {
				if err := os.WriteFile(folder+name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			arguments := append(command[1:len(command):len(command)], "--config", folder+"leeward.yaml", "--check-config")
			if output, err := exec.CommandContext(t.Context(), command[0], arguments...).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
}

// The cluster of the chart has a rack, since each cluster has one. It stays until the first node has the label of a rack.
func TestTheSyncReplacesThePlaceholderOfTheChartByNodes(t *testing.T) {
	install(t, "default")
	settings, err := plane.Client.CoreV1().ConfigMaps(release).Get(t.Context(), "leeward-controller", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.YAMLToJSON([]byte(settings.Data["cluster.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var document map[string]any
	if err := decoder.Decode(&document); err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{clustersync.RackLabels[0]: "r1"}}}
	result, err := clustersync.Plan(document, []*corev1.Node{node}, nil, clustersync.DefaultSettings())
	if err != nil {
		t.Fatal(err)
	}
	var changes []string
	for _, change := range result.Changes {
		changes = append(changes, string(change.Kind)+" "+change.Object)
	}
	if !slices.Equal(changes, []string{"add_host node-1", "remove_host placeholder"}) || len(result.Racks) != 1 || len(result.Findings) > 0 {
		t.Errorf("%v: %v, %v", changes, result.Racks, result.Findings)
	}
}
