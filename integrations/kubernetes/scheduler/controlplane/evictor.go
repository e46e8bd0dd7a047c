package controlplane

import (
	"context"
	"log/slog"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics"

	"leeward.dev/kubernetes/evictor"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/snapshot"
)

// Evictor describes an evictor. It decides alone, without a leader election.
type Evictor struct {
	// Name is that of its ConfigMap in the namespace default.
	Name     string
	Mode     evictor.Mode
	Settings evictor.Settings
	// Estimator is that of the service, and Snapshots the connection to it.
	Estimator ledger.Estimator
	Snapshots snapshot.Settings
	// Service learns of evictions; nil for none.
	Service evictor.Service
	// Metrics has the evictor's metrics.
	Metrics metrics.KubeRegistry
}

// StartEvictor starts an evictor, and returns the function that stops it. It waits until the evictor knows all pods. As the
// program of the evictor, it takes the means of windows from snapshots that have them. Pods of every scheduler may leave.
func (c *ControlPlane) StartEvictor(ctx context.Context, e Evictor) (stop func(), err error) {
	e.Snapshots.Windows = true
	client, err := snapshot.NewClient(e.Snapshots)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	shared := informers.NewSharedInformerFactory(c.Client, 0)
	core, budgets := shared.Core().V1(), shared.Policy().V1().PodDisruptionBudgets()
	core.Pods().Informer()
	core.Nodes().Informer()
	budgets.Informer()
	shared.Start(ctx.Done())
	shared.WaitForCacheSync(ctx.Done())
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.Client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		cancel()
		return nil, err
	}
	log := slog.New(slog.DiscardHandler)
	maxAge := client.Settings().MaxAge
	runner, err := evictor.NewRunner(evictor.Options{
		Mode: e.Mode, Settings: e.Settings, Estimator: e.Estimator, MaxAge: maxAge, Client: c.Client,
		Namespace: metav1.NamespaceDefault, Name: e.Name, Service: e.Service,
		Metrics: evictor.NewMetrics(e.Metrics),
		Cluster: func() *evictor.Cluster {
			var cluster evictor.Cluster
			cluster.Pods, _ = core.Pods().Lister().List(labels.Everything())
			cluster.Nodes, _ = core.Nodes().Lister().List(labels.Everything())
			cluster.Budgets, _ = budgets.Lister().List(labels.Everything())
			return &cluster
		},
		Events: broadcaster.NewRecorder(scheme.Scheme, e.Name), Log: log,
	})
	if err != nil {
		cancel()
		return nil, err
	}
	follower := snapshot.NewFollower(client, snapshot.NewFeed(maxAge), runner.OnSnapshot, func() float64 { return 0 }, log)
	var running sync.WaitGroup
	running.Go(func() { follower.Run(ctx) })
	running.Go(func() { runner.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
		broadcaster.Shutdown()
	}, nil
}
