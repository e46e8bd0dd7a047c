package trafficmatrix

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// activationInterval is the time between two attempts to wake pods whose nomination the queue may not have seen yet.
const activationInterval = 20 * time.Millisecond

// admit returns true if a pod may go to the scheduling queue.
func (as *apps) admit(pod *corev1.Pod, now time.Time) bool {
	as.mutex.Lock()
	defer as.mutex.Unlock()
	a := as.byPod[pod.UID]
	if a == nil {
		// The queue may be ahead of the informer. Of a known pod it may have an older version, which does not count.
		if a = as.setPodLocked(pod, now); a == nil {
			return true
		}
	}
	m := a.members[pod.UID]
	if known := pod.Status.NominatedNodeName != ""; known != m.known {
		// The other pods may go now.
		m.known, a.wakeAt = known, time.Time{}
	}
	m.admitted = m.admitted || a.lets(m, now)
	return m.admitted
}

// lets returns true if a pod need not wait any longer. The scheduler tries the nominated node first, so pods wait until the
// queue has all nominations. They go together: the queue would begin the cycle of a PodGroup with the pods that it has, and
// erase their nominations once they are too few.
func (a *app) lets(m *member, now time.Time) bool {
	if a.foreign != nil || !now.Before(a.deadline) {
		return true
	}
	switch a.phase {
	case gathering, asking:
		return false
	case placed:
		return m.task == noTask || a.all(func(m *member) bool { return m.known || m.admitted })
	}
	return true
}

// all returns true if a condition holds for all pods that wait for a nomination.
func (a *app) all(holds func(*member) bool) bool {
	for _, m := range a.members {
		if m.task != noTask && !m.refused && m.node() == "" && !holds(m) {
			return false
		}
	}
	return true
}

// set replaces the pod by another version. The scheduler erases the nomination of a pod that finds no node, so the pod is then
// nominated again.
func (m *member) set(pod *corev1.Pod) {
	if m.pod.Status.NominatedNodeName != "" && pod.Status.NominatedNodeName == "" && pod.Spec.NodeName == "" {
		m.nominated = false
	}
	m.pod = pod
}

// nominate sends the nominations that are due.
func (a *app) nominate(now time.Time, result *steps) {
	if !now.Before(a.deadline) {
		return
	}
	a.number()
	for _, m := range a.byTask() {
		if m != nil && !m.nominated && m.node() == "" {
			m.nominated = true
			result.nominate = append(result.nominate, nomination{pod: m.pod, host: a.hosts[m.task]})
		}
	}
}

// refused says that the API server did not take the nomination of a pod, which then waits no longer.
func (as *apps) refused(uid types.UID) {
	as.mutex.Lock()
	defer as.mutex.Unlock()
	if a := as.byPod[uid]; a != nil {
		a.members[uid].refused = true
	}
}

// wakeUp wakes pods that need not wait any longer.
func (a *app) wakeUp(now time.Time, result *steps) {
	if a.phase == placed && a.foreign == nil && now.Before(a.deadline) {
		a.wakeTogether(now, result)
		return
	}
	for _, m := range a.members {
		if !m.admitted && !m.woken && m.node() == "" && a.lets(m, now) {
			m.woken = true
			result.wake = append(result.wake, m.pod)
		}
	}
}

// wakeTogether wakes the pods of a placed app once all nominations have arrived, and again until they go: the queue may have
// older versions of the pods than the informer.
func (a *app) wakeTogether(now time.Time, result *steps) {
	var waiting []*corev1.Pod
	for _, m := range a.members {
		if !m.admitted && m.node() == "" {
			waiting = append(waiting, m.pod)
		}
	}
	if len(waiting) == 0 {
		return
	}
	result.at(a.deadline)
	if !a.all(func(m *member) bool { return m.admitted || m.pod.Status.NominatedNodeName != "" }) {
		return
	}
	if !now.Before(a.wakeAt) {
		a.wakeAt = now.Add(activationInterval)
		result.wake = append(result.wake, waiting...)
	}
	result.at(a.wakeAt)
}
