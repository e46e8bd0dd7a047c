package evictor

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/fit"
)

// Cluster is the state of a Kubernetes cluster as informers have it. Nothing in it is changed.
type Cluster struct {
	Pods    []*corev1.Pod
	Nodes   []*corev1.Node
	Budgets []*policyv1.PodDisruptionBudget
	// Schedulers are the names of schedulers whose pods may leave; nil for those of every scheduler.
	Schedulers []string
}

// Places are the pods and nodes of a cluster as decisions need them.
type Places struct {
	// Pods are those with a node, and Nodes all nodes.
	Pods  []Pod
	Nodes []Node
	// Disruptions are the numbers of disruptions that each PodDisruptionBudget allows now.
	Disruptions map[string]int32
	// Problems are the invalid annotations.
	Problems []error
}

// Places returns the pods and nodes of the cluster. rackOf returns the rack of a node, empty if the service does not know the
// node. peaks may be nil.
func (c *Cluster) Places(rackOf func(node string) string, peaks demand.Peaks) Places {
	budgets, disruptions := budgetsOf(c.Budgets)
	places := Places{Disruptions: disruptions}
	used := map[string]fit.Resources{}
	for _, pod := range c.Pods {
		if pod.Spec.NodeName == "" || isTerminal(pod) {
			continue
		}
		needs, err := demand.Of(pod, peaks)
		if err != nil {
			places.Problems = append(places.Problems, err)
		}
		requests := fit.Requests(pod)
		if used[pod.Spec.NodeName] == nil {
			used[pod.Spec.NodeName] = fit.Resources{}
		}
		used[pod.Spec.NodeName].Add(requests)
		budget, several := budgets.of(pod)
		places.Pods = append(places.Pods, Pod{
			UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name,
			Node: pod.Spec.NodeName, Rack: rackOf(pod.Spec.NodeName), Workload: workloadOf(pod),
			Rates:    [2]int64{rate(needs.Egress.Bps), rate(needs.Ingress.Bps)},
			Unknown:  [2]bool{needs.Egress.Source == demand.Unknown, needs.Ingress.Source == demand.Unknown},
			Requests: requests, Constraints: fit.ConstraintsOf(pod), Stays: c.staysOf(pod, needs, several), Budget: budget,
		})
	}
	for _, node := range c.Nodes {
		free := fit.Allocatable(node)
		free.Take(used[node.Name])
		places.Nodes = append(places.Nodes, Node{
			Name: node.Name, Rack: rackOf(node.Name), Free: free, Labels: node.Labels, Taints: node.Spec.Taints,
			Accepts: fit.IsOpen(node),
		})
	}
	// Informers list in any order, and decisions do not depend on it.
	slices.SortFunc(places.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(places.Pods, func(a, b Pod) int { return cmp.Compare(a.UID, b.UID) })
	return places
}

// sightings returns the pods of a cluster as records follow them, the oldest first.
func (c *Cluster) sightings(rackOf func(node string) string) []Sighting {
	seen := make([]Sighting, 0, len(c.Pods))
	for _, pod := range c.Pods {
		if isTerminal(pod) {
			continue
		}
		sighting := Sighting{
			UID: string(pod.UID), Workload: workloadOf(pod), Created: pod.CreationTimestamp.Time, Rack: rackOf(pod.Spec.NodeName),
		}
		if pod.Status.StartTime != nil {
			sighting.Started = pod.Status.StartTime.Time
		}
		seen = append(seen, sighting)
	}
	slices.SortFunc(seen, func(a, b Sighting) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
	})
	return seen
}

// workloadOf returns the owner of a pod as text.
func workloadOf(pod *corev1.Pod) string {
	owner := demand.WorkloadOf(pod)
	return owner.Kind + "/" + owner.Namespace + "/" + owner.Name
}

func isTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// staysOf returns the reason for which a pod never leaves, empty if it can.
func (c *Cluster) staysOf(pod *corev1.Pod, needs demand.Demand, severalBudgets bool) Reason {
	owner := metav1.GetControllerOf(pod)
	_, mirrored := pod.Annotations[corev1.MirrorPodAnnotationKey]
	switch {
	case !needs.Migratable:
		return NotMigratable
	case mirrored || (owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")):
		return Bound
	case owner == nil:
		return NoController
	case c.Schedulers != nil && !slices.Contains(c.Schedulers, cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)):
		return OtherScheduler
	case pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning:
		return NotRunning
	case severalBudgets:
		return ManyBudgets
	}
	return ""
}

// budgetIndex finds the budgets of pods.
type budgetIndex map[string][]selectedBudget

type selectedBudget struct {
	name     string
	selector labels.Selector
}

// budgetsOf returns the budgets by namespace, and the disruptions that each allows. A budget that the disruption controller
// has not seen since its last change allows none, as in the Eviction API.
func budgetsOf(budgets []*policyv1.PodDisruptionBudget) (budgetIndex, map[string]int32) {
	index, disruptions := budgetIndex{}, map[string]int32{}
	for _, budget := range budgets {
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			// The API rejects invalid selectors; one that came through selects nothing there.
			continue
		}
		name := budget.Namespace + "/" + budget.Name
		index[budget.Namespace] = append(index[budget.Namespace], selectedBudget{name, selector})
		disruptions[name] = budget.Status.DisruptionsAllowed
		if budget.Status.ObservedGeneration < budget.Generation {
			disruptions[name] = 0
		}
	}
	return index, disruptions
}

// of returns the budget of a pod, and true if several select it.
func (b budgetIndex) of(pod *corev1.Pod) (string, bool) {
	found, several := "", false
	for _, budget := range b[pod.Namespace] {
		if budget.selector.Matches(labels.Set(pod.Labels)) {
			several = found != ""
			found = budget.name
			if several {
				break
			}
		}
	}
	return found, several
}
