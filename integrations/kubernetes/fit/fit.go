// Package fit says whether a node can take a pod, before the scheduler is asked: by the state of the node, its taints, the node
// selector and the required node affinity of the pod, and their resources. It uses the rules of kube-scheduler for these. All
// other rules, such as affinities between pods, are left to the scheduler.
package fit

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"
	scheduling "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// Resources are amounts by the name of the resource: processors in thousandths, all others in their own unit.
type Resources map[string]int64

// Requests returns the resources that the scheduler reserves for a pod. A pod is one of `pods`.
func Requests(pod *corev1.Pod) Resources {
	amounts := amountsOf(resource.PodRequests(pod, resource.PodResourcesOptions{UseStatusResources: true}))
	amounts[string(corev1.ResourcePods)] = 1
	for name, amount := range amounts {
		if amount == 0 {
			// A request of nothing fits also where the node does not list the resource.
			delete(amounts, name)
		}
	}
	return amounts
}

// Allocatable returns the resources of a node for pods.
func Allocatable(node *corev1.Node) Resources { return amountsOf(node.Status.Allocatable) }

func amountsOf(list corev1.ResourceList) Resources {
	amounts := make(Resources, len(list)+1)
	for name, quantity := range list {
		if name == corev1.ResourceCPU {
			amounts[string(name)] = quantity.MilliValue()
		} else {
			amounts[string(name)] = quantity.Value()
		}
	}
	return amounts
}

// Add adds other resources to these.
func (r Resources) Add(other Resources) {
	for name, amount := range other {
		r[name] += amount
	}
}

// Take takes other resources out of these.
func (r Resources) Take(other Resources) {
	for name, amount := range other {
		r[name] -= amount
	}
}

// Fit returns true if all amounts fit into free ones.
func (r Resources) Fit(free Resources) bool {
	for name, amount := range r {
		if amount > free[name] {
			return false
		}
	}
	return true
}

// IsOpen returns true if a node is ready and not cordoned.
func IsOpen(node *corev1.Node) bool {
	if node.Spec.Unschedulable {
		return false
	}
	for i := range node.Status.Conditions {
		if condition := &node.Status.Conditions[i]; condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Constraints are the conditions of a pod for its node: tolerations, node selector and required node affinity. The zero value
// is that of a pod without any.
type Constraints struct {
	affinity    nodeaffinity.RequiredNodeAffinity
	tolerations []corev1.Toleration
}

// ConstraintsOf returns those of a pod.
func ConstraintsOf(pod *corev1.Pod) Constraints {
	return Constraints{affinity: nodeaffinity.GetRequiredNodeAffinity(pod), tolerations: pod.Spec.Tolerations}
}

// Allow returns true if a pod may run on a node with a name, labels and taints.
func (c *Constraints) Allow(name string, labels map[string]string, taints []corev1.Taint) bool {
	rejects := func(taint *corev1.Taint) bool { return taint.Effect != corev1.TaintEffectPreferNoSchedule }
	if _, isTainted := scheduling.FindMatchingUntoleratedTaint(klog.Background(), taints, c.tolerations, rejects, true); isTainted {
		return false
	}
	matches, err := c.affinity.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	return matches && err == nil
}
