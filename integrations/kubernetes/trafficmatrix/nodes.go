package trafficmatrix

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"leeward.dev/kubernetes/snapshot"
)

// resources are requests of a pod: thousandths of processors, and bytes.
type resources struct{ cpu, memory int64 }

func (r *resources) add(list corev1.ResourceList) {
	r.cpu += list.Cpu().MilliValue()
	r.memory += list.Memory().Value()
}

func (r *resources) atLeast(other resources) {
	r.cpu, r.memory = max(r.cpu, other.cpu), max(r.memory, other.memory)
}

// requestsOf returns the resources that a pod requests of its node, as the scheduler counts them: those of the containers and
// of the sidecars together, or more if an init container needs it, with the overhead.
func requestsOf(pod *corev1.Pod) resources {
	var sum, most, sidecars resources
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars.add(container.Resources.Requests)
			most.atLeast(sidecars)
			continue
		}
		during := sidecars
		during.add(container.Resources.Requests)
		most.atLeast(during)
	}
	sum = sidecars
	for i := range pod.Spec.Containers {
		sum.add(pod.Spec.Containers[i].Resources.Requests)
	}
	sum.atLeast(most)
	if pod.Spec.Resources != nil {
		// Requests of the whole pod replace those of its containers.
		if cpu, ok := pod.Spec.Resources.Requests[corev1.ResourceCPU]; ok {
			sum.cpu = cpu.MilliValue()
		}
		if memory, ok := pod.Spec.Resources.Requests[corev1.ResourceMemory]; ok {
			sum.memory = memory.Value()
		}
	}
	sum.add(pod.Spec.Overhead)
	return resources{cpu: max(sum.cpu, 0), memory: max(sum.memory, 0)}
}

// full returns the hosts of the controller that can take none of the pods, for the controller to leave out: they are no nodes,
// do not accept pods, or lack resources. Other reasons show when the pods are scheduled.
func full(names *snapshot.Names, nodes []*corev1.Node, running, pods []*corev1.Pod) []string {
	free := map[string]resources{}
	for _, node := range nodes {
		if isOpen(node, pods) {
			free[node.Name] = resources{cpu: node.Status.Allocatable.Cpu().MilliValue(), memory: node.Status.Allocatable.Memory().Value()}
		}
	}
	for _, pod := range running {
		left, ok := free[pod.Spec.NodeName]
		if !ok || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		takes := requestsOf(pod)
		free[pod.Spec.NodeName] = resources{cpu: left.cpu - takes.cpu, memory: left.memory - takes.memory}
	}
	wants := make([]resources, 0, len(pods))
	for _, pod := range pods {
		wants = append(wants, requestsOf(pod))
	}
	var result []string
	for host := range names.Hosts() {
		name := names.HostName(int32(host))
		left, ok := free[name]
		fits := func(r resources) bool { return r.cpu <= left.cpu && r.memory <= left.memory }
		if !ok || !slices.ContainsFunc(wants, fits) {
			result = append(result, name)
		}
	}
	return result
}

// isOpen returns true if a node accepts one of the pods by its state, taints and labels.
func isOpen(node *corev1.Node, pods []*corev1.Pod) bool {
	if node.Spec.Unschedulable {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return false
		}
	}
	return slices.ContainsFunc(pods, func(pod *corev1.Pod) bool {
		for _, taint := range node.Spec.Taints {
			if taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerates(pod, &taint) {
				return false
			}
		}
		for label, value := range pod.Spec.NodeSelector {
			if node.Labels[label] != value {
				return false
			}
		}
		return true
	})
}

// tolerates returns true if a pod tolerates a taint. Operators that compare numbers count as tolerations: the scheduler looks
// at them more closely.
func tolerates(pod *corev1.Pod, taint *corev1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		if (t.Effect != "" && t.Effect != taint.Effect) || (t.Key != "" && t.Key != taint.Key) {
			return false
		}
		isEqual := t.Operator == "" || t.Operator == corev1.TolerationOpEqual
		return !isEqual || t.Value == taint.Value
	})
}
