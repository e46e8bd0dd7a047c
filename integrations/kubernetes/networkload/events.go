package networkload

import (
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/score"
)

// Reasons of events.
const (
	// InvalidAnnotation is about a pod with an annotation that does not count.
	InvalidAnnotation = "InvalidNetworkAnnotation"
	// Unavailable is about a pod that was placed without regard to the network.
	Unavailable = "NetworkUnavailable"
	// UnknownNode is about a node that the service does not know.
	UnknownNode = "UnknownToLeeward"
)

// action is the action in all events of the plugin.
const action = "Scheduling"

// mostObjects is the largest number of objects whose events are remembered. Beyond it, all are forgotten, and may have a
// second event.
const mostObjects = 65_536

// unavailableInterval is the time between two events about pods that were placed without regard to the network.
const unavailableInterval = time.Minute

// announcer writes at most one event an object, since a pod may be tried again and again.
type announcer struct {
	mutex         sync.Mutex
	seen          map[types.UID]bool
	unavailableAt time.Time
}

// isNew returns true at the first call for an object.
func (a *announcer) isNew(object types.UID) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.seen[object] {
		return false
	}
	if a.seen == nil || len(a.seen) >= mostObjects {
		a.seen = map[types.UID]bool{}
	}
	a.seen[object] = true
	return true
}

// forget allows another event of an object.
func (a *announcer) forget(object types.UID) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.seen, object)
}

// invalid writes that annotations of a pod do not count.
func (a *announcer) invalid(recorder events.EventRecorder, pod *corev1.Pod, problem error) {
	if !a.isNew(pod.UID) {
		return
	}
	for _, each := range invalidAnnotationsIn(problem) {
		invalidAnnotations.WithLabelValues(each.Annotation).Inc()
	}
	recorder.Eventf(pod, nil, corev1.EventTypeWarning, InvalidAnnotation, action, "%.900s", problem.Error())
}

// invalidAnnotationsIn returns the errors about annotations that an error joins.
func invalidAnnotationsIn(problem error) []*demand.InvalidAnnotationError {
	var one *demand.InvalidAnnotationError
	if joined, ok := problem.(interface{ Unwrap() []error }); ok {
		var all []*demand.InvalidAnnotationError
		for _, each := range joined.Unwrap() {
			all = append(all, invalidAnnotationsIn(each)...)
		}
		return all
	}
	if errors.As(problem, &one) {
		return []*demand.InvalidAnnotationError{one}
	}
	return nil
}

// remedies say for each outcome without scores what is missing, and what to do about it.
var remedies = map[score.Outcome]string{
	score.NoSnapshot:   "no snapshot of the service has come: check `controllers`, the token and the network policy",
	score.Stale:        "the last snapshot is too old: check that the service runs and responds in time",
	score.OtherCluster: "the service knows fewer than half of the nodes: see `kubectl leeward check`",
	score.NoTelemetry:  "the service knows the load of none of these nodes: check the agents",
}

// unavailable writes that a pod was placed without regard to the network, once a minute.
func (a *announcer) unavailable(recorder events.EventRecorder, pod *corev1.Pod, outcome score.Outcome, now time.Time) {
	a.mutex.Lock()
	isNew := a.unavailableAt.IsZero() || now.Sub(a.unavailableAt) >= unavailableInterval
	if isNew {
		a.unavailableAt = now
	}
	a.mutex.Unlock()
	if isNew {
		recorder.Eventf(pod, nil, corev1.EventTypeNormal, Unavailable, action,
			"nodes have no scores by the network (%s): %s. The metric leeward_pods_total counts all such pods", string(outcome), remedies[outcome])
	}
}

// unknownNode writes that the service does not know a node.
func (a *announcer) unknownNode(recorder events.EventRecorder, node *corev1.Node) {
	if a.isNew(node.UID) {
		recorder.Eventf(node, nil, corev1.EventTypeWarning, UnknownNode, action,
			"the cluster of Leeward has no host %s: the node has the average score of the others", node.Name)
	}
}
