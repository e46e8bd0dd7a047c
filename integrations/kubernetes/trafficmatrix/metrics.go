package trafficmatrix

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	appsTotal = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "leeward", Name: "matrix_apps_total", StabilityLevel: metrics.ALPHA,
		Help: "Apps with a traffic matrix, by the reason of the last condition about their placement or their validity.",
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
