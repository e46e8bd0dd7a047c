package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"leeward.dev/kubernetes/api/v1alpha1"
	"leeward.dev/kubernetes/internal/fake"
	"leeward.dev/kubernetes/scheduler/controlplane"
	"leeward.dev/kubernetes/trafficmatrix"
)

// chooser answers the requests about apps: the hosts of the list, in the order of the tasks.
type chooser struct {
	hosts []string
	// silent is true for a controller that does not answer, and body is the text of all answers of one that lies.
	silent bool
	body   string
	mutex  sync.Mutex
	calls  []string
}

func (c *chooser) answer(writer http.ResponseWriter, request *http.Request) bool {
	if request.Method != http.MethodPost {
		return false
	}
	body, _ := io.ReadAll(request.Body)
	c.mutex.Lock()
	c.calls = append(c.calls, request.URL.Path+" "+string(body))
	c.mutex.Unlock()
	if c.silent {
		<-request.Context().Done()
		return true
	}
	writer.Header().Set("content-type", "application/json")
	if c.body != "" {
		_, _ = io.WriteString(writer, c.body)
		return true
	}
	_ = json.NewEncoder(writer).Encode(map[string]any{"results": []any{
		map[string]any{"status": 201, "decision": map[string]any{"id": "d1", "hosts": c.hosts}},
	}})
	return true
}

// called returns the bodies of the requests for a path.
func (c *chooser) called(path string) []string {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var result []string
	for _, call := range c.calls {
		if body, ok := strings.CutPrefix(call, path+" "); ok {
			result = append(result, body)
		}
	}
	return result
}

// matrices is a scene with traffic matrices.
type matrices struct {
	*scene
	chooser *chooser
	objects dynamic.ResourceInterface
}

// newMatrices starts a scheduler with the plugin, whose pods wait at most for a time. It scores a percentage of the nodes, 0 for
// its own choice. The changes change the arguments of the plugin.
func newMatrices(
	t *testing.T, wait time.Duration, nodesToScore int32, chooser *chooser, changes ...func(*trafficmatrix.Args),
) *matrices {
	t.Helper()
	m := &matrices{scene: newScene(t, interval, func(*fake.Network) {}), chooser: chooser}
	m.connect()
	m.service.Intercept(chooser.answer)
	args := &trafficmatrix.Args{Service: m.args.Service, Wait: &metav1.Duration{Duration: wait}}
	for _, change := range changes {
		change(args)
	}
	stop, err := plane.StartScheduler(t.Context(), controlplane.Scheduler{
		TrafficMatrix: args, Weight: 10, NodesToScore: nodesToScore, BeforeFirst: func(context.Context) {
			// The plugin requests a difference once it has the first snapshot.
			eventually(t, "no snapshot", func() bool { return m.service.Requests() > 1 })
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return m
}

// connect adds the kind to the API server, and connects to its objects.
func (m *matrices) connect() {
	m.t.Helper()
	if err := plane.AddKind(m.t.Context(), matrixKind); err != nil {
		m.t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(plane.Config)
	if err != nil {
		m.t.Fatal(err)
	}
	m.objects = client.Resource(v1alpha1.Resource).Namespace(metav1.NamespaceDefault)
}

// ring creates a matrix in which a number of pods send in a ring.
func (m *matrices) ring(name string, count int32) {
	m.t.Helper()
	m.create(name, v1alpha1.TrafficMatrixSpec{
		Groups: []v1alpha1.Group{{
			Name: "worker", Count: count, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		}},
		Collectives: []v1alpha1.Collective{{Pattern: v1alpha1.Ring, Groups: []string{"worker"}, Bytes: resource.MustParse("1Gi")}},
	})
}

// create creates a matrix, and waits until the plugin knows it.
func (m *matrices) create(name string, spec v1alpha1.TrafficMatrixSpec) {
	m.t.Helper()
	m.createAny(name, spec)
	eventually(m.t, "the plugin does not know the matrix", func() bool { return m.reason(name, v1alpha1.ConditionValid) == "Valid" })
}

// createAny creates a matrix, which may be no app.
func (m *matrices) createAny(name string, spec v1alpha1.TrafficMatrixSpec) {
	m.t.Helper()
	matrix := &v1alpha1.TrafficMatrix{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(matrix)
	if err != nil {
		m.t.Fatal(err)
	}
	unstructured.RemoveNestedField(object, "status")
	created := &unstructured.Unstructured{Object: object}
	if _, err := m.objects.Create(m.t.Context(), created, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		if err := m.objects.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			m.t.Error(err)
		}
	})
}

// status returns the status of a matrix.
func (m *matrices) status(name string) v1alpha1.TrafficMatrixStatus {
	m.t.Helper()
	object, err := m.objects.Get(m.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	matrix := &v1alpha1.TrafficMatrix{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, matrix); err != nil {
		m.t.Fatal(err)
	}
	return matrix.Status
}

// reason returns the reason of a condition of a matrix.
func (m *matrices) reason(name, condition string) string {
	m.t.Helper()
	for _, each := range m.status(name).Conditions {
		if each.Type == condition {
			return each.Reason
		}
	}
	return ""
}

// add adds pods of an app, numbered from first, each as the changes make it.
func (m *matrices) add(app string, first, count int, changes ...func(*corev1.Pod)) {
	m.t.Helper()
	for index := first; index < first+count; index++ {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", app, index), Labels: map[string]string{
				"app": app, "batch.kubernetes.io/job-completion-index": fmt.Sprint(index),
			}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "work", Image: "none.invalid/none"}}},
		}
		for _, change := range changes {
			change(pod)
		}
		if _, err := plane.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(m.t.Context(), pod, metav1.CreateOptions{}); err != nil {
			m.t.Fatal(err)
		}
	}
	m.pods += count
}

// awaitBound waits until all pods are bound, and returns their nodes in the order of their numbers.
func (m *matrices) awaitBound(app string) []string {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	if err := m.bindings.Wait(ctx, m.pods); err != nil {
		m.t.Fatal(err)
	}
	bound := m.bindings.Nodes()
	nodes := make([]string, m.pods)
	for index := range nodes {
		nodes[index] = bound[fmt.Sprintf("%s-%d", app, index)]
	}
	return nodes
}

func TestAnAppIsPlacedOnTheHostsOfTheController(t *testing.T) {
	chooser := &chooser{}
	for index := range 16 {
		// Hosts of two racks, which the scheduler would not choose together by itself.
		chooser.hosts = append(chooser.hosts, fmt.Sprintf("r%dh%d", 7+10*(index/8), index%8))
	}
	m := newMatrices(t, 30*time.Second, 0, chooser)
	m.ring("ring", 16)
	m.add("ring", 0, 15)
	time.Sleep(300 * time.Millisecond)
	if m.bindings.Len() != 0 || len(chooser.called("/v1/place/batch")) != 0 {
		t.Errorf("%d pods are bound before the last one comes", m.bindings.Len())
	}
	m.add("ring", 15, 1)
	if nodes := m.awaitBound("ring"); !slices.Equal(nodes, chooser.hosts) {
		t.Errorf("%v: expected %v", nodes, chooser.hosts)
	}
	if asked := chooser.called("/v1/place/batch"); len(asked) != 1 || strings.Contains(asked[0], "exclude") {
		t.Errorf("asked: %v", asked)
	}
	eventually(t, "the decision is not confirmed", func() bool { return len(chooser.called("/v1/decisions/d1/confirm")) == 1 })
	eventually(t, "the status does not say so", func() bool { return m.reason("ring", v1alpha1.ConditionComplete) == "Bound" })
	if reason := m.reason("ring", v1alpha1.ConditionPlaced); reason != "Chosen" {
		t.Errorf("placed: %s", reason)
	}
	if err := plane.DeletePods(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the decision is not released", func() bool { return len(chooser.called("/v1/release")) == 1 })
}

func TestAPodThatCannotHaveItsHostGoesNearItsPeers(t *testing.T) {
	chooser := &chooser{hosts: []string{"r3h0", "r3h1", "r3h2", "r9h7"}}
	m := newMatrices(t, 30*time.Second, 100, chooser)
	// The plugin leaves out this host, and the controller chooses it all the same.
	cordon(t, "r9h7", true)
	t.Cleanup(func() { cordon(t, "r9h7", false) })
	// The links of the peers' rack have little room, so a node outside is slower.
	m.service.Change(func(network *fake.Network) {
		for _, direction := range []string{"uplink", "downlink"} {
			network.Link("r3:" + direction).Measured = 39_900_000_000
		}
	})
	time.Sleep(2 * time.Second)
	m.ring("near", 4)
	m.add("near", 0, 4)
	nodes := m.awaitBound("near")
	if !slices.Equal(nodes[:3], chooser.hosts[:3]) || m.rackOf[nodes[3]] != "r3" {
		t.Errorf("%v", nodes)
	}
	if asked := chooser.called("/v1/place/batch"); len(asked) != 1 || !strings.Contains(asked[0], `"exclude":["r9h7"]`) {
		t.Errorf("asked: %v", asked)
	}
	eventually(t, "the nodes are not committed", func() bool { return len(chooser.called("/v1/commitments/batch")) == 1 })
}

// gang creates a group of pods that start together, and returns the change by which a pod joins it.
func gang(t *testing.T, count int32) func(*corev1.Pod) {
	t.Helper()
	group := &schedulingv1alpha2.PodGroup{
		// A repeated test would meet the name of a group that is still being deleted.
		ObjectMeta: metav1.ObjectMeta{GenerateName: "gang-"},
		Spec: schedulingv1alpha2.PodGroupSpec{SchedulingPolicy: schedulingv1alpha2.PodGroupSchedulingPolicy{
			Gang: &schedulingv1alpha2.GangSchedulingPolicy{MinCount: count},
		}},
	}
	groups := plane.Client.SchedulingV1alpha2().PodGroups(metav1.NamespaceDefault)
	group, err := groups.Create(t.Context(), group, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := groups.Delete(context.Background(), group.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return func(pod *corev1.Pod) {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group.Name}
	}
}

func TestAGangIsPlacedOnTheHostsOfTheController(t *testing.T) {
	chooser := &chooser{}
	for index := range 8 {
		chooser.hosts = append(chooser.hosts, fmt.Sprintf("r12h%d", index))
	}
	m := newMatrices(t, 30*time.Second, 0, chooser)
	m.ring("gang", 8)
	m.add("gang", 0, 8, gang(t, 8))
	if nodes := m.awaitBound("gang"); !slices.Equal(nodes, chooser.hosts) {
		t.Errorf("%v: expected %v; cycles without a node: %q", nodes, chooser.hosts, m.events("FailedScheduling", "gang-"))
	}
	if asked := chooser.called("/v1/place/batch"); len(asked) != 1 {
		t.Errorf("asked: %v", asked)
	}
}

func TestASilentControllerDelaysAnAppByTheWaitAndNoOtherPod(t *testing.T) {
	m := newMatrices(t, 3*time.Second, 0, &chooser{silent: true})
	m.ring("slow", 4)
	start := time.Now()
	m.add("slow", 0, 4)
	m.add("other", 4, 1)
	var nodes map[string]string
	eventually(t, "a pod without a matrix has no node", func() bool {
		nodes = m.bindings.Nodes()
		return nodes["other-4"] != ""
	})
	if nodes["slow-0"] != "" {
		t.Error("a pod without a matrix waits as long as those of the app")
	}
	m.awaitBound("slow")
	if waited := time.Since(start); waited < 2*time.Second || waited > 10*time.Second {
		t.Errorf("the app waits for %v", waited)
	}
	if reason := m.reason("slow", v1alpha1.ConditionPlaced); reason != "Late" && reason != "Unavailable" {
		t.Errorf("placed: %s", reason)
	}
}

// Hosts of another cluster, too few hosts and garbage are no answer, so the pods go where the scheduler finds room.
func TestAControllerThatLiesDelaysAnAppByTheWaitAtMost(t *testing.T) {
	for name, chooser := range map[string]*chooser{
		"other-cluster": {hosts: []string{"x0h0", "x0h1", "x0h2", "x0h3"}},
		"few-hosts":     {hosts: []string{"r3h0"}},
		"garbage":       {body: `{"results": [{"status": 201, "decision": {"id": 7, "hosts": "r3h0"}}, [`},
		"endless":       {body: strings.Repeat("[", 1<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			onlyWithShort(t, name, "garbage")
			m := newMatrices(t, 3*time.Second, 0, chooser)
			m.ring(name, 4)
			start := time.Now()
			m.add(name, 0, 4)
			m.awaitBound(name)
			if waited := time.Since(start); waited > 10*time.Second {
				t.Errorf("the app waits for %v", waited)
			}
			if name != "other-cluster" {
				eventually(t, "the status does not say that there are no hosts", func() bool {
					return slices.Contains([]string{"Rejected", "Refused", "Unavailable", "Late"}, m.reason(name, v1alpha1.ConditionPlaced))
				})
			}
		})
	}
}

func TestMissingPodsAreOneEventOnTheMatrix(t *testing.T) {
	m := newMatrices(t, time.Second, 0, &chooser{})
	m.ring("short", 4)
	m.add("short", 0, 3)
	m.awaitBound("short")
	eventually(t, "no event", func() bool { return len(m.events("MissingPods", "short")) > 0 })
	if notes := m.events("MissingPods", "short"); len(notes) != 1 || notes[0] != "worker: 3 of 4 pods" {
		t.Errorf("%v", notes)
	}
	if reason := m.reason("short", v1alpha1.ConditionComplete); reason != "MissingPods" {
		t.Errorf("complete: %s", reason)
	}
}
