package networkload

import (
	"context"
	"encoding/json"
	"iter"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"

	"leeward.dev/kubernetes/arguments"
	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/peaks"
	"leeward.dev/kubernetes/placements"
	"leeward.dev/kubernetes/reporter"
	"leeward.dev/kubernetes/score"
	"leeward.dev/kubernetes/snapshot"
)

// tracker follows the network, and the pods of the cluster that count on it. Plugins of several profiles share one, so each
// counts the placements of the others.
type tracker struct {
	now        func() time.Time
	connection snapshot.Settings
	peaks      demand.Peaks
	lasts      time.Duration
	feed       *snapshot.Feed
	placements *placements.Placements
	// reporter is nil if placements are not reported.
	reporter *reporter.Reporter
	// measured is nil if the peaks of the service do not count.
	measured *peaks.Follower
	events   announcer
	unknown  atomic.Int64

	// mutex guards the field below.
	mutex sync.Mutex
	// own are the pods that this process has placed, and whose binding the informer has not shown yet.
	own map[string]bool
}

// trackerKey identifies the trackers that plugins share: plugins of one scheduler with the same arguments.
type trackerKey struct {
	informers informers.SharedInformerFactory
	args      string
}

var (
	trackersMutex sync.Mutex
	trackers      = map[trackerKey]*tracker{}
)

// runningTrackers returns the trackers of this process.
func runningTrackers() []*tracker {
	trackersMutex.Lock()
	defer trackersMutex.Unlock()
	var running []*tracker
	for _, each := range trackers {
		running = append(running, each)
	}
	return running
}

// NetworkOf returns the network that a plugin of the scheduler follows with the same connection, nil if none does. It counts the
// pods that the plugin places.
func NetworkOf(factory informers.SharedInformerFactory, connection arguments.Service) *placements.Network {
	trackersMutex.Lock()
	defer trackersMutex.Unlock()
	for key, each := range trackers {
		if key.informers == factory && reflect.DeepEqual(each.connection, connection.Settings()) {
			return &placements.Network{Feed: each.feed, Placements: each.placements}
		}
	}
	return nil
}

// trackerOf returns the tracker for the arguments, and starts it with the first plugin. It ends with the context.
func trackerOf(ctx context.Context, args Args, environment Environment, handle fwk.Handle) (*tracker, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	key := trackerKey{informers: handle.SharedInformerFactory(), args: string(text)}
	trackersMutex.Lock()
	defer trackersMutex.Unlock()
	if shared := trackers[key]; shared != nil {
		return shared, nil
	}
	created, start, err := newTracker(args, environment, handle)
	if err != nil {
		return nil, err
	}
	register()
	if err := start(ctx); err != nil {
		return nil, err
	}
	trackers[key] = created
	context.AfterFunc(ctx, func() {
		trackersMutex.Lock()
		defer trackersMutex.Unlock()
		delete(trackers, key)
	})
	return created, nil
}

// newTracker returns a tracker, and the function that starts it. The error names an invalid argument.
func newTracker(args Args, environment Environment, handle fwk.Handle) (*tracker, func(context.Context) error, error) {
	estimator, err := args.estimator(ledger.DefaultInterval, ledger.DefaultAlpha)
	if err != nil {
		return nil, nil, err
	}
	local, err := placements.New(args.Client, estimator, args.PlacementLasts.Duration)
	if err != nil {
		return nil, nil, err
	}
	client, err := snapshot.NewClient(args.Settings())
	if err != nil {
		return nil, nil, err
	}
	t := &tracker{
		now: environment.Now, connection: args.Settings(), peaks: environment.Peaks, lasts: args.PlacementLasts.Duration,
		feed: snapshot.NewFeed(client.Settings().MaxAge), placements: local, own: map[string]bool{},
	}
	follower := snapshot.NewFollower(client, t.feed, local.OnSnapshot, environment.Random, environment.Log)
	pods := handle.SharedInformerFactory().Core().V1().Pods()
	if *args.Report {
		// The reporter has a client of its own: its failures must not move the follower to another address.
		sender, err := snapshot.NewClient(args.Settings())
		if err != nil {
			return nil, nil, err
		}
		t.reporter = reporter.New(reporter.Options{
			Client: args.Client, Call: sender.Call, Placements: local, Exists: existsIn(pods.Informer().GetStore()),
			Now: environment.Now, Random: environment.Random, Log: environment.Log,
		})
	}
	// Other requests have a client of their own for the same reason.
	caller, err := snapshot.NewClient(args.Settings())
	if err != nil {
		return nil, nil, err
	}
	if *args.Peaks && t.peaks == nil {
		if t.measured, err = t.newFollower(args, environment, caller, pods.Informer()); err != nil {
			return nil, nil, err
		}
		t.peaks = t.measured.Peaks
	}
	start := func(ctx context.Context) error {
		if err := t.follow(pods.Informer()); err != nil {
			return err
		}
		go follower.Run(ctx)
		go t.checkNodes(ctx, handle.SharedInformerFactory().Core().V1().Nodes().Lister(), handle.EventRecorder())
		if t.reporter != nil {
			go t.reporter.Run(ctx)
		}
		if t.measured != nil {
			go t.measured.Run(ctx)
			go func() {
				if cache.WaitForCacheSync(ctx.Done(), pods.Informer().HasSynced) {
					t.measured.Wake()
				}
			}()
		}
		if args.Alpha == nil || args.ReportInterval.Duration == 0 {
			settings := &estimates{args: args, call: caller.Call, set: local.SetEstimator, log: environment.Log}
			go settings.run(ctx)
		}
		return nil
	}
	return t, start, nil
}

// newFollower returns the follower of measured peaks. A scheduler that may write to the service names the pods as well, once it
// knows them: a replica that waits for leadership reads peaks only.
func (t *tracker) newFollower(
	args Args, environment Environment, client *snapshot.Client, pods cache.SharedIndexInformer,
) (*peaks.Follower, error) {
	options := peaks.Options{
		Call: client.Call, First: func(table *peaks.Table) { t.adoptMeasured(pods.GetStore(), table.Peaks) },
		Now: environment.Now, Random: environment.Random, Log: environment.Log,
	}
	if *args.Report {
		known, err := peaks.PodsIn(pods)
		if err != nil {
			return nil, err
		}
		options.Pods = func(uid string) []*corev1.Pod {
			if !pods.HasSynced() {
				return nil
			}
			return known(uid)
		}
	}
	return peaks.New(options), nil
}

// demandOf returns the demand of a pod. An invalid annotation has an event, and does not count.
func (t *tracker) demandOf(pod *corev1.Pod, recorder events.EventRecorder) demand.Demand {
	wanted, err := demand.Of(pod, t.peaks)
	if err != nil {
		t.events.invalid(recorder, pod, err)
	}
	return wanted
}

// rank scores nodes for a demand.
func (t *tracker) rank(wanted demand.Demand, nodes iter.Seq[string]) (*score.Ranking, score.Outcome) {
	view := t.placements.View()
	return score.Rank(score.Request{
		View: view, Fresh: view != nil && t.feed.IsFresh(view.Snapshot(), t.now()), Nodes: nodes, Demand: wanted,
	})
}

func ratesOf(wanted demand.Demand) placements.Rates {
	return placements.Rates{Egress: wanted.Egress.Bps, Ingress: wanted.Ingress.Bps}
}

// reserve counts a pod on the node that the scheduler chose, and reports it.
func (t *tracker) reserve(pod *corev1.Pod, node string, wanted demand.Demand) {
	uid := string(pod.UID)
	t.mutex.Lock()
	t.own[uid] = true
	t.mutex.Unlock()
	if !wanted.IsKnown() {
		return
	}
	now := t.now()
	t.placements.Add(uid, node, ratesOf(wanted), now)
	if t.reporter != nil {
		t.reporter.Report(reporter.Report{
			Pod: uid, Namespace: pod.Namespace, Name: pod.Name, Node: node, Rates: ratesOf(wanted),
			Job: demand.WorkloadOf(pod).String(), Migratable: wanted.Migratable, At: now,
		})
	}
}

// unreserve takes a pod off its node that will not be bound.
func (t *tracker) unreserve(pod *corev1.Pod) {
	uid := string(pod.UID)
	t.isOwn(uid)
	t.placements.Remove(uid)
	if t.reporter != nil {
		t.reporter.Release(uid)
	}
}

// isOwn returns true at the first call for a pod that this process has placed.
func (t *tracker) isOwn(uid string) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	own := t.own[uid]
	delete(t.own, uid)
	return own
}

// reportResults are the values of the label of [reports].
var reportResults = [...]string{"accepted", "rejected", "dropped", "late", "released"}

// readings are the sums of the metrics of trackers.
type readings struct {
	hasSnapshot        bool
	age                time.Duration
	whole, differences uint64
	failures           map[snapshot.Failure]uint64
	placements         int
	early              uint64
	waiting            int
	reports            map[string]uint64
	unknown            int64
	measured           peaks.Counts
}

// read adds the readings of a tracker. The age is that of the oldest snapshot.
func (t *tracker) read(sum *readings) {
	if last := t.feed.Last(); last != nil {
		sum.hasSnapshot, sum.age = true, max(sum.age, last.Age(t.now()))
	}
	whole, differences := t.feed.Counts()
	sum.whole += whole
	sum.differences += differences
	for _, failure := range snapshot.Failures {
		sum.failures[failure] += t.feed.FailureCount(failure)
	}
	sum.placements += t.placements.Len()
	sum.early += t.placements.EarlyCount()
	sum.unknown += t.unknown.Load()
	if t.measured != nil {
		counts := t.measured.Counts()
		sum.measured.Workloads = max(sum.measured.Workloads, counts.Workloads)
		sum.measured.Age = max(sum.measured.Age, counts.Age)
		sum.measured.Named += counts.Named
		sum.measured.NameFailures += counts.NameFailures
		sum.measured.ReadFailures += counts.ReadFailures
	}
	if t.reporter == nil {
		return
	}
	counts := t.reporter.Counts()
	sum.waiting += counts.Waiting
	for i, count := range [...]uint64{counts.Accepted, counts.Rejected, counts.Dropped, counts.Late, counts.Released} {
		sum.reports[reportResults[i]] += count
	}
}
