package controlplane

import (
	"k8s.io/component-base/metrics/legacyregistry"

	"leeward.dev/kubernetes/score"
)

// RankedPods returns the number of scheduling cycles of this process in which the network ranked the nodes.
func RankedPods() float64 {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return 0
	}
	for _, family := range families {
		if family.GetName() != "leeward_pods_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == string(score.Ranked) {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}
