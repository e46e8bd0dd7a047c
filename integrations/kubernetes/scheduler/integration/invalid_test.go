package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"leeward.dev/kubernetes/api/v1alpha1"
	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/internal/service"
	"leeward.dev/kubernetes/scheduler/controlplane"
	"leeward.dev/kubernetes/snapshot"
	"leeward.dev/kubernetes/trafficmatrix"
)

// Invalid input of each kind has one event on its object, counts in a metric, and is a line of `kubectl leeward check`. All pods of
// these tests get a node.

// expectLine checks that the check fails with a line that has some words.
func expectLine(t *testing.T, address string, words ...string) {
	t.Helper()
	code, text := ask(t, address, "check")
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	for _, line := range strings.Split(text, "\n") {
		missing := false
		for _, word := range words {
			missing = missing || !strings.Contains(line, word)
		}
		if !missing {
			return
		}
	}
	t.Errorf("no line with %q:\n%s", words, text)
}

func TestAnAnnotationThatIsNoQuantityIsAnEventAMetricAndALineOfTheCheck(t *testing.T) {
	s := newScene(t, interval, hot(0))
	s.start(s.args)
	before := metric(t, "leeward_invalid_annotations_total", demand.PeakEgress)
	s.place("invalid", 5, "fast")
	eventually(t, "not every pod has one event", func() bool { return len(s.events("InvalidNetworkAnnotation", "invalid-")) == 5 })
	if count := metric(t, "leeward_invalid_annotations_total", demand.PeakEgress) - before; count != 5 {
		t.Errorf("%v pods count", count)
	}
	expectLine(t, s.args.Controllers[0], "wrong", "invalid-3", `annotation leeward.dev/peak-egress: "fast"`)
}

func TestAMatrixWithNamesOfNoPodsIsAnEventAMetricAndALineOfTheCheck(t *testing.T) {
	m := newMatrices(t, time.Second, 0, &chooser{})
	before := metric(t, "leeward_matrix_apps_total", "Incomplete")
	m.create("named", v1alpha1.TrafficMatrixSpec{
		Groups:    []v1alpha1.Group{{Name: "worker", Pods: []string{"named-0", "named-1"}}, {Name: "store", Pods: []string{"no-such-pod"}}},
		Transfers: []v1alpha1.Transfer{{From: "worker", To: "store", Bytes: resource.MustParse("1Gi")}},
	})
	m.add("named", 0, 2)
	m.awaitBound("named")
	eventually(t, "no event", func() bool { return len(m.events("MissingPods", "named")) > 0 })
	if notes := m.events("MissingPods", "named"); len(notes) != 1 || notes[0] != "store: 0 of 1 pods" {
		t.Errorf("%v", notes)
	}
	eventually(t, "it does not count", func() bool { return metric(t, "leeward_matrix_apps_total", "Incomplete") == before+1 })
	expectLine(t, m.args.Controllers[0], "wrong", "matrix", "default/named: pods are missing: store: 0 of 1 pods")
}

func TestAMatrixThatNoPodBelongsToIsAnEventAMetricAndALineOfTheCheck(t *testing.T) {
	m := newMatrices(t, time.Second, 0, &chooser{}, func(args *trafficmatrix.Args) {
		args.Absence = &metav1.Duration{Duration: time.Second}
	})
	before := metric(t, "leeward_matrix_apps_total", "NoPods")
	m.ring("typo", 2)
	m.add("other", 0, 2)
	m.awaitBound("other")
	eventually(t, "no event", func() bool { return len(m.events("NoPods", "typo")) > 0 })
	if notes := m.events("NoPods", "typo"); len(notes) != 1 || notes[0] != "no pod matches its groups: worker: check selectors and names" {
		t.Errorf("%v", notes)
	}
	if count := metric(t, "leeward_matrix_apps_total", "NoPods") - before; count != 1 {
		t.Errorf("it counts %v times", count)
	}
	eventually(t, "the status does not say so", func() bool { return m.reason("typo", v1alpha1.ConditionComplete) == "NoPods" })
	expectLine(t, m.args.Controllers[0], "wrong", "matrix", "default/typo: no pod matches its groups: worker")
	m.add("typo", 0, 1)
	m.awaitBound("typo")
	eventually(t, "the status does not say that a pod has come", func() bool {
		return m.reason("typo", v1alpha1.ConditionComplete) == "MissingPods"
	})
}

func TestAMatrixThatIsNoAppIsAnEventAMetricAndALineOfTheCheck(t *testing.T) {
	m := newMatrices(t, 30*time.Second, 0, &chooser{})
	before := metric(t, "leeward_matrix_apps_total", "InvalidMatrix")
	// The API server cannot know that the rows do not fit the pods.
	m.createAny("odd", v1alpha1.TrafficMatrixSpec{
		Groups: []v1alpha1.Group{{Name: "worker", Pods: []string{"odd-0", "odd-1"}}},
		Matrix: [][]resource.Quantity{{resource.MustParse("0")}},
	})
	eventually(t, "the plugin does not know the matrix", func() bool { return m.reason("odd", v1alpha1.ConditionValid) == "InvalidMatrix" })
	m.add("odd", 0, 2)
	m.awaitBound("odd")
	eventually(t, "not one event", func() bool { return len(m.events("InvalidMatrix", "odd")) == 1 })
	if count := metric(t, "leeward_matrix_apps_total", "InvalidMatrix") - before; count != 1 {
		t.Errorf("it counts %v times", count)
	}
	expectLine(t, m.args.Controllers[0], "wrong", "matrix", "default/odd: ", "matrix")
}

// relabel sets the label of a node with its rack; null removes it.
func relabel(t *testing.T, node, rack string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata": {"labels": {%q: %s}}}`, controlplane.RackLabel, rack)
	_, err := plane.Client.CoreV1().Nodes().Patch(context.Background(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Error(err)
	}
}

func TestNodesWithoutARackOrInAnotherAreEventsMetricsAndLinesOfTheCheck(t *testing.T) {
	beyondShort(t)
	cluster := fmt.Sprintf("racks: %d\nhosts_per_rack: %d\nnic: 10Gbps\nrack_link: 40Gbps\n", racks, rackSize)
	address := service.Start(t, cluster)
	client, err := httpapi.New(snapshot.Settings{Controllers: []string{address}}, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	reports, err := snapshot.NewClient(snapshot.Settings{Controllers: []string{address}, Deadline: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	reportHot(t, reports, 0)
	// The service has both hosts in r6, and does not have the node `bare`.
	relabel(t, "r6h1", "null")
	relabel(t, "r6h2", `"r9"`)
	t.Cleanup(func() { relabel(t, "r6h1", `"r6"`); relabel(t, "r6h2", `"r6"`) })
	if err := plane.AddNode(t.Context(), "bare", "", podsOfNode); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Client.CoreV1().Nodes().Delete(context.Background(), "bare", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	s := newSceneAt(t, address)
	s.start(s.args)
	syncer, nodes, registry := newSyncer(t, client)
	eventually(t, "the informer does not see the nodes", func() bool {
		_, err := nodes.Get("bare")
		return err == nil
	})
	for range 2 {
		if remaining := syncer.Step(t.Context(), time.Now()); len(remaining) != 3 {
			t.Errorf("%+v", remaining)
		}
	}
	for _, expected := range []struct {
		kind, reason, node string
		count              float64
	}{
		{"no_rack_label", "LeewardNoRackLabel", "bare", 2}, {"no_rack_label", "LeewardNoRackLabel", "r6h1", 2},
		{"other_rack", "LeewardOtherRack", "r6h2", 1},
	} {
		eventually(t, expected.reason+": not one event", func() bool { return len(eventsOf(t, expected.reason, expected.node)) == 1 })
		if count := metricIn(t, registry, "leeward_sync_differences", expected.kind); count != expected.count {
			t.Errorf("%s: %v", expected.kind, count)
		}
		expectLine(t, address, "wrong", expected.kind, expected.node)
	}
	// The scheduler looks at the nodes every ten seconds.
	eventually(t, "the scheduler does not name the node", func() bool {
		return len(eventsOf(t, "UnknownToLeeward", "bare")) == 1 && metric(t, "leeward_unknown_nodes", "") == 1
	})
	ranked := metric(t, "leeward_pods_total", "ranked")
	s.place("goes-on", 100, "100M")
	if count := metric(t, "leeward_pods_total", "ranked") - ranked; count < 100 {
		t.Errorf("%v pods were ranked", count)
	}
	// The node that the service does not know is a node like the others.
	only := map[string]string{corev1.LabelHostname: "bare"}
	_, err = plane.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "on-bare", Annotations: map[string]string{demand.PeakEgress: "100M"}},
		Spec:       corev1.PodSpec{NodeSelector: only, Containers: []corev1.Container{{Name: "work", Image: "none.invalid/none"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "a pod does not get the node", func() bool { return s.bindings.Nodes()["on-bare"] == "bare" })
}

func TestAControllerOfAnotherClusterIsAnEventAMetricAndALineOfTheCheck(t *testing.T) {
	address := service.Start(t, "racks: 3\nhosts_per_rack: 4\nnic: 10Gbps\nrack_link: 40Gbps\n")
	reports, err := snapshot.NewClient(snapshot.Settings{Controllers: []string{address}, Deadline: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	reportRacks(t, reports, 3, 0)
	s := newSceneAt(t, address)
	before := metric(t, "leeward_pods_total", "other_cluster")
	s.start(s.args)
	s.place("foreign", 50, "100M")
	if count := metric(t, "leeward_pods_total", "other_cluster") - before; count != 50 {
		t.Errorf("%v pods count", count)
	}
	eventually(t, "not one event", func() bool { return len(s.events("NetworkUnavailable", "foreign-")) == 1 })
	if notes := s.events("NetworkUnavailable", "foreign-"); !strings.Contains(notes[0], "(other_cluster): the service knows fewer than half of the nodes") {
		t.Errorf("%v", notes)
	}
	expectLine(t, address, "add_host", fmt.Sprintf("... %d more", racks*rackSize-12-10))
}
