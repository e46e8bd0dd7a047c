package networkload

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"

	"leeward.dev/kubernetes/arguments"
	"leeward.dev/kubernetes/demand"
	network "leeward.dev/kubernetes/internal/fake"
)

// handle is the part of a scheduler that the plugin uses.
type handle struct {
	fwk.Handle
	informers informers.SharedInformerFactory
	recorder  *events.FakeRecorder
}

func newHandle(objects ...runtime.Object) *handle {
	return &handle{
		informers: informers.NewSharedInformerFactory(fake.NewClientset(objects...), 0), recorder: events.NewFakeRecorder(1000),
	}
}

func (h *handle) SharedInformerFactory() informers.SharedInformerFactory { return h.informers }
func (h *handle) EventRecorder() events.EventRecorderLogger              { return h.recorder }

// state is the state of a scheduling cycle.
type state struct {
	fwk.CycleState
	data map[fwk.StateKey]fwk.StateData
}

func newState() *state { return &state{data: map[fwk.StateKey]fwk.StateData{}} }

func (s *state) Read(key fwk.StateKey) (fwk.StateData, error) {
	if data, ok := s.data[key]; ok {
		return data, nil
	}
	return nil, fwk.ErrNotFound
}

func (s *state) Write(key fwk.StateKey, data fwk.StateData) { s.data[key] = data }

// nodeInfo is a node in a scheduling cycle.
type nodeInfo struct {
	fwk.NodeInfo
	node *corev1.Node
}

func (n *nodeInfo) Node() *corev1.Node { return n.node }

func nodesOf(names ...string) []fwk.NodeInfo {
	var nodes []fwk.NodeInfo
	for _, name := range names {
		nodes = append(nodes, &nodeInfo{node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}})
	}
	return nodes
}

// scene is a plugin beside a service.
type scene struct {
	t       testing.TB
	service *network.Controller
	handle  *handle
	plugin  *NetworkLoad
	clock   func() time.Time
}

// newScene starts a service and a plugin. The objects are in the cluster from the beginning.
func newScene(t *testing.T, change func(*Args), objects ...runtime.Object) *scene {
	t.Helper()
	s := &scene{t: t, service: network.NewController(network.Tree(0, 4, 2)), clock: time.Now}
	address, err := s.service.Serve(t.Context(), 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	args := Args{Service: arguments.Service{
		Controllers: []string{address},
		Interval:    metav1.Duration{Duration: 100 * time.Millisecond}, Deadline: metav1.Duration{Duration: 2 * time.Second},
	}}
	if change != nil {
		change(&args)
	}
	s.start(args, objects...)
	return s
}

// start starts a plugin in a scheduler of its own.
func (s *scene) start(args Args, objects ...runtime.Object) {
	s.t.Helper()
	s.handle = newHandle(objects...)
	s.plugin = s.another(args)
	s.handle.informers.Start(s.t.Context().Done())
	s.handle.informers.WaitForCacheSync(s.t.Context().Done())
}

// another returns the plugin of another profile of the same scheduler.
func (s *scene) another(args Args) *NetworkLoad {
	s.t.Helper()
	plugin, err := s.environment().New(s.t.Context(), encoded(s.t, args), s.handle)
	if err != nil {
		s.t.Fatal(err)
	}
	return plugin.(*NetworkLoad)
}

func (s *scene) environment() Environment {
	return Environment{
		Now: func() time.Time { return s.clock() }, Random: func() float64 { return 0.5 }, Log: slog.New(slog.DiscardHandler),
	}
}

func encoded(t testing.TB, args any) *runtime.Unknown {
	t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return &runtime.Unknown{Raw: text, ContentType: runtime.ContentTypeJSON}
}

// ready waits for the first snapshot.
func (s *scene) ready() {
	s.t.Helper()
	s.eventually("no snapshot", func() bool { return s.plugin.tracker.placements.View() != nil })
}

func (s *scene) eventually(what string, holds func() bool) {
	s.t.Helper()
	for range 1000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("after 10 s: %s", what)
}

// holdSnapshots keeps the last snapshot: requests for another one have no answer from now on.
func (s *scene) holdSnapshots() {
	s.t.Helper()
	var held atomic.Bool
	s.service.Intercept(func(_ http.ResponseWriter, request *http.Request) bool {
		if request.URL.Path != "/v1/snapshot" {
			return false
		}
		held.Store(true)
		<-request.Context().Done()
		return true
	})
	// The follower sends one request after the other, so none of the earlier ones is under way any more.
	s.eventually("no request for a snapshot", held.Load)
}

// scores returns the scores of nodes for a pod, or the status of PreScore.
func (s *scene) scores(pod *corev1.Pod, names ...string) (map[string]int64, *fwk.Status) {
	s.t.Helper()
	cycle, nodes := newState(), nodesOf(names...)
	if status := s.plugin.PreScore(s.t.Context(), cycle, pod, nodes); !status.IsSuccess() {
		return nil, status
	}
	scores := map[string]int64{}
	for _, node := range nodes {
		value, status := s.plugin.Score(s.t.Context(), cycle, pod, node)
		if !status.IsSuccess() || value < fwk.MinScore || value > fwk.MaxScore {
			s.t.Fatalf("score %d of %s: %v", value, node.Node().Name, status)
		}
		scores[node.Node().Name] = value
	}
	return scores, nil
}

// load returns the load of a link for decisions in bit/s.
func (s *scene) load(link string) float64 {
	view := s.plugin.tracker.placements.View()
	return view.Load(view.Snapshot().Names().Link(link))
}

// events returns the events up to now.
func (s *scene) events() []string {
	var all []string
	for {
		select {
		case event := <-s.handle.recorder.Events:
			all = append(all, event)
		default:
			return all
		}
	}
}

// podOf returns a pod with a peak rate out of it.
func podOf(name, egress string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{},
		CreationTimestamp: metav1.Now(),
	}}
	if egress != "" {
		pod.Annotations[demand.PeakEgress] = egress
	}
	return pod
}

// bound returns a pod on a node.
func bound(pod *corev1.Pod, node string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.NodeName = node
	return pod
}

// started returns a pod that runs since a time.
func started(pod *corev1.Pod, since time.Time) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	at := metav1.NewTime(since)
	pod.Status.StartTime = &at
	return pod
}

// reserve runs a scheduling cycle in which only one node can take the pod.
func (s *scene) reserve(pod *corev1.Pod, node string) {
	s.t.Helper()
	if status := s.plugin.Reserve(context.Background(), newState(), pod, node); !status.IsSuccess() {
		s.t.Fatal(status)
	}
}
