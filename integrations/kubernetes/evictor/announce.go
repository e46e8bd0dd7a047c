package evictor

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Reasons of events.
const (
	// EventEvicted is about a pod that was evicted, and about its node.
	EventEvicted = "HotRack"
	// EventDryRun is about a pod that would be evicted, and about its node.
	EventDryRun = "HotRackDryRun"
	// EventBudgetSpent is about a pod whose PodDisruptionBudget allows no disruption.
	EventBudgetSpent = "HotRackBudgetSpent"
)

// announce writes the metric, the log and the events of an eviction: one on the pod and, unless it failed, one on its node.
func (r *Runner) announce(eviction *Eviction, outcome, verb string) {
	r.options.Metrics.evictions.WithLabelValues(outcome).Inc()
	pod := eviction.Pod
	r.options.Log.Info("eviction", "pod", pod.Namespace+"/"+pod.Name, "uid", pod.UID, "outcome", outcome, "node", pod.Node,
		"link", eviction.Link, "before", eviction.Before, "after", eviction.After, "target", eviction.Target)
	regarding := &corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: types.UID(pod.UID),
	}
	node := &corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: pod.Node, UID: types.UID(pod.Node)}
	switch outcome {
	case evicted, wouldEvict:
		reason := map[string]string{evicted: EventEvicted, wouldEvict: EventDryRun}[outcome]
		why := fmt.Sprintf("%s to relieve %s, from %.0f %% to %.0f %%", verb, eviction.Link, 100*eviction.Before, 100*eviction.After)
		target := fmt.Sprintf("rack %s has room and stays cool", eviction.Target)
		if eviction.Move != "" {
			why = fmt.Sprintf("%s to relieve %s, by move %s of the service", verb, eviction.Link, eviction.Move)
			target = fmt.Sprintf("rack %s has room", eviction.Target)
		}
		r.options.Events.Eventf(regarding, node, corev1.EventTypeNormal, reason, "Evict", "%s; %s", why, target)
		r.options.Events.Eventf(node, regarding, corev1.EventTypeNormal, reason, "Evict", "pod %s/%s %s", pod.Namespace, pod.Name, why)
	case budgetSpent:
		r.options.Events.Eventf(regarding, node, corev1.EventTypeNormal, EventBudgetSpent, "Evict",
			"not evicted to relieve %s: its PodDisruptionBudget allows no disruption now", eviction.Link)
	}
}
