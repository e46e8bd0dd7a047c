package networkload

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"leeward.dev/kubernetes/snapshot"
)

// subsystem begins the names of all metrics.
const subsystem = "leeward"

var (
	outcomes = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "pods_total", StabilityLevel: metrics.ALPHA,
		Help: "Scheduling cycles with at least two possible nodes, by whether the network ranked them, or the reason for which it did not.",
	}, []string{"outcome"})
	invalidAnnotations = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "invalid_annotations_total", StabilityLevel: metrics.ALPHA,
		Help: "Pods with an invalid annotation, by the annotation.",
	}, []string{"annotation"})

	snapshotAge = description("snapshot_age_seconds", "Age of the last snapshot of the network; missing before the first.")
	snapshots   = description("snapshots_total", "Snapshots of the network, whole or as differences.", "kind")
	failures    = description("snapshot_failures_total", "Requests of snapshots that failed, by the reason.", "reason")
	counting    = description("placements", "Placements that count beside the snapshot.")
	early       = description("placements_early_total", "Placements that left early because too many counted.")
	waiting     = description("reports_waiting", "Placements whose reports wait.")
	reports     = description("reports_total", "Reports of placements, by what became of them.", "result")
	unknown     = description("unknown_nodes", "Nodes that the service does not know.")
	measured    = description("measured_workloads", "Workloads with a measured peak that counts.")
	measuredAge = description("measured_age_seconds", "Age of the last list of measured peaks; 0 before the first.")
	named       = description("named_pods_total", "Pods whose workload this scheduler has named for the service.")
	peakErrors  = description("peak_failures_total", "Failed requests about measured peaks, by the request.", "request")
)

func description(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc(subsystem+"_"+name, help, labels, nil, metrics.ALPHA, "")
}

// register registers the metrics of this process once.
var register = sync.OnceFunc(func() {
	legacyregistry.MustRegister(outcomes, invalidAnnotations)
	legacyregistry.CustomMustRegister(&collector{})
})

// collector reads the metrics of the running trackers. Several have one sum.
type collector struct{ metrics.BaseStableCollector }

// DescribeWithStability describes the metrics.
func (*collector) DescribeWithStability(to chan<- *metrics.Desc) {
	for _, each := range [...]*metrics.Desc{
		snapshotAge, snapshots, failures, counting, early, waiting, reports, unknown, measured, measuredAge, named, peakErrors,
	} {
		to <- each
	}
}

// CollectWithStability collects the metrics.
func (*collector) CollectWithStability(to chan<- metrics.Metric) {
	sum := readings{failures: map[snapshot.Failure]uint64{}, reports: map[string]uint64{}}
	for _, each := range runningTrackers() {
		each.read(&sum)
	}
	gauge := func(desc *metrics.Desc, value float64) {
		to <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, value)
	}
	count := func(desc *metrics.Desc, value uint64, labels ...string) {
		to <- metrics.NewLazyConstMetric(desc, metrics.CounterValue, float64(value), labels...)
	}
	if sum.hasSnapshot {
		gauge(snapshotAge, sum.age.Seconds())
	}
	count(snapshots, sum.whole, "whole")
	count(snapshots, sum.differences, "difference")
	for _, failure := range snapshot.Failures {
		count(failures, sum.failures[failure], string(failure))
	}
	gauge(counting, float64(sum.placements))
	count(early, sum.early)
	gauge(waiting, float64(sum.waiting))
	for _, result := range reportResults {
		count(reports, sum.reports[result], result)
	}
	gauge(unknown, float64(sum.unknown))
	gauge(measured, float64(sum.measured.Workloads))
	gauge(measuredAge, sum.measured.Age.Seconds())
	count(named, sum.measured.Named)
	count(peakErrors, sum.measured.NameFailures, "name")
	count(peakErrors, sum.measured.ReadFailures, "read")
}
