package trafficmatrix

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"leeward.dev/kubernetes/api/v1alpha1"
	network "leeward.dev/kubernetes/internal/fake"
	"leeward.dev/kubernetes/placements"
)

// handle is the part of the scheduler that the plugin uses. Its queue gates pods as that of kube-scheduler does: under a lock
// while PreEnqueue runs.
type handle struct {
	fwk.Handle
	client   *fake.Clientset
	factory  informers.SharedInformerFactory
	recorder *events.FakeRecorder
	plugin   fwk.PreEnqueuePlugin

	mutex sync.Mutex
	gated map[string]*corev1.Pod
	gone  map[string]time.Time
}

func (h *handle) ClientSet() clientset.Interface                         { return h.client }
func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.factory }
func (h *handle) EventRecorder() events.EventRecorderLogger              { return h.recorder }
func (h *handle) ProfileName() string                                    { return profile }

// add adds a pod to the queue.
func (h *handle) add(pod *corev1.Pod) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.enqueue(pod)
}

func (h *handle) enqueue(pod *corev1.Pod) {
	if h.plugin.PreEnqueue(context.Background(), pod).IsSuccess() {
		delete(h.gated, pod.Name)
		h.gone[pod.Name] = time.Now()
		return
	}
	h.gated[pod.Name] = pod
}

// update replaces a gated pod, as the queue does after an event of the API server. It does not ask the plugin again.
func (h *handle) update(pod *corev1.Pod) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.gated[pod.Name] != nil {
		h.gated[pod.Name] = pod
	}
}

// Activate looks at gated pods again, in the version that the queue has.
func (h *handle) Activate(_ klog.Logger, pods map[string]*corev1.Pod) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, pod := range pods {
		if gated := h.gated[pod.Name]; gated != nil {
			h.enqueue(gated)
		}
	}
}

func (h *handle) went() int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return len(h.gone)
}

// cluster is the plugin beside an API server and a controller of this test.
type cluster struct {
	*handle
	plugin  *TrafficMatrix
	objects *dynamicfake.FakeDynamicClient
	// answer is that of the controller.
	answer func(ctx context.Context, method, path string, body []byte) ([]byte, error)
	mutex  sync.Mutex
	calls  []string
}

func (c *cluster) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	c.mutex.Lock()
	c.calls = append(c.calls, method+" "+path)
	c.mutex.Unlock()
	return c.answer(ctx, method, path, body)
}

func (c *cluster) called(method string) int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	count := 0
	for _, call := range c.calls {
		if strings.HasPrefix(call, method) {
			count++
		}
	}
	return count
}

// rings is a controller that puts the tasks on hosts of the racks in turn.
func rings(_ context.Context, method, path string, body []byte) ([]byte, error) {
	if path != "/v1/place/batch" {
		return []byte(`{"results": [{"status": 201, "decision": {"id": "d2", "hosts": []}}]}`), nil
	}
	var request struct {
		Requests []struct{ Tasks tasksBody }
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	var hosts []string
	for i := range request.Requests[0].Tasks.App.Tasks {
		hosts = append(hosts, fmt.Sprintf("r0h%d", i))
	}
	text, err := json.Marshal(hosts)
	return []byte(`{"results": [{"status": 201, "decision": {"id": "d1", "hosts": ` + string(text) + `}}]}`), err
}

func newCluster(t *testing.T, settings Settings, view *placements.View) *cluster {
	t.Helper()
	client := fake.NewSimpleClientset()
	c := &cluster{answer: rings, handle: &handle{
		client: client, factory: informers.NewSharedInformerFactory(client, 0), recorder: events.NewFakeRecorder(100),
		gated: map[string]*corev1.Pod{}, gone: map[string]time.Time{},
	}}
	c.objects = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(
		runtime.NewScheme(), map[schema.GroupVersionResource]string{v1alpha1.Resource: v1alpha1.Kind + "List"})
	ctx, cancel := context.WithCancel(context.Background())
	settings.Absence = DefaultAbsence
	plugin, err := Environment{
		View: func() *placements.View { return view }, Fresh: func(time.Time) bool { return view != nil },
		Call: c.call, Objects: c.objects, Now: time.Now, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}.New(ctx, settings, c.handle)
	if err != nil {
		t.Fatal(err)
	}
	c.plugin, c.handle.plugin = plugin, plugin
	c.factory.Start(ctx.Done())
	c.factory.WaitForCacheSync(ctx.Done())
	t.Cleanup(func() {
		cancel()
		c.factory.Shutdown()
		plugin.worker.running.Wait()
	})
	return c
}

// create creates a matrix, and waits until the plugin knows it.
func (c *cluster) create(t *testing.T, matrix *v1alpha1.TrafficMatrix) {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(matrix)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.matrices().Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the plugin does not know the matrix", func() bool { return c.plugin.apps.isMember(podOf(matrix.Name, 0)) })
}

func (c *cluster) matrices() dynamic.ResourceInterface {
	return c.objects.Resource(v1alpha1.Resource).Namespace("ml")
}

// run creates a pod and adds it to the queue, which follows the API server.
func (c *cluster) run(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	if _, err := c.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.add(pod)
}

// follow shows the queue the pods as the API server has them now.
func (c *cluster) follow(t *testing.T) []corev1.Pod {
	t.Helper()
	list, err := c.client.CoreV1().Pods("ml").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		c.update(&list.Items[i])
	}
	return list.Items
}

// status returns the status of a matrix.
func (c *cluster) status(t *testing.T, name string) v1alpha1.TrafficMatrixStatus {
	t.Helper()
	object, err := c.matrices().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	matrix := &v1alpha1.TrafficMatrix{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, matrix); err != nil {
		t.Fatal(err)
	}
	return matrix.Status
}

// conditions returns the reasons of all conditions of a matrix.
func (c *cluster) conditions(t *testing.T, name string) string {
	t.Helper()
	var parts []string
	for _, condition := range c.status(t, name).Conditions {
		parts = append(parts, condition.Type+"="+condition.Reason)
	}
	return strings.Join(parts, " ")
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 1000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("after 10 s: %s", what)
}

func TestPodsGoTogetherWithTheirHostsNominated(t *testing.T) {
	c := newCluster(t, Settings{Wait: time.Minute, Hold: time.Minute}, viewOf(t, network.Tree(0, 2, 8)))
	c.create(t, ringOf("ring", 8))
	for index := range 8 {
		if c.went() != 0 {
			t.Fatal("a pod went before the others came")
		}
		c.run(t, podOf("ring", index))
	}
	eventually(t, "pods are not nominated", func() bool {
		nominations := 0
		for _, pod := range c.follow(t) {
			if pod.Status.NominatedNodeName == "r0h"+pod.Labels["batch.kubernetes.io/job-completion-index"] {
				nominations++
			}
		}
		return nominations == 8
	})
	eventually(t, "pods wait", func() bool { c.follow(t); return c.went() == 8 })
	if c.called("POST /v1/place/batch") != 1 {
		t.Errorf("%v", c.calls)
	}
	eventually(t, "the status says so", func() bool {
		return c.conditions(t, "ring") == "Valid=Valid Complete=Complete Placed=Chosen"
	})
	if status := c.status(t, "ring"); status.Tasks != 8 || status.Pairs != 8 || status.Bytes.Value() != 8e9 || status.Decision != "d1" {
		t.Errorf("%+v", status)
	}
}

func TestWhenAllPodsAreBoundTheControllerKnowsAndWhenTheyEndItForgets(t *testing.T) {
	c := newCluster(t, Settings{Wait: time.Minute, Hold: time.Minute}, viewOf(t, network.Tree(0, 2, 8)))
	c.create(t, ringOf("ring", 2))
	for index := range 2 {
		c.run(t, podOf("ring", index))
	}
	eventually(t, "pods wait", func() bool { c.follow(t); return c.went() == 2 })
	for index := range 2 {
		pod := on(podOf("ring", index), fmt.Sprintf("r0h%d", index))
		if _, err := c.client.CoreV1().Pods("ml").Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the decision is not confirmed", func() bool { return c.called("POST /v1/decisions/d1/confirm") == 1 })
	for index := range 2 {
		if err := c.client.CoreV1().Pods("ml").Delete(t.Context(), podOf("ring", index).Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the decision is not released", func() bool { return c.called("POST /v1/release") == 1 })
	eventually(t, "the status has the decision", func() bool { return c.status(t, "ring").Decision == "" })
}

func TestPodsGoWithoutAnAnswerAfterTheWait(t *testing.T) {
	c := newCluster(t, Settings{Wait: 300 * time.Millisecond, Hold: time.Minute}, viewOf(t, network.Tree(0, 2, 8)))
	c.answer = func(ctx context.Context, _, _ string, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	c.create(t, ringOf("ring", 4))
	start := time.Now()
	for index := range 4 {
		c.run(t, podOf("ring", index))
	}
	eventually(t, "pods wait", func() bool { return c.went() == 4 })
	for name, at := range c.gone {
		if waited := at.Sub(start); waited < 200*time.Millisecond {
			t.Errorf("%s waited for %v", name, waited)
		}
	}
}

func TestMissingPodsAreOneEventAndOneCondition(t *testing.T) {
	c := newCluster(t, Settings{Wait: 200 * time.Millisecond, Hold: time.Minute}, viewOf(t, network.Tree(0, 2, 8)))
	c.create(t, ringOf("ring", 4))
	c.run(t, podOf("ring", 0))
	eventually(t, "the pod waits", func() bool { return c.went() == 1 })
	eventually(t, "the status does not say so", func() bool {
		return c.conditions(t, "ring") == "Valid=Valid Complete=MissingPods Placed=Incomplete"
	})
	c.run(t, podOf("ring", 1))
	time.Sleep(300 * time.Millisecond)
	if len(c.recorder.Events) != 1 {
		t.Fatalf("%d events", len(c.recorder.Events))
	}
	if event := <-c.recorder.Events; event != "Warning MissingPods worker: 1 of 4 pods" {
		t.Errorf("%s", event)
	}
}

func TestPodsWithoutAMatrixAreLeftAlone(t *testing.T) {
	c := newCluster(t, Settings{Wait: time.Minute, Hold: time.Minute}, viewOf(t, network.Tree(0, 2, 8)))
	c.create(t, ringOf("ring", 4))
	pod := podOf("web", 0)
	state := &cycleState{}
	if !c.plugin.PreEnqueue(t.Context(), pod).IsSuccess() || !c.plugin.PreScore(t.Context(), state, pod, nil).IsSkip() {
		t.Error("the pod waits or is scored")
	}
	if fragments, status := c.plugin.SignPod(t.Context(), pod); fragments != nil || !status.IsSuccess() {
		t.Errorf("%v, %v", fragments, status)
	}
	if _, status := c.plugin.SignPod(t.Context(), podOf("ring", 0)); status.Code() != fwk.Unschedulable {
		t.Errorf("%v", status)
	}
	if c.plugin.ScoreExtensions() != nil {
		t.Error("scores are normalized")
	}
}

// cycleState holds the data of one plugin.
type cycleState struct {
	fwk.CycleState
	data map[fwk.StateKey]fwk.StateData
}

func (s *cycleState) Read(key fwk.StateKey) (fwk.StateData, error) {
	if data, ok := s.data[key]; ok {
		return data, nil
	}
	return nil, fwk.ErrNotFound
}

func (s *cycleState) Write(key fwk.StateKey, data fwk.StateData) {
	s.data = map[fwk.StateKey]fwk.StateData{key: data}
}

// nodeInfo is a candidate.
type nodeInfo struct {
	fwk.NodeInfo
	name string
}

func (n *nodeInfo) Node() *corev1.Node { return nodeOf(n.name) }

func candidates(names ...string) []fwk.NodeInfo {
	var nodes []fwk.NodeInfo
	for _, name := range names {
		nodes = append(nodes, &nodeInfo{name: name})
	}
	return nodes
}

// scoresFor returns the scores of nodes for a pod, or "skip".
func scoresFor(t *testing.T, plugin *TrafficMatrix, pod *corev1.Pod, names ...string) string {
	t.Helper()
	state := &cycleState{}
	nodes := candidates(names...)
	if status := plugin.PreScore(t.Context(), state, pod, nodes); status.IsSkip() {
		return "skip"
	} else if !status.IsSuccess() {
		t.Fatalf("%v", status)
	}
	var scores []int64
	for _, node := range nodes {
		score, status := plugin.Score(t.Context(), state, pod, node)
		if !status.IsSuccess() {
			t.Fatalf("%v", status)
		}
		scores = append(scores, score)
	}
	return fmt.Sprint(scores)
}

func TestThePodPrefersItsHostAndElseANodeNearItsPeers(t *testing.T) {
	c := newCluster(t, Settings{Wait: time.Minute, Hold: time.Minute}, viewOf(t, network.Tree(0, 2, 8)))
	c.create(t, ringOf("ring", 3))
	for index := range 3 {
		c.run(t, podOf("ring", index))
	}
	eventually(t, "pods wait", func() bool { c.follow(t); return c.went() == 3 })
	pod := podOf("ring", 0)
	if scores := scoresFor(t, c.plugin, pod, "r1h0", "r0h0", "r0h1"); scores != "[0 100 0]" {
		t.Errorf("%s", scores)
	}
	// Its host is taken. The peers are on r0h1 and r0h2: a way into another rack is as wide here, so links of hosts limit.
	if scores := scoresFor(t, c.plugin, pod, "r1h0", "r0h1", "elsewhere"); scores != "[50 50 0]" {
		t.Errorf("%s", scores)
	}
	c.plugin.Reserve(t.Context(), nil, podOf("ring", 1), "r0h3")
	c.plugin.Reserve(t.Context(), nil, podOf("ring", 2), "r0h3")
	if scores := scoresFor(t, c.plugin, pod, "r1h0", "r0h3"); scores != "[50 100]" {
		t.Errorf("%s", scores)
	}
	c.plugin.Unreserve(t.Context(), nil, podOf("ring", 1), "r0h3")
	if scores := scoresFor(t, c.plugin, pod, "r1h0", "r1h1"); scores != "skip" {
		t.Errorf("%s", scores)
	}
}

// boundBy returns the number of bound pods by how they got their nodes.
func boundBy(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() == "leeward_matrix_pods_total" {
			for _, each := range family.GetMetric() {
				counts[each.GetLabel()[0].GetValue()] = each.GetCounter().GetValue()
			}
		}
	}
	return counts
}

func TestBoundPodsAreCountedByHowTheyGotTheirNodes(t *testing.T) {
	c := newCluster(t, Settings{Wait: time.Minute, Hold: time.Minute}, viewOf(t, network.Tree(0, 2, 8)))
	c.create(t, ringOf("ring", 3))
	for index := range 3 {
		c.run(t, podOf("ring", index))
	}
	eventually(t, "pods wait", func() bool { c.follow(t); return c.went() == 3 })
	before := boundBy(t)
	// The nominated node fits, so the scheduler scores no node.
	c.plugin.PostBind(t.Context(), &cycleState{}, podOf("ring", 0), "r0h0")
	state := &cycleState{}
	c.plugin.PreScore(t.Context(), state, podOf("ring", 1), candidates("r1h0", "r0h0", "elsewhere"))
	c.plugin.PostBind(t.Context(), state, podOf("ring", 1), "r0h0")
	c.plugin.PostBind(t.Context(), &cycleState{}, podOf("ring", 2), "r1h7")
	c.plugin.PostBind(t.Context(), &cycleState{}, podOf("web", 0), "r1h7")
	after := boundBy(t)
	for by, expected := range map[string]float64{"host": 1, "pairwise": 1, "none": 1} {
		if count := after[by] - before[by]; count != expected {
			t.Errorf("%s: %v", by, count)
		}
	}
}

func TestWithoutANetworkNoPodIsScoredOrWaits(t *testing.T) {
	c := newCluster(t, Settings{Wait: time.Minute, Hold: time.Minute}, nil)
	c.create(t, ringOf("ring", 2))
	for index := range 2 {
		c.run(t, podOf("ring", index))
	}
	c.plugin.Reserve(t.Context(), nil, podOf("ring", 1), "r0h1")
	if scores := scoresFor(t, c.plugin, podOf("ring", 0), "r0h0", "r0h1"); scores != "skip" || c.went() != 2 {
		t.Errorf("%s, %d went", scores, c.went())
	}
}

func TestAFaultOfAnApiServerDoesNotHoldPods(t *testing.T) {
	c := newCluster(t, Settings{Wait: time.Minute, Hold: time.Minute}, viewOf(t, network.Tree(0, 2, 8)))
	c.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, fmt.Errorf("forbidden")
	})
	c.create(t, ringOf("ring", 2))
	for index := range 2 {
		c.run(t, podOf("ring", index))
	}
	eventually(t, "pods wait", func() bool { return c.went() == 2 })
	if scores := scoresFor(t, c.plugin, podOf("ring", 0), "r0h0", "r0h1"); scores != "[100 0]" {
		t.Errorf("%s", scores)
	}
}

func TestArgumentsAreCheckedByName(t *testing.T) {
	for text, expected := range map[string]string{
		`{"controllers": ["http://c:7600"], "wait": "10s", "hold": "2m"}`: "",
		`{"wait": "2m"}`:     "wait: 2m0s: expected 0s to 1m0s",
		`{"hold": "0s"}`:     "hold: 0s: expected 1s to 1h0m0s",
		`{"absence": "1ms"}`: "absence: 1ms: expected 1s to 24h0m0s",
		`{"waits": "1s"}`:    `unknown field "waits"`,
		`{"wait": "soon"}`:   "arguments: ",
	} {
		args, err := readArgs(&runtime.Unknown{Raw: []byte(text)})
		if err == nil {
			err = args.settings().check()
		}
		if (err == nil) != (expected == "") || err != nil && !strings.Contains(err.Error(), expected) {
			t.Errorf("%s: %v", text, err)
		}
	}
	args, err := readArgs(nil)
	if settings := args.settings(); err != nil || settings.Wait != DefaultWait || settings.Hold != DefaultHold || settings.Absence != DefaultAbsence {
		t.Errorf("%+v, %v", settings, err)
	}
	if _, err := readArgs(&corev1.Pod{}); err == nil {
		t.Error("a pod is no configuration")
	}
}
