package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"leeward.dev/kubernetes/clustersync"
	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/ledger"
)

var syncCommand = command{
	name: "sync", summary: "Writes nodes, racks, speeds, taints and cordons into the service's cluster.",
	examples: []string{
		"leeward-kubernetes sync --controller https://leeward:7600 --token-file /etc/leeward/admin-token --ca /etc/leeward/ca.crt",
		"leeward-kubernetes sync --controller https://leeward:7600 --mode report --kubeconfig ~/.kube/config",
		"leeward-kubernetes sync --controller https://leeward:7600 --nic 25G --rack-link 100G",
	},
	run: runSync,
}

// runSync runs the sync until the context ends.
func runSync(ctx context.Context, set *flag.FlagSet, arguments []string, log *slog.Logger) error {
	var c common
	c.flags(set, "leeward-sync", "of the Lease and of events about the cluster")
	s := clustersync.DefaultSettings()
	mode := set.String("mode", string(clustersync.Apply),
		"`mode`: apply brings the service's cluster into step, report only shows differences")
	interval := set.Duration("interval", time.Minute, "`time` between two comparisons; a changed node leads to one at once")
	nic := set.String("nic", "",
		"`rate` of the interface of a node without a known speed, such as 25G; by default that of the cluster file")
	link := set.String("rack-link", "",
		"`rate` of the link of a new rack without an annotation; by default that of the cluster file")
	set.BoolVar(&s.Adopt, "adopt", false, "manage also hosts of the cluster file that are nodes")
	set.Float64Var(&s.MostRemoved, "most-removed", s.MostRemoved, "largest `share` of managed hosts that one change may remove")
	if err := parse(set, arguments); err != nil {
		return err
	}
	parsed, err := clustersync.ParseMode(*mode)
	if err != nil {
		return c.invalid(err)
	}
	if s.NIC, err = rateOf("nic", *nic); err != nil {
		return err
	}
	if s.RackLink, err = rateOf("rack-link", *link); err != nil {
		return err
	}
	p, err := c.start(ctx, log)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(p.kube, 0, informers.WithTransform(withoutManagedFields))
	nodes := factory.Core().V1().Nodes()
	informer := nodes.Informer()
	syncer, err := clustersync.NewSyncer(clustersync.Options{
		Mode: parsed, Settings: s, Service: p.service, Namespace: p.namespace, Name: p.name, Interval: *interval,
		Nodes: func() ([]*corev1.Node, bool) {
			if !informer.HasSynced() {
				return nil, false
			}
			list, err := nodes.Lister().List(labels.Everything())
			return list, err == nil
		},
		Events: p.recorder(), Metrics: clustersync.NewMetrics(p.registry), Log: log,
	})
	if err != nil {
		return c.invalid(err)
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { syncer.Wake() },
		DeleteFunc: func(any) { syncer.Wake() },
		UpdateFunc: func(before, after any) {
			if isRelevant(before.(*corev1.Node), after.(*corev1.Node)) {
				syncer.Wake()
			}
		},
	})
	if err != nil {
		return fmt.Errorf("nodes: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil
	}
	p.ready.Store(true)
	log.Info("sync", "mode", string(parsed), "interval", *interval)
	return p.run(ctx, syncer.Run)
}

// isRelevant returns true if a node has changed in more than its heartbeat.
func isRelevant(before, after *corev1.Node) bool {
	return !equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
		!equality.Semantic.DeepEqual(before.Spec, after.Spec)
}

// rateOf returns the rate of a flag in bit/s, 0 without one.
func rateOf(name, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	rate, ok := demand.ParseRate(text, 1, ledger.MaxRate)
	if !ok {
		return 0, fmt.Errorf("%w: --%s: %.80q: expected a rate in bit/s such as 25G", errUsage, name, text)
	}
	return rate, nil
}
