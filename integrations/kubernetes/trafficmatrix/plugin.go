// Package trafficmatrix is the plugin TrafficMatrix for kube-scheduler: it places the pods of an app together, by the bytes that
// they send each other (Choreo, section 5).
//
// The pods of a TrafficMatrix wait before the scheduling queue until all of them are there. A worker then asks the controller
// once for the hosts of the whole app, outside of any scheduling cycle, and nominates the host of each pod. The scheduler tries
// the nominated node first, and reserves its room. A pod that cannot have its host, or whose app has none, prefers nodes by
// the time that its transfers with the pods already placed would take.
//
// Pods wait at most for a time that is a setting, and not at all without a fresh snapshot of the network. The plugin filters
// no nodes and rejects no pods. Pods of a PodGroup wait in the same way before their group is scheduled.
package trafficmatrix

import (
	"context"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"leeward.dev/kubernetes/networkload"
	"leeward.dev/kubernetes/placements"
)

// Name is the name of the plugin.
const Name = "TrafficMatrix"

// stateKey is the key of the plugin's data in the state of a scheduling cycle.
const stateKey fwk.StateKey = Name

var (
	_ fwk.PreEnqueuePlugin  = &TrafficMatrix{}
	_ fwk.EnqueueExtensions = &TrafficMatrix{}
	_ fwk.PreScorePlugin    = &TrafficMatrix{}
	_ fwk.ScorePlugin       = &TrafficMatrix{}
	_ fwk.ReservePlugin     = &TrafficMatrix{}
	_ fwk.PostBindPlugin    = &TrafficMatrix{}
	_ fwk.SignPlugin        = &TrafficMatrix{}
)

// Environment has the network, the clients, the clock and the log of the plugin.
type Environment struct {
	// View returns the network in memory, nil before the first snapshot, and Fresh whether there is one that is young enough to
	// count. They are called once the informers run.
	View  func() *placements.View
	Fresh func(now time.Time) bool
	// Call sends a request to the controller.
	Call Call
	// Objects reads and writes traffic matrices.
	Objects dynamic.Interface
	// Now returns the time.
	Now func() time.Time
	Log *slog.Logger
}

// TrafficMatrix is the plugin.
type TrafficMatrix struct {
	environment Environment
	apps        *apps
	worker      *worker
}

// New returns the plugin, and starts its worker, which ends with the context. The error names an invalid argument.
func (e Environment) New(ctx context.Context, settings Settings, handle fwk.Handle) (*TrafficMatrix, error) {
	if err := settings.check(); err != nil {
		return nil, err
	}
	register()
	known := newApps(settings, handle.ProfileName(), e.Fresh)
	plugin := &TrafficMatrix{environment: e, apps: known, worker: newWorker(e, settings, known, handle)}
	if err := plugin.worker.watch(ctx); err != nil {
		return nil, err
	}
	plugin.worker.running.Go(func() { plugin.worker.run(ctx) })
	return plugin, nil
}

// Name returns the name of the plugin.
func (*TrafficMatrix) Name() string { return Name }

// PreEnqueue lets a pod wait for the placement of its app. It reads memory only, because the queue is locked meanwhile.
func (t *TrafficMatrix) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if t.apps.admit(pod, t.environment.Now()) {
		return nil
	}
	t.worker.signal()
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the pod waits for the placement of its traffic matrix")
}

// EventsToRegister returns events after which the queue looks at waiting pods again. The worker wakes them; the events are a
// net below it.
func (t *TrafficMatrix) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Add | fwk.Delete}, QueueingHintFn: t.hint},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeCondition}, QueueingHintFn: t.hint},
	}, nil
}

func (t *TrafficMatrix) hint(_ klog.Logger, pod *corev1.Pod, _, _ any) (fwk.QueueingHint, error) {
	if t.apps.admit(pod, t.environment.Now()) {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

// cycle is the data of one scheduling cycle. It does not change.
type cycle struct {
	// host is the chosen host if it is a candidate. Otherwise scores has the scores of the candidates.
	host   string
	scores map[string]int64
}

// Clone returns the data itself.
func (c *cycle) Clone() fwk.StateData { return c }

// PreScore ranks the nodes for a pod of an app. It returns Skip for other pods, and if the app has no say.
func (t *TrafficMatrix) PreScore(_ context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	of, ok := t.apps.situationOf(pod.UID)
	if !ok {
		return fwk.NewStatus(fwk.Skip)
	}
	if of.host != "" && slices.ContainsFunc(nodes, func(n fwk.NodeInfo) bool { return n.Node().Name == of.host }) {
		state.Write(stateKey, &cycle{host: of.host})
		return nil
	}
	if scores := t.scores(of.peers, nodes); scores != nil {
		state.Write(stateKey, &cycle{scores: scores})
		return nil
	}
	return fwk.NewStatus(fwk.Skip)
}

// scores returns pairwise scores, nil if the network or the peers are unknown.
func (t *TrafficMatrix) scores(peers []peer, nodes []fwk.NodeInfo) map[string]int64 {
	view := t.environment.View()
	if view == nil || len(peers) == 0 || !t.environment.Fresh(t.environment.Now()) {
		return nil
	}
	network := newPairwise(view, peers)
	if !network.isUseful() {
		return nil
	}
	return scoresOf(network, networkload.NodeNames(nodes))
}

// Score returns the score of a node from 0 to 100.
func (t *TrafficMatrix) Score(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	data, err := state.Read(stateKey)
	of, ok := data.(*cycle)
	switch {
	case err != nil || !ok:
		return 0, nil
	case of.host == "":
		return of.scores[node.Node().Name], nil
	case of.host == node.Node().Name:
		return Most, nil
	}
	return 0, nil
}

// ScoreExtensions returns nil: scores are not normalized.
func (*TrafficMatrix) ScoreExtensions() fwk.ScoreExtensions { return nil }

// Reserve notes the node of a pod, for the pods of its app that follow. It always succeeds.
func (t *TrafficMatrix) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	t.apps.reserve(pod.UID, node)
	return nil
}

// Unreserve forgets the node of a pod.
func (t *TrafficMatrix) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	t.apps.reserve(pod.UID, "")
}

// PostBind counts a bound pod by how it got its node. The scheduler has no scores if only the nominated node was tried, and the
// cycle of a PodGroup reserves nodes twice, so neither PreScore nor Reserve can count.
func (t *TrafficMatrix) PostBind(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node string) {
	of, ok := t.apps.situationOf(pod.UID)
	if !ok {
		return
	}
	by := "none"
	if data, err := state.Read(stateKey); err == nil {
		if ranked, ok := data.(*cycle); ok && ranked.scores != nil {
			by = "pairwise"
		}
	}
	if of.host == node {
		by = "host"
	}
	podsTotal.WithLabelValues(by).Inc()
}

// SignPod excludes pods of apps from the scheduler's reuse of results: each has peers of its own. Other pods have no part here,
// so they remain eligible.
func (t *TrafficMatrix) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if t.apps.isMember(pod) {
		return nil, fwk.NewStatus(fwk.Unschedulable, "the pod belongs to a traffic matrix")
	}
	return nil, nil
}
