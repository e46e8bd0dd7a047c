package evictor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/snapshot"
)

// Mode says whether pods are evicted.
type Mode string

// Modes.
const (
	// DryRun decides, and says in events, metrics and the log which pods it would evict. It changes nothing.
	DryRun Mode = "dry-run"
	// Evict evicts pods.
	Evict Mode = "evict"
	// Stop decides nothing.
	Stop Mode = "stop"
)

// ParseMode returns the mode of a text.
func ParseMode(text string) (Mode, error) {
	switch mode := Mode(text); mode {
	case DryRun, Evict, Stop:
		return mode, nil
	}
	return "", fmt.Errorf("mode: %q: expected dry-run, evict or stop", text)
}

// evictionDeadline is the time for one eviction.
const evictionDeadline = 15 * time.Second

// Options are the surroundings of a runner.
type Options struct {
	Mode      Mode
	Settings  Settings
	Estimator ledger.Estimator
	// MaxAge is the age from which a snapshot no longer counts.
	MaxAge time.Duration
	Client kubernetes.Interface
	// Namespace and Name are those of the evictor's ConfigMap.
	Namespace, Name string
	// Cluster returns the state of the cluster, nil while informers are not in step.
	Cluster func() *Cluster
	// Peaks may be nil.
	Peaks demand.Peaks
	// Service learns of evictions; nil for none.
	Service Service
	// Advisor advises moves; nil if the evictor decides itself.
	Advisor Advisor
	Events  events.EventRecorder
	Metrics *Metrics
	Log     *slog.Logger
}

// Runner carries rounds out.
type Runner struct {
	options Options
	gate    gate
	// executor carries out moves of the service; nil if the evictor decides itself.
	executor *executor
	closed   chan struct{}

	// mutex guards the fields below, which the follower changes.
	mutex   sync.Mutex
	windows *Windows
	last    *snapshot.Snapshot

	// imagined are the evictions of a dry run.
	imagined []Record
}

// NewRunner returns a runner. It returns an error that names an invalid option.
func NewRunner(options Options) (*Runner, error) {
	if err := options.Settings.Check(options.Estimator.Interval()); err != nil {
		return nil, err
	}
	if options.Namespace == "" || options.Name == "" {
		return nil, fmt.Errorf("configmap: %q in namespace %q: expected both names", options.Name, options.Namespace)
	}
	options.Metrics.mode.WithLabelValues(string(options.Mode)).Set(1)
	r := &Runner{
		options: options, closed: make(chan struct{}, 1), windows: NewWindows(options.Estimator, options.Settings),
		gate: gate{maps: options.Client.CoreV1().ConfigMaps(options.Namespace), name: options.Name, settings: options.Settings},
	}
	if options.Advisor != nil {
		r.executor = newExecutor(&options)
	}
	return r, nil
}

// OnSnapshot takes in the next snapshot. The follower calls it, also while another process leads: the windows are then known
// when this process becomes the leader.
func (r *Runner) OnSnapshot(next *snapshot.Snapshot) {
	r.mutex.Lock()
	closed := r.windows.TakeIn(next)
	r.last = next
	inverted := 0.0
	if r.windows.Inverts() {
		inverted = 1
	}
	r.mutex.Unlock()
	r.options.Metrics.inverted.Set(inverted)
	if closed {
		select {
		case r.closed <- struct{}{}:
		default:
			// A round waits already, and will see this window.
		}
	}
}

// Run carries out a round at the end of each window until the context ends, or a round every few seconds if the service
// decides.
func (r *Runner) Run(ctx context.Context) {
	r.options.Metrics.leader.Set(1)
	defer r.options.Metrics.leader.Set(0)
	closed, due := r.closed, (<-chan time.Time)(nil)
	if r.executor != nil {
		ticker := time.NewTicker(adviceInterval)
		defer ticker.Stop()
		closed, due = nil, ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-closed:
		case <-due:
		}
		r.Round(ctx, time.Now())
	}
}

// Round decides and carries out one round at a local time.
func (r *Runner) Round(ctx context.Context, now time.Time) {
	outcome, err := r.round(ctx, now)
	if err != nil {
		r.options.Log.Warn("no round of evictions, or only a part of one", "outcome", outcome, "problem", err.Error())
	}
	r.options.Metrics.rounds.WithLabelValues(outcome).Inc()
}

func (r *Runner) round(ctx context.Context, now time.Time) (string, error) {
	if r.options.Mode == Stop {
		return roundStopped, nil
	}
	request, rackOf, outcome := r.observe(now)
	if request == nil {
		return outcome, nil
	}
	cluster := r.options.Cluster()
	if cluster == nil {
		return roundUnsynced, nil
	}
	var moves []httpapi.Migration
	if r.executor != nil {
		var err error
		if moves, err = r.executor.open(ctx); err != nil {
			return roundUnadvised, err
		}
		if len(moves) == 0 && (!r.executor.waits || r.options.Mode == DryRun) {
			return roundDecided, nil
		}
	}
	stopped := false
	if r.options.Mode == Evict {
		records, stops, err := r.gate.open(ctx)
		if err != nil {
			return roundConflict, err
		}
		request.Records, stopped = records, stops
	} else {
		request.Records = r.imagined
	}
	request.Records = follow(prune(request.Records, r.options.Settings, now), cluster.sightings(rackOf), now)
	r.reportLandings(ctx, request.Records)
	moves = withoutRecord(moves, request.Records)
	if r.executor != nil && r.options.Mode == Evict {
		request.Records = r.executor.finish(ctx, request.Records)
	}
	if r.options.Mode == Evict {
		// Landings and answers are written also in a round that evicts nothing, so that no later round answers again.
		if err := r.gate.write(ctx, request.Records); err != nil {
			return roundConflict, err
		}
	}
	places := cluster.Places(rackOf, r.options.Peaks)
	if isOtherCluster(places.Nodes) {
		return roundOtherCluster, nil
	}
	request.Pods, request.Nodes, request.Disruptions = places.Pods, places.Nodes, places.Disruptions
	round, err := r.decide(ctx, request, moves, rackOf)
	if err != nil {
		return roundUnadvised, err
	}
	if len(round.Hot)+len(moves) > 0 {
		r.options.Metrics.invalid.Add(float64(len(places.Problems)))
	}
	if stopped {
		r.showLeft(request.Records, now)
		return roundStopped, nil
	}
	return r.carryOut(ctx, round, request.Records, now)
}

// decide decides by the evictor's own rule, or by the moves of the service.
func (r *Runner) decide(ctx context.Context, request *Request, moves []httpapi.Migration, rackOf func(string) string) (Round, error) {
	if r.executor == nil {
		round := Decide(*request)
		r.options.Metrics.hot.Set(float64(len(round.Hot)))
		for _, stay := range round.Stays {
			r.options.Metrics.stays.WithLabelValues(string(stay.Reason)).Inc()
		}
		return round, nil
	}
	advice, err := r.executor.advice(ctx, moves, request, rackOf)
	if err != nil {
		return Round{}, err
	}
	round := Accept(*request, advice)
	isNew := r.executor.firstTime(&round)
	for _, stay := range round.Stays {
		if isNew(stay.Move) {
			r.options.Metrics.stays.WithLabelValues(string(stay.Reason)).Inc()
		}
	}
	return round, nil
}

// isOtherCluster returns true if the service knows fewer than half of the nodes.
func isOtherCluster(nodes []Node) bool {
	unknown := 0
	for i := range nodes {
		if nodes[i].Rack == "" {
			unknown++
		}
	}
	return 2*unknown > len(nodes)
}

// showLeft publishes the number of evictions that the budget of the hour allows.
func (r *Runner) showLeft(records []Record, now time.Time) {
	r.options.Metrics.left.Set(float64(max(r.options.Settings.HourlyBudget-inHour(records, now), 0)))
}

// observe returns a request with the network, and the racks of nodes; or nil and the reason.
func (r *Runner) observe(now time.Time) (*Request, func(string) string, string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.last == nil || r.last.Age(now) >= r.options.MaxAge {
		return nil, nil, roundStale
	}
	// Records have local times, and windows those of the service.
	ahead := time.Duration(r.last.TimeAt(now) - now.UnixNano())
	return &Request{
		Now: now, Start: r.windows.Start().Add(-ahead), Racks: network(r.last, r.windows), Settings: r.options.Settings,
	}, r.last.Names().RackOf, ""
}

// carryOut evicts the pods of a round one after another, or says that it would.
func (r *Runner) carryOut(ctx context.Context, round Round, records []Record, now time.Time) (string, error) {
	defer func() { r.showLeft(records, now) }()
	if r.options.Mode == DryRun {
		for i := range round.Evictions {
			eviction := &round.Evictions[i]
			records = append(records, recordOf(eviction, now))
			r.announce(eviction, wouldEvict, "would be evicted")
		}
		r.imagined = records
		return roundDecided, nil
	}
	for _, stay := range round.Stays {
		if stay.Move != "" {
			r.executor.giveUp(ctx, stay.Move, httpapi.Refused, string(stay.Reason))
		}
	}
	for i := range round.Evictions {
		if ctx.Err() != nil {
			return roundConflict, ctx.Err()
		}
		eviction := &round.Evictions[i]
		if eviction.Move != "" && !r.executor.take(ctx, eviction.Move) {
			continue
		}
		next := append(records[:len(records):len(records)], recordOf(eviction, now))
		// The record comes first. If the process ends before the eviction, one eviction too many counts, and not one too few.
		if err := r.gate.write(ctx, next); err != nil {
			return roundConflict, err
		}
		outcome, err := r.evict(ctx, eviction.Pod)
		r.announce(eviction, outcome, "evicted")
		if err != nil {
			r.options.Log.Warn("a pod was not evicted", "pod", eviction.Pod.Namespace+"/"+eviction.Pod.Name,
				"outcome", outcome, "problem", err.Error())
		}
		switch outcome {
		case evicted:
			records = next
			r.reportEviction(ctx, &records[len(records)-1], eviction.Node)
		case unanswered:
			// The pod may leave, so the eviction counts.
			records = next
		default:
			if eviction.Move != "" {
				r.executor.giveUp(ctx, eviction.Move, answerTo(outcome), fmt.Sprintf("%s: %v", outcome, err))
			}
		}
	}
	// This removes the records of evictions that were rejected, and adds what the service answered.
	if err := r.gate.write(ctx, records); err != nil {
		return roundConflict, err
	}
	return roundDecided, nil
}

func recordOf(eviction *Eviction, now time.Time) Record {
	pod := eviction.Pod
	return Record{
		At: now, UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Workload: pod.Workload,
		Source: pod.Rack, Target: eviction.Target, Rates: pod.Rates, Move: eviction.Move,
	}
}

// evict requests an eviction. The pod must still be the one of the decision, and not another of the same name.
func (r *Runner) evict(ctx context.Context, pod *Pod) (string, error) {
	// The client repeats a request that the API server asks it to repeat later, which must not hold the round for long.
	ctx, cancel := context.WithTimeout(ctx, evictionDeadline)
	defer cancel()
	uid := types.UID(pod.UID)
	err := r.options.Client.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}},
	})
	switch {
	case err == nil:
		return evicted, nil
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause):
		return budgetSpent, err
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return podGone, nil
	}
	// The API server rejects requests with codes 400 to 499, such as 429 if it has too many of them. After all other errors it may
	// have evicted the pod.
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code/100 == 4 {
		return rejected, err
	}
	return unanswered, err
}
