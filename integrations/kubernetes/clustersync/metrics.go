package clustersync

import "k8s.io/component-base/metrics"

// Metrics are the metrics of a sync.
type Metrics struct {
	steps, applied *metrics.CounterVec
	differences    *metrics.GaugeVec
	nodes, leader  *metrics.Gauge
}

// Outcomes of steps.
const (
	inStep   = "in_step"
	changed  = "changed"
	drifts   = "drifts"
	conflict = "conflict"
	failed   = "failed"
)

// NewMetrics returns metrics that a registry has.
func NewMetrics(registry metrics.KubeRegistry) *Metrics {
	counter := func(name, help, label string) *metrics.CounterVec {
		vector := metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: "leeward", Subsystem: "sync", Name: name, Help: help, StabilityLevel: metrics.ALPHA,
		}, []string{label})
		registry.MustRegister(vector)
		return vector
	}
	gauge := func(name, help string) *metrics.Gauge {
		single := metrics.NewGauge(&metrics.GaugeOpts{
			Namespace: "leeward", Subsystem: "sync", Name: name, Help: help, StabilityLevel: metrics.ALPHA,
		})
		registry.MustRegister(single)
		return single
	}
	differences := metrics.NewGaugeVec(&metrics.GaugeOpts{
		Namespace: "leeward", Subsystem: "sync", Name: "differences", StabilityLevel: metrics.ALPHA,
		Help: "Differences between the nodes and the service's cluster that remain after the last step, by kind.",
	}, []string{"kind"})
	registry.MustRegister(differences)
	return &Metrics{
		steps:       counter("steps_total", "Comparisons of the nodes with the service's cluster, by outcome.", "outcome"),
		applied:     counter("changes_total", "Changes of the service's cluster that were applied, by kind.", "kind"),
		differences: differences,
		nodes:       gauge("nodes", "Nodes of the cluster at the last step."),
		leader:      gauge("leader", "1 if this process writes, else 0."),
	}
}
