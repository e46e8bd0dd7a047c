// Package demand finds the peak rates at which a pod will send and receive.
//
// For each direction the first of these counts: the annotation of the pod, the measured peak of the workload that owns it,
// and the limit to which its traffic is shaped. The limit is also an upper bound of the others. Without any, the demand is
// unknown, and the pod is placed without regard to the network.
//
// An invalid annotation never stops a pod: the demand is found without it, and the error names the annotation and its value.
package demand

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"leeward.dev/kubernetes/ledger"
)

// Annotations of pods.
const (
	// PeakEgress and PeakIngress are the peak rates out of the pod and into it: a quantity in bit/s, such as 500M or 2G.
	PeakEgress  = "leeward.dev/peak-egress"
	PeakIngress = "leeward.dev/peak-ingress"
	// Migratable is "true" if the evictor may move the pod. A pod without it is never moved.
	Migratable = "leeward.dev/migratable"
	// LimitEgress and LimitIngress are the rates to which Kubernetes shapes the pod's traffic.
	LimitEgress  = "kubernetes.io/egress-bandwidth"
	LimitIngress = "kubernetes.io/ingress-bandwidth"
)

// Bounds of shaping limits in bit/s, by the bandwidth plugin of the CNI.
const (
	leastLimit = 1_000
	mostLimit  = 1_000_000_000_000_000
)

// mostText is the longest quantity that is read; no rate has more digits.
const mostText = 64

// Source says where a rate comes from.
type Source string

// Sources of rates, in the order in which they count.
const (
	// FromAnnotation means the annotation of the pod.
	FromAnnotation Source = "annotation"
	// FromHistory means the measured peak of the workload that owns the pod.
	FromHistory Source = "history"
	// FromLimit means the rate to which the traffic is shaped.
	FromLimit Source = "limit"
	// Unknown means that nothing says the rate.
	Unknown Source = "unknown"
)

// Rate is a peak rate in bit/s. An unknown rate has 0.
type Rate struct {
	Bps    int64
	Source Source
}

// Demand is the demand of a pod.
type Demand struct {
	// Egress is the rate out of the pod, Ingress the rate into it.
	Egress, Ingress Rate
	// Migratable is true if the evictor may move the pod.
	Migratable bool
}

// IsKnown returns true if a direction is known. The other one then counts as 0.
func (d Demand) IsKnown() bool { return d.Egress.Source != Unknown || d.Ingress.Source != Unknown }

// Peaks returns the measured peaks of a workload in bit/s. It returns false for a workload without measurements.
type Peaks func(workload Workload) (egressBps, ingressBps int64, ok bool)

// InvalidAnnotationError says why an annotation does not count.
type InvalidAnnotationError struct {
	// Pod is the namespace and the name of the pod.
	Pod string
	// Annotation and Value are the annotation as it is on the pod.
	Annotation, Value string
	expected          string
}

// Error returns the pod, the annotation, its value and the expected values.
func (e *InvalidAnnotationError) Error() string {
	return fmt.Sprintf("pod %s: annotation %s: %.80q: expected %s", e.Pod, e.Annotation, e.Value, e.expected)
}

// Of returns the demand of a pod. peaks may be nil. The demand is valid also with an error, which joins an
// [InvalidAnnotationError] for each invalid annotation.
func Of(pod *corev1.Pod, peaks Peaks) (Demand, error) {
	var measured [2]int64
	known := false
	if peaks != nil {
		measured[0], measured[1], known = peaks(WorkloadOf(pod))
	}
	egress, egressErr := rateOf(pod, PeakEgress, LimitEgress, measured[0], known)
	ingress, ingressErr := rateOf(pod, PeakIngress, LimitIngress, measured[1], known)
	migratable, migratableErr := isMigratable(pod)
	return Demand{Egress: egress, Ingress: ingress, Migratable: migratable},
		errors.Join(egressErr, ingressErr, migratableErr)
}

// rateOf returns the rate of one direction.
func rateOf(pod *corev1.Pod, peak, limit string, measured int64, known bool) (Rate, error) {
	declared, hasDeclared, declaredErr := quantity(pod, peak, 0, ledger.MaxRate, "a rate in bit/s such as 500M or 2G")
	shaped, hasLimit, limitErr := quantity(pod, limit, leastLimit, mostLimit, "a rate in bit/s from 1k to 1P")
	if pod.Spec.HostNetwork {
		// The traffic of the host's network is not shaped.
		hasLimit = false
	}
	rate := Rate{Source: Unknown}
	switch {
	case hasDeclared:
		rate = Rate{Bps: declared, Source: FromAnnotation}
	case known:
		rate = Rate{Bps: min(max(measured, 0), ledger.MaxRate), Source: FromHistory}
	case hasLimit:
		rate = Rate{Bps: min(shaped, ledger.MaxRate), Source: FromLimit}
	}
	if hasLimit && rate.Bps > shaped {
		rate = Rate{Bps: shaped, Source: FromLimit}
	}
	return rate, errors.Join(declaredErr, limitErr)
}

// quantity returns the value of an annotation, and whether the pod has a valid one.
func quantity(pod *corev1.Pod, annotation string, least, most int64, expected string) (int64, bool, error) {
	text, ok := pod.Annotations[annotation]
	if !ok {
		return 0, false, nil
	}
	value, ok := ParseRate(text, least, most)
	if !ok {
		return 0, false, &InvalidAnnotationError{Pod: podName(pod), Annotation: annotation, Value: text, expected: expected}
	}
	return value, true, nil
}

// ParseRate returns the rate of a quantity such as 500M or 2G in bit/s, and false for a text that is no quantity within the bounds.
func ParseRate(text string, least, most int64) (int64, bool) {
	if len(text) > mostText {
		return 0, false
	}
	parsed, err := resource.ParseQuantity(strings.TrimSpace(text))
	if err != nil || parsed.CmpInt64(least) < 0 || parsed.CmpInt64(most) > 0 {
		return 0, false
	}
	return parsed.Value(), true
}

func isMigratable(pod *corev1.Pod) (bool, error) {
	text, ok := pod.Annotations[Migratable]
	switch {
	case !ok || text == "false":
		return false, nil
	case text == "true":
		return true, nil
	}
	return false, &InvalidAnnotationError{
		Pod: podName(pod), Annotation: Migratable, Value: text, expected: `"true" or "false"`,
	}
}

func podName(pod *corev1.Pod) string {
	if pod.Name == "" {
		// A pod that its controller has not named yet.
		return pod.Namespace + "/" + pod.GenerateName + "*"
	}
	return pod.Namespace + "/" + pod.Name
}

// Workload is the owner of pods with the same traffic.
type Workload struct {
	Namespace, Kind, Name string
}

// WorkloadOf returns the workload of a pod: its controller, for a ReplicaSet of a Deployment the Deployment, and for a pod
// without a controller the pod itself.
func WorkloadOf(pod *corev1.Pod) Workload {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return Workload{Namespace: pod.Namespace, Kind: "Pod", Name: pod.Name}
	}
	kind, name := owner.Kind, owner.Name
	// A Deployment names its ReplicaSets by its own name and the hash of the pod template, which pods carry as a label.
	if hash := pod.Labels["pod-template-hash"]; kind == "ReplicaSet" && hash != "" {
		if deployment, ok := strings.CutSuffix(name, "-"+hash); ok && deployment != "" {
			kind, name = "Deployment", deployment
		}
	}
	return Workload{Namespace: pod.Namespace, Kind: kind, Name: name}
}

// MostName is the largest number of bytes of the name of a workload at the service, which rejects longer ones.
const MostName = 128

// ParseWorkload returns the workload of a text that [Workload.String] returned, and false for other texts.
func ParseWorkload(text string) (Workload, bool) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return Workload{}, false
	}
	return Workload{Namespace: parts[0], Kind: parts[1], Name: parts[2]}, true
}

// String returns the namespace, the kind and the name.
func (w Workload) String() string { return w.Namespace + "/" + w.Kind + "/" + w.Name }
