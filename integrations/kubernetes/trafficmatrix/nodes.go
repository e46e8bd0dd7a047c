package trafficmatrix

import (
	corev1 "k8s.io/api/core/v1"

	"leeward.dev/kubernetes/fit"
	"leeward.dev/kubernetes/snapshot"
)

// full returns the hosts of the controller that can take none of the pods, for the controller to leave out: they are no nodes,
// do not accept the pods, or lack resources. Other reasons show when the pods are scheduled.
func full(names *snapshot.Names, nodes []*corev1.Node, running, pods []*corev1.Pod) []string {
	constraints := make([]fit.Constraints, len(pods))
	requests := make([]fit.Resources, len(pods))
	for i, pod := range pods {
		constraints[i], requests[i] = fit.ConstraintsOf(pod), fit.Requests(pod)
	}
	byName, free := map[string]*corev1.Node{}, map[string]fit.Resources{}
	for _, node := range nodes {
		if fit.IsOpen(node) {
			byName[node.Name], free[node.Name] = node, fit.Allocatable(node)
		}
	}
	for _, pod := range running {
		left, ok := free[pod.Spec.NodeName]
		if ok && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			left.Take(fit.Requests(pod))
		}
	}
	takes := func(node *corev1.Node) bool {
		for i := range pods {
			if requests[i].Fit(free[node.Name]) && constraints[i].Allow(node.Name, node.Labels, node.Spec.Taints) {
				return true
			}
		}
		return false
	}
	var result []string
	for host := range names.Hosts() {
		if name := names.HostName(int32(host)); byName[name] == nil || !takes(byName[name]) {
			result = append(result, name)
		}
	}
	return result
}
