package trafficmatrix

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	appsTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "leeward", Name: "matrix_apps_total", StabilityLevel: metrics.ALPHA,
		Help: "Changes of the condition Placed of traffic matrices, of Valid to false, and of Complete to false without any pod, by reason.",
	}, []string{"reason"})
	podsTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "leeward", Name: "matrix_pods_total", StabilityLevel: metrics.ALPHA,
		Help: "Bound pods with a traffic matrix, by how they got their node: the chosen host, one by pairwise times, or another.",
	}, []string{"by"})
	failuresTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "leeward", Name: "matrix_failures_total", StabilityLevel: metrics.ALPHA,
		Help: "Failed requests about apps with a traffic matrix, to the controller or to the API server.",
	}, []string{"request"})
)

// register registers the metrics of this process once.
var register = sync.OnceFunc(func() { legacyregistry.MustRegister(appsTotal, podsTotal, failuresTotal) })
