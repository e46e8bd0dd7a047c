package trafficmatrix

import (
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"leeward.dev/kubernetes/api/v1alpha1"
)

// next returns the status with the reported conditions, and the reports that change it.
func (a *app) next(now time.Time) (v1alpha1.TrafficMatrixStatus, []report) {
	status := a.status.DeepCopy()
	status.ObservedGeneration, status.Decision = a.matrix.Generation, a.decision
	status.Tasks, status.Pairs, status.Bytes = 0, 0, nil
	if a.traffic != nil {
		status.Tasks, status.Pairs = int32(len(a.traffic.Tasks)), int32(len(a.traffic.Pairs))
		status.Bytes = resource.NewQuantity(a.traffic.Bytes(), resource.BinarySI)
	}
	var changed []report
	for _, r := range a.reports {
		state := metav1.ConditionFalse
		if r.holds {
			state = metav1.ConditionTrue
		}
		if meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: r.condition, Status: state, Reason: r.reason, Message: r.message,
			ObservedGeneration: a.matrix.Generation, LastTransitionTime: metav1.NewTime(now),
		}) {
			changed = append(changed, r)
		}
	}
	order := []string{v1alpha1.ConditionValid, v1alpha1.ConditionComplete, v1alpha1.ConditionPlaced}
	slices.SortFunc(status.Conditions, func(a, b metav1.Condition) int {
		return slices.Index(order, a.Type) - slices.Index(order, b.Type)
	})
	return status, changed
}

// patchOf returns a merge patch that writes the whole status. Null removes a field that the status no longer has.
func patchOf(status *v1alpha1.TrafficMatrixStatus) ([]byte, error) {
	fields := map[string]any{
		"observedGeneration": status.ObservedGeneration, "tasks": status.Tasks, "pairs": status.Pairs,
		"bytes": status.Bytes, "decision": nil, "conditions": status.Conditions,
	}
	if status.Decision != "" {
		fields["decision"] = status.Decision
	}
	return json.Marshal(map[string]any{"status": fields})
}
