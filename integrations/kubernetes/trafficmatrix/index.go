package trafficmatrix

import (
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"leeward.dev/kubernetes/api/v1alpha1"
)

// spec is the spec of a matrix as an app. That of a large matrix takes a while, so it is read without the mutex of the apps.
type spec struct {
	traffic   *v1alpha1.App
	problem   error
	groups    []v1alpha1.Group
	selectors []labels.Selector
	// keys are those of the index. Each pod of the app has one of them.
	keys []string
}

func specOf(matrix *v1alpha1.TrafficMatrix) spec {
	s := spec{groups: matrix.Spec.Groups}
	if s.traffic, s.problem = matrix.Spec.App(); s.problem != nil {
		return s
	}
	for i := range s.groups {
		group := &s.groups[i]
		selector := labels.Nothing()
		if group.Selector != nil {
			// The conversion to an app has checked it.
			selector, _ = metav1.LabelSelectorAsSelector(group.Selector)
			s.keys = append(s.keys, keyOfSelector(matrix.Namespace, group.Selector))
		}
		s.selectors = append(s.selectors, selector)
		for _, pod := range group.Pods {
			s.keys = append(s.keys, keyOfName(matrix.Namespace, pod))
		}
	}
	return s
}

// groupOf returns the first group that a pod belongs to, -1 if there is none.
func (s *spec) groupOf(pod *corev1.Pod) int {
	if s.problem != nil {
		return -1
	}
	for i := range s.groups {
		if slices.Contains(s.groups[i].Pods, pod.Name) || s.selectors[i].Matches(labels.Set(pod.Labels)) {
			return i
		}
	}
	return -1
}

// A label with its value has the sign =, which no name has, and the key of all pods has the sign *.

func keyOfName(namespace, pod string) string { return namespace + "/" + pod }

func keyOfLabel(namespace, label, value string) string { return namespace + "/" + label + "=" + value }

func keyOfAll(namespace string) string { return namespace + "/*" }

// keyOfSelector returns the key of one label that all selected pods have.
func keyOfSelector(namespace string, selector *metav1.LabelSelector) string {
	for _, label := range slices.Sorted(maps.Keys(selector.MatchLabels)) {
		return keyOfLabel(namespace, label, selector.MatchLabels[label])
	}
	return keyOfAll(namespace)
}

// index finds the apps that a pod may belong to, without a look at all matrices of its namespace.
type index map[string]map[*app]bool

func (x index) add(a *app) {
	for _, key := range a.keys {
		if x[key] == nil {
			x[key] = map[*app]bool{}
		}
		x[key][a] = true
	}
}

func (x index) remove(a *app) {
	for _, key := range a.keys {
		if delete(x[key], a); len(x[key]) == 0 {
			delete(x, key)
		}
	}
}

// candidates returns the apps that have a key of the pod.
func (x index) candidates(pod *corev1.Pod) iter.Seq[*app] {
	return func(yield func(*app) bool) {
		keys := []string{keyOfAll(pod.Namespace), keyOfName(pod.Namespace, pod.Name)}
		for label, value := range pod.Labels {
			keys = append(keys, keyOfLabel(pod.Namespace, label, value))
		}
		for _, key := range keys {
			for a := range x[key] {
				if !yield(a) {
					return
				}
			}
		}
	}
}
