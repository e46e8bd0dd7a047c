package evictor

import "k8s.io/component-base/metrics"

// Metrics are the metrics of an evictor.
type Metrics struct {
	rounds, evictions, stays, reports, moves *metrics.CounterVec
	invalid                                  *metrics.Counter
	hot, left, leader, inverted              *metrics.Gauge
	mode                                     *metrics.GaugeVec
}

// Outcomes of rounds.
const (
	roundDecided      = "decided"
	roundStopped      = "stopped"
	roundStale        = "stale"
	roundConflict     = "conflict"
	roundUnsynced     = "not_synced"
	roundOtherCluster = "other_cluster"
	roundUnadvised    = "no_advice"
)

// Outcomes of answers to moves of the service, beside the answers themselves.
const (
	// moveClosed means that the move has another answer or has expired.
	moveClosed = "closed"
	// moveUnanswered means that the service did not accept the answer.
	moveUnanswered = "unanswered"
)

// Outcomes of evictions.
const (
	evicted     = "evicted"
	wouldEvict  = "would_evict"
	budgetSpent = "budget_spent"
	podGone     = "gone"
	rejected    = "failed"
	unanswered  = "unanswered"
)

// NewMetrics returns metrics that a registry has.
func NewMetrics(registry metrics.KubeRegistry) *Metrics {
	counter := func(name, help string, labels ...string) *metrics.CounterVec {
		vector := metrics.NewCounterVec(&metrics.CounterOpts{
			Namespace: "leeward", Subsystem: "evictor", Name: name, Help: help, StabilityLevel: metrics.ALPHA,
		}, labels)
		registry.MustRegister(vector)
		return vector
	}
	gauge := func(name, help string) *metrics.Gauge {
		single := metrics.NewGauge(&metrics.GaugeOpts{
			Namespace: "leeward", Subsystem: "evictor", Name: name, Help: help, StabilityLevel: metrics.ALPHA,
		})
		registry.MustRegister(single)
		return single
	}
	m := &Metrics{
		rounds:    counter("rounds_total", "Ends of windows, by outcome.", "outcome"),
		evictions: counter("evictions_total", "Pods that left a hot rack or were to leave it, by outcome.", "outcome"),
		stays:     counter("stays_total", "Pods that stayed on a hot link at the end of a window, by reason.", "reason"),
		reports:   counter("reports_total", "Evictions and landings that were reported to the service, by outcome.", "outcome"),
		hot:       gauge("hot_links", "Links of racks that were hot for enough windows in a row, in the last round."),
		left:      gauge("hourly_budget_left", "Evictions that the budget of the hour allows now."),
		moves:     counter("moves_total", "Answers to moves that the service advises, by outcome.", "outcome"),
		inverted:  gauge("inverts_estimates", "1 if the service is too old to send the mean of the last window, so that it is computed from estimates; else 0."),
		leader:    gauge("leader", "1 if this process decides, else 0."),
		invalid: metrics.NewCounter(&metrics.CounterOpts{
			Namespace: "leeward", Subsystem: "evictor", Name: "invalid_annotations_total", StabilityLevel: metrics.ALPHA,
			Help: "Pods with an invalid annotation, at the end of each window with a hot link.",
		}),
		mode: metrics.NewGaugeVec(&metrics.GaugeOpts{
			Namespace: "leeward", Subsystem: "evictor", Name: "mode", StabilityLevel: metrics.ALPHA,
			Help: "1 for the mode of this process: dry-run, evict or stop.",
		}, []string{"mode"}),
	}
	registry.MustRegister(m.invalid, m.mode)
	// Counters that begin at 0 show their first increase to Prometheus.
	for _, outcome := range [...]string{evicted, wouldEvict, budgetSpent, podGone, rejected, unanswered} {
		m.evictions.WithLabelValues(outcome)
	}
	for _, reason := range Reasons {
		m.stays.WithLabelValues(string(reason))
	}
	return m
}
