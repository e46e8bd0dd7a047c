package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"

	"leeward.dev/kubernetes/evictor"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/peaks"
	"leeward.dev/kubernetes/snapshot"
)

var evictorCommand = command{
	name: "evictor", summary: "Moves migratable pods off hot racks; by default events only name the pods that it would move.",
	examples: []string{
		"leeward-kubernetes evictor --controller https://leeward:7600 --token-file /etc/leeward/token --ca /etc/leeward/ca.crt",
		"leeward-kubernetes evictor --controller https://leeward:7600 --mode evict --hourly-budget 5",
		"leeward-kubernetes evictor --controller https://leeward:7600 --mode evict --moves service",
	},
	run: runEvictor,
}

// runEvictor runs the evictor until the context ends.
func runEvictor(ctx context.Context, set *flag.FlagSet, arguments []string, log *slog.Logger) error {
	var c common
	c.flags(set, "leeward-evictor", "of the Lease and of the evictor's ConfigMap")
	s := evictor.DefaultSettings()
	mode := set.String("mode", string(evictor.DryRun),
		"`mode`: dry-run (events only), evict, or stop")
	source := set.String("moves", string(evictor.Own),
		"`source` of decisions: own, the evictor's rule; or service, the moves that the service advises")
	var asked fromService
	set.Float64Var(&asked.threshold, "threshold", 0, "utilization above which a link is hot, as a `share`; 0 asks the service")
	set.Float64Var(&s.Margin, "margin", s.Margin, "distance below the threshold that a target must keep, as a `share`")
	set.DurationVar(&s.Window, "window", s.Window, "`time` over which loads are averaged")
	set.IntVar(&s.HotWindows, "hot-windows", s.HotWindows, "`number` of hot windows in a row after which pods leave")
	set.IntVar(&s.RackCooldown, "rack-cooldown", s.RackCooldown,
		"`number` of windows after an eviction in which no pod leaves the rack")
	set.IntVar(&s.WorkloadCooldown, "workload-cooldown", s.WorkloadCooldown,
		"`number` of windows after an eviction in which no pod of the workload is evicted")
	set.IntVar(&s.HourlyBudget, "hourly-budget", s.HourlyBudget, "largest `number` of evictions in any hour")
	set.DurationVar(&s.Lasts, "lasts", s.Lasts,
		"`time` after which an eviction no longer counts on the loads, even if no report shows it")
	set.BoolVar(&s.DerivedLinks, "derived-links", s.DerivedLinks,
		"move pods also off links whose load is the sum of their nodes, with traffic within the rack")
	schedulers := set.String("schedulers", defaultScheduler,
		"`names` of the schedulers whose pods may leave, with commas; "+everyScheduler+" for all")
	set.DurationVar(&asked.interval, "interval", 0, "`time` between two reports of a link; 0 asks the service")
	set.Float64Var(&asked.alpha, "alpha", 0, "`weight` of a report in the service's estimate; 0 asks the service")
	measured := set.Bool("peaks", true, "use the measured peaks of workloads whose pods declare none")
	reports := set.Bool("report", true, "report evictions to the service, which needs the role place")
	set.DurationVar(&c.snapshotInterval, "snapshot-interval", snapshot.DefaultInterval, "`time` between two snapshots of the network")
	set.DurationVar(&c.age, "max-age", snapshot.DefaultMaxAge, "`age` from which a snapshot no longer counts")
	if err := parse(set, arguments); err != nil {
		return err
	}
	parsed, err := evictor.ParseMode(*mode)
	if err != nil {
		return c.invalid(err)
	}
	moves, err := evictor.ParseMoves(*source)
	if err != nil {
		return c.invalid(err)
	}
	names, err := schedulerNames(*schedulers)
	if err != nil {
		return err
	}
	// An invalid setting must not wait for the service, whose settings are checked below.
	s.Threshold = cmp.Or(asked.threshold, s.Threshold)
	if err := s.Check(asked.interval); err != nil {
		return c.invalid(err)
	}
	if s.Window < c.snapshotInterval {
		return fmt.Errorf("%w: --window: %v: expected at least the interval of snapshots, %v", errUsage, s.Window, c.snapshotInterval)
	}
	if asked.alpha != 0 {
		if _, err := ledger.NewEstimator(time.Second, asked.alpha); err != nil {
			return c.invalid(err)
		}
	}
	p, err := c.start(ctx, log)
	if err != nil {
		return err
	}
	if err := p.ask(ctx, &asked); err != nil {
		return err
	}
	s.Threshold = asked.threshold
	estimator, err := ledger.NewEstimator(asked.interval, asked.alpha)
	if err != nil {
		return c.invalid(err)
	}
	p.settings.Windows = true
	snapshots, err := snapshot.NewClient(p.settings)
	if err != nil {
		return c.invalid(err)
	}
	feed := snapshot.NewFeed(snapshots.Settings().MaxAge)
	p.registry.RawMustRegister(metrics.NewGaugeFunc(&metrics.GaugeOpts{
		Namespace: "leeward", Subsystem: "evictor", Name: "snapshot_age_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Age of the last snapshot of the network; -1 before the first.",
	}, func() float64 {
		if last := feed.Last(); last != nil {
			return last.Age(time.Now()).Seconds()
		}
		return -1
	}))
	objects := p.watch(ctx, names)
	options := evictor.Options{
		Mode: parsed, Settings: s, Estimator: estimator, MaxAge: snapshots.Settings().MaxAge, Client: p.kube,
		Namespace: p.namespace, Name: p.name, Cluster: objects.cluster, Events: p.recorder(),
		Metrics: evictor.NewMetrics(p.registry), Log: log,
	}
	if *reports {
		options.Service = p.service
	}
	if moves == evictor.Advised {
		options.Advisor = p.service
	}
	if *measured {
		// The follower has a client of its own: its failures must not move the snapshots to another address.
		client, err := snapshot.NewClient(p.settings)
		if err != nil {
			return c.invalid(err)
		}
		follower := peaks.New(peaks.Options{Call: client.Call, Now: time.Now, Random: rand.Float64, Log: log})
		options.Peaks = follower.Peaks
		go follower.Run(ctx)
	}
	runner, err := evictor.NewRunner(options)
	if err != nil {
		return c.invalid(err)
	}
	go snapshot.NewFollower(snapshots, feed, runner.OnSnapshot, rand.Float64, log).Run(ctx)
	log.Info("evictor", "mode", string(parsed), "moves", string(moves), "threshold", s.Threshold, "window", s.Window, "hot_windows", s.HotWindows,
		"interval", asked.interval, "alpha", asked.alpha, "derived_links", s.DerivedLinks, "schedulers", *schedulers)
	return p.run(ctx, runner.Run)
}

// objects are the informers of the evictor.
type objects struct {
	factory informers.SharedInformerFactory
	synced  []cache.InformerSynced
	// schedulers are those whose pods may leave, nil for all.
	schedulers []string
}

// watch starts the informers of pods, nodes and budgets.
func (p *process) watch(ctx context.Context, schedulers []string) *objects {
	o := &objects{schedulers: schedulers, factory: informers.NewSharedInformerFactoryWithOptions(p.kube, 0, informers.WithTransform(withoutManagedFields))}
	for _, informer := range []cache.SharedIndexInformer{
		o.factory.Core().V1().Pods().Informer(), o.factory.Core().V1().Nodes().Informer(),
		o.factory.Policy().V1().PodDisruptionBudgets().Informer(),
	} {
		o.synced = append(o.synced, informer.HasSynced)
	}
	o.factory.Start(ctx.Done())
	go func() {
		p.ready.Store(cache.WaitForCacheSync(ctx.Done(), o.synced...))
	}()
	return o
}

// withoutManagedFields drops the fields that take most memory and that nothing here reads.
func withoutManagedFields(object any) (any, error) {
	if accessor, ok := object.(metav1.Object); ok {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// cluster returns the objects, nil while the informers are not in step.
func (o *objects) cluster() *evictor.Cluster {
	for _, synced := range o.synced {
		if !synced() {
			return nil
		}
	}
	result := evictor.Cluster{Schedulers: o.schedulers}
	var err error
	if result.Pods, err = o.factory.Core().V1().Pods().Lister().List(labels.Everything()); err != nil {
		return nil
	}
	if result.Nodes, err = o.factory.Core().V1().Nodes().Lister().List(labels.Everything()); err != nil {
		return nil
	}
	if result.Budgets, err = o.factory.Policy().V1().PodDisruptionBudgets().Lister().List(labels.Everything()); err != nil {
		return nil
	}
	return &result
}

func metaOf(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}
