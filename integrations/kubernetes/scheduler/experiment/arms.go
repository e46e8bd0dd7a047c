package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"

	"leeward.dev/kubernetes/arguments"
	"leeward.dev/kubernetes/evictor"
	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/networkload"
	"leeward.dev/kubernetes/scheduler/controlplane"
	"leeward.dev/kubernetes/snapshot"
)

// arm names the parts of Leeward beside kube-scheduler.
type arm string

const (
	armDefault     arm = "default"
	armNetworkLoad arm = "network-load"
	armEvictor     arm = "evictor"
	armBoth        arm = "both"
)

var arms = []arm{armDefault, armNetworkLoad, armEvictor, armBoth}

func parseArm(text string) (arm, error) {
	if of := arm(text); slices.Contains(arms, of) {
		return of, nil
	}
	return "", fmt.Errorf("-arm: %q: expected one of %v", text, arms)
}

func (a arm) hasPlugin() bool  { return a == armNetworkLoad || a == armBoth }
func (a arm) hasEvictor() bool { return a == armEvictor || a == armBoth }

// Settings of the parts beyond their defaults.
const (
	// snapshotInterval is the time between two snapshots: the shortest one, because a tick is short.
	snapshotInterval = 100 * time.Millisecond
	// deadline and maxAge are longer than their defaults for a machine that runs a whole control plane.
	deadline = 2 * time.Second
	maxAge   = 10 * time.Second
	// pluginWeight is that of the Helm chart.
	pluginWeight = 2
	// hourlyBudget is the evictor's largest one. The clock of the machine has no hour in a run.
	hourlyBudget = 1000
	// warmUp is the time in which the plugin gets its first snapshots.
	warmUp = 2 * time.Second
)

// snapshotsOf returns the connection to the service.
func snapshotsOf(controller string) snapshot.Settings {
	return snapshot.Settings{
		Controllers: []string{controller}, Interval: snapshotInterval, Deadline: deadline, MaxAge: maxAge,
	}
}

// parts are the running parts of an arm.
type parts struct {
	stop func()
	// evictor has the metrics of the evictor, nil without one.
	evictor metrics.KubeRegistry
}

// check returns an error if the evictor reads estimates, as beside an earlier version of the service. Its decisions would not be
// those on the means of windows.
func (p *parts) check() error {
	if p.evictor == nil {
		return nil
	}
	families, err := p.evictor.Gather()
	if err != nil {
		return err
	}
	for _, family := range families {
		if family.GetName() != "leeward_evictor_inverts_estimates" {
			continue
		}
		if family.GetMetric()[0].GetGauge().GetValue() != 0 {
			return errors.New("the service sends no last windows of links, so the evictor reads estimates: run `leewardd` of this version")
		}
		return nil
	}
	return errors.New("the evictor does not count in leeward_evictor_inverts_estimates")
}

// startParts starts the scheduler of an arm, and its evictor. A tick of the clock is the interval of reports.
func startParts(ctx context.Context, plane *controlplane.ControlPlane, of arm, controller string, tick time.Duration) (*parts, error) {
	scheduler := controlplane.Scheduler{
		Weight: pluginWeight, BeforeFirst: func(ctx context.Context) { pause(ctx, warmUp) },
	}
	if of.hasPlugin() {
		scheduler.NetworkLoad = &networkload.Args{
			Service: arguments.Service{
				Controllers: []string{controller}, Interval: metav1.Duration{Duration: snapshotInterval},
				Deadline: metav1.Duration{Duration: deadline}, MaxAge: metav1.Duration{Duration: maxAge},
			},
			ReportInterval: metav1.Duration{Duration: tick},
		}
	}
	stopScheduler, err := plane.StartScheduler(ctx, scheduler)
	if err != nil {
		return nil, err
	}
	if !of.hasEvictor() {
		return &parts{stop: stopScheduler}, nil
	}
	registry := metrics.NewKubeRegistry()
	stopEvictor, err := startEvictor(ctx, plane, controller, tick, registry)
	if err != nil {
		stopScheduler()
		return nil, err
	}
	return &parts{evictor: registry, stop: func() {
		stopEvictor()
		stopScheduler()
	}}, nil
}

// startEvictor starts an evictor with its default settings. Those in times are by default numbers of the window, a minute:
// here the window is a tick.
func startEvictor(
	ctx context.Context, plane *controlplane.ControlPlane, controller string, tick time.Duration, registry metrics.KubeRegistry,
) (stop func(), err error) {
	settings := evictor.DefaultSettings()
	settings.Lasts = tick * (settings.Lasts / settings.Window)
	settings.Window, settings.HourlyBudget = tick, hourlyBudget
	estimator, err := ledger.NewEstimator(tick, ledger.DefaultAlpha)
	if err != nil {
		return nil, err
	}
	service, err := httpapi.New(snapshotsOf(controller), httpapi.DefaultDeadline)
	if err != nil {
		return nil, err
	}
	return plane.StartEvictor(ctx, controlplane.Evictor{
		Name: "leeward-evictor", Mode: evictor.Evict, Settings: settings, Estimator: estimator,
		Snapshots: snapshotsOf(controller), Service: service, Metrics: registry,
	})
}

// pause waits for a time, or for the end of the context.
func pause(ctx context.Context, length time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(length):
	}
}
