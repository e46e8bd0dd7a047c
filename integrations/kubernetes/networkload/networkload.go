// Package networkload is the Score plugin NetworkLoad for kube-scheduler: it prefers nodes whose links to the core have room
// for a pod (UTP: Hotspots, section 5.1).
//
// All decisions read one view in memory: the last snapshot of the service, and the own placements that it does not include.
// The plugin never waits for the service and never rejects a pod. A pod without a known demand, and every pod while there is
// no fresh snapshot, is placed as without the plugin.
package networkload

import (
	"context"
	"iter"
	"log/slog"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/score"
)

// Name is the name of the plugin.
const Name = "NetworkLoad"

// stateKey is the key of the plugin's data in the state of a scheduling cycle.
const stateKey fwk.StateKey = Name

var (
	_ fwk.PreScorePlugin    = &NetworkLoad{}
	_ fwk.ScorePlugin       = &NetworkLoad{}
	_ fwk.ReservePlugin     = &NetworkLoad{}
	_ fwk.SignPlugin        = &NetworkLoad{}
	_ fwk.EnqueueExtensions = &NetworkLoad{}
)

// Environment has the clock, the random numbers, the measured peaks and the log of the plugin.
type Environment struct {
	// Now returns the time, and Random numbers from 0 to 1.
	Now    func() time.Time
	Random func() float64
	// Peaks returns the measured peaks of a workload from memory. Nil stands for those of the service.
	Peaks demand.Peaks
	Log   *slog.Logger
}

// NetworkLoad is the plugin. The plugins of all profiles of a scheduler share one tracker.
type NetworkLoad struct {
	tracker *tracker
	handle  fwk.Handle
}

// New returns the plugin with the clock and the random numbers of the machine. It is the factory for the registry of the
// scheduler.
func New(ctx context.Context, configuration runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	return Environment{Now: time.Now, Random: rand.Float64, Log: slog.Default()}.New(ctx, configuration, handle)
}

// New returns the plugin in this environment. It returns an [InvalidArgsError] that names an invalid argument.
func (e Environment) New(ctx context.Context, configuration runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, err := readArgs(configuration)
	if err != nil {
		return nil, err
	}
	shared, err := trackerOf(ctx, args, e, handle)
	if err != nil {
		return nil, &InvalidArgsError{problem: err}
	}
	return &NetworkLoad{tracker: shared, handle: handle}, nil
}

// Name returns the name of the plugin.
func (*NetworkLoad) Name() string { return Name }

// cycle is the data of one scheduling cycle.
type cycle struct {
	demand  demand.Demand
	ranking *score.Ranking
}

// Clone returns the data itself, which does not change.
func (c *cycle) Clone() fwk.StateData { return c }

// PreScore ranks the nodes. It returns Skip if the network has no say in where the pod goes.
func (p *NetworkLoad) PreScore(_ context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	wanted := p.tracker.demandOf(pod, p.handle.EventRecorder())
	ranking, outcome := p.tracker.rank(wanted, NodeNames(nodes))
	state.Write(stateKey, &cycle{demand: wanted, ranking: ranking})
	outcomes.WithLabelValues(string(outcome)).Inc()
	switch outcome {
	case score.Ranked:
		return nil
	case score.UnknownDemand:
	default:
		p.tracker.events.unavailable(p.handle.EventRecorder(), pod, outcome, p.tracker.now())
	}
	return fwk.NewStatus(fwk.Skip)
}

// NodeNames returns the names of nodes, as functions that score nodes take them.
func NodeNames(nodes []fwk.NodeInfo) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, node := range nodes {
			if !yield(node.Node().Name) {
				return
			}
		}
	}
}

// Score returns the capacity in percent that remains with the pod on the fullest link between the node and the core.
func (p *NetworkLoad) Score(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	if of := read(state); of != nil && of.ranking != nil {
		return of.ranking.Score(node.Node().Name), nil
	}
	return 0, nil
}

// ScoreExtensions returns nil: scores are absolute. Stretched to 0 to 100, a difference of one percent between idle links
// would outweigh the other plugins.
func (*NetworkLoad) ScoreExtensions() fwk.ScoreExtensions { return nil }

func read(state fwk.CycleState) *cycle {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil
	}
	of, _ := data.(*cycle)
	return of
}

// Reserve counts the pod on its node. It always succeeds.
func (p *NetworkLoad) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	of := read(state)
	if of == nil {
		// The scheduler skips PreScore if only one node can take the pod.
		of = &cycle{demand: p.tracker.demandOf(pod, p.handle.EventRecorder())}
	}
	p.tracker.reserve(pod, node, of.demand)
	return nil
}

// Unreserve takes the pod off its node.
func (p *NetworkLoad) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	p.tracker.unreserve(pod)
}

// EventsToRegister returns no events: the plugin rejects no pod, so none waits for an event because of it. Without this
// method the scheduler would wake waiting pods at every event of the cluster.
func (*NetworkLoad) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// SignPod leaves pods of unknown demand to the scheduler's reuse of results for equal pods. A pod of known demand is not
// eligible: each one changes the scores of all nodes in its rack, so reused scores would put the next ones into it too.
func (p *NetworkLoad) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if wanted, _ := demand.Of(pod, p.tracker.peaks); wanted.IsKnown() {
		return nil, fwk.NewStatus(fwk.Unschedulable, "the pod changes the load of the network")
	}
	return nil, nil
}
