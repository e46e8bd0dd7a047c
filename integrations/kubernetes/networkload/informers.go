package networkload

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/placements"
	"leeward.dev/kubernetes/snapshot"
)

// nodesInterval is the time between two checks of the nodes.
const nodesInterval = 10 * time.Second

// existsIn returns the function that looks a pod up by its key and its UID.
func existsIn(pods cache.Store) func(key, uid string) bool {
	return func(key, uid string) bool {
		object, ok, err := pods.GetByKey(key)
		if err != nil {
			// A commitment that stays is better than a running pod without one.
			return true
		}
		pod, isPod := object.(*corev1.Pod)
		return ok && isPod && string(pod.UID) == uid
	}
}

// follow counts pods as they are bound, start and end. The pods that were bound before this process started count too.
func (t *tracker) follow(pods cache.SharedIndexInformer) error {
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if pod, ok := object.(*corev1.Pod); ok {
				t.onPod(nil, pod)
			}
		},
		UpdateFunc: func(before, after any) {
			old, _ := before.(*corev1.Pod)
			if pod, ok := after.(*corev1.Pod); ok {
				t.onPod(old, pod)
			}
		},
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				t.onEnd(pod)
			}
		},
	})
	return err
}

// onPod counts a pod that another scheduler or an earlier process has bound, and starts pods that run.
func (t *tracker) onPod(before, pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		return
	}
	uid := string(pod.UID)
	isBound := before == nil || before.Spec.NodeName == ""
	if isBound && !t.isOwn(uid) {
		t.adopt(pod, t.peaks)
	}
	if started, ok := startOf(pod); ok {
		if _, known := startOf(before); !known {
			t.placements.Start(uid, started)
		}
	}
}

// adopt counts a pod that this process has not placed, in so far as telemetry does not show it: in full before it starts,
// and then with the share that the estimates of its links lack.
func (t *tracker) adopt(pod *corev1.Pod, peaks demand.Peaks) {
	wanted, _ := demand.Of(pod, peaks)
	now := t.now()
	at := boundAt(pod)
	if !wanted.IsKnown() || now.Sub(at) > t.lasts {
		return
	}
	rates := ratesOf(wanted)
	if started, ok := startOf(pod); ok {
		lacking := 1 - t.placements.Estimator().Weight(int64(now.Sub(started)))
		if lacking < ledger.ShownShare {
			return
		}
		rates = placements.Rates{
			Egress: int64(lacking * float64(rates.Egress)), Ingress: int64(lacking * float64(rates.Ingress)),
		}
	}
	uid := string(pod.UID)
	t.placements.Add(uid, pod.Spec.NodeName, rates, at)
	if t.reporter != nil {
		t.reporter.Adopted(uid)
	}
}

// adoptMeasured counts pods whose demand is known with the first list of peaks only: the informer has shown them before.
func (t *tracker) adoptMeasured(pods cache.Store, peaks demand.Peaks) {
	for _, object := range pods.List() {
		pod, ok := object.(*corev1.Pod)
		if !ok || pod.Spec.NodeName == "" {
			continue
		}
		if wanted, _ := demand.Of(pod, nil); !wanted.IsKnown() {
			t.adopt(pod, peaks)
		}
	}
}

// onEnd counts a pod that has ended. A pod that the service knows is released there. Another one leaves here, once
// telemetry has shown it.
func (t *tracker) onEnd(pod *corev1.Pod) {
	uid := string(pod.UID)
	t.events.forget(pod.UID)
	t.isOwn(uid)
	isReported := t.reporter != nil && t.reporter.Release(uid)
	_, hasStarted := startOf(pod)
	wanted, _ := demand.Of(pod, t.peaks)
	if isReported || !hasStarted || !wanted.IsKnown() {
		t.placements.Remove(uid)
		return
	}
	t.placements.Leave(uid, pod.Spec.NodeName, ratesOf(wanted), t.now())
}

// startOf returns the time at which the first container of a pod started, and false for a pod that does not run.
func startOf(pod *corev1.Pod) (time.Time, bool) {
	if pod == nil || pod.Status.Phase == corev1.PodPending || pod.Status.Phase == "" {
		return time.Time{}, false
	}
	var first time.Time
	for i := range pod.Status.ContainerStatuses {
		running := pod.Status.ContainerStatuses[i].State.Running
		if running != nil && (first.IsZero() || running.StartedAt.Time.Before(first)) {
			first = running.StartedAt.Time
		}
	}
	if first.IsZero() && pod.Status.StartTime != nil {
		first = pod.Status.StartTime.Time
	}
	return first, !first.IsZero()
}

// boundAt returns the time at which a pod was bound, as far as it is known.
func boundAt(pod *corev1.Pod) time.Time {
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}

// checkNodes counts the nodes that the service does not know, again and again until the context ends.
func (t *tracker) checkNodes(ctx context.Context, nodes corelisters.NodeLister, recorder events.EventRecorder) {
	ticker := time.NewTicker(nodesInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			t.checkNodesOnce(nodes, recorder)
		}
	}
}

// checkNodesOnce writes an event of each node that the service does not know.
func (t *tracker) checkNodesOnce(nodes corelisters.NodeLister, recorder events.EventRecorder) {
	last := t.feed.Last()
	if last == nil {
		return
	}
	all, err := nodes.List(labels.Everything())
	if err != nil {
		return
	}
	missing := int64(0)
	for _, node := range all {
		if last.Names().Host(node.Name) != snapshot.None {
			t.events.forget(node.UID)
			continue
		}
		missing++
		t.events.unknownNode(recorder, node)
	}
	t.unknown.Store(missing)
}
