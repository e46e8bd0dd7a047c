package trafficmatrix

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"leeward.dev/kubernetes/api/v1alpha1"
)

// randomGroup returns a group that finds pods by names, by labels, by an expression, or all.
func randomGroup(random *rand.Rand) v1alpha1.Group {
	value := func() string { return fmt.Sprint(random.IntN(4)) }
	group := v1alpha1.Group{Name: "worker", Count: 2}
	switch random.IntN(4) {
	case 0:
		group.Pods = []string{"pod-" + value(), "pod-4"}
	case 1:
		group.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": value(), "tier": value()}}
	case 2:
		group.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: []string{value()}},
		}}
	default:
		group.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": value()}}
	}
	return group
}

func TestTheIndexFindsTheMatrixThatALookAtAllOfThemFinds(t *testing.T) {
	random, found := rand.New(rand.NewPCG(3, 4)), 0
	for range 200 {
		as := newApps(Settings{}, profile, func(time.Time) bool { return false })
		for number := range 20 {
			matrix := ringOf(fmt.Sprintf("m%d", random.IntN(10)), 2)
			matrix.Namespace = fmt.Sprintf("n%d", random.IntN(2))
			// The same matrix again has another spec.
			matrix.UID, matrix.Generation = types.UID(matrix.Namespace+matrix.Name), int64(number)
			matrix.Spec.Groups[0] = randomGroup(random)
			as.setMatrix(matrix, nil, began)
			if random.IntN(4) == 0 {
				as.dropMatrix(types.NamespacedName{Namespace: matrix.Namespace, Name: matrix.Name}, began)
			}
		}
		for range 20 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: fmt.Sprintf("n%d", random.IntN(2)), Name: fmt.Sprintf("pod-%d", random.IntN(5)),
				Labels: map[string]string{"app": fmt.Sprint(random.IntN(4)), "tier": fmt.Sprint(random.IntN(4))},
			}}
			var expected *app
			for _, a := range as.byName[pod.Namespace] {
				if a.groupOf(pod) >= 0 && (expected == nil || a.matrix.Name < expected.matrix.Name) {
					expected = a
				}
			}
			if got := as.find(pod); got != expected {
				t.Fatalf("%s with %v: %+v: expected %+v", pod.Name, pod.Labels, got, expected)
			}
			if expected != nil {
				found++
			}
		}
	}
	if found < 400 {
		t.Errorf("%d pods have a matrix: the test shows nothing", found)
	}
}

func TestAnotherVersionOfAMatrixWithTheSameSpecIsNotReadAgain(t *testing.T) {
	s := newScene(t)
	before := s.byName["ml"]["ring"].traffic
	matrix := ringOf("ring", 4)
	matrix.ResourceVersion = "7"
	s.setMatrix(matrix, nil, s.now)
	if a := s.byName["ml"]["ring"]; a.traffic != before || a.matrix != matrix {
		t.Errorf("%+v", a)
	}
}

// BenchmarkAPodBesideManyMatrices measures what the queue waits for with each new pod, in a namespace with 1,000 matrices.
func BenchmarkAPodBesideManyMatrices(b *testing.B) {
	as := newApps(Settings{Wait: 5 * time.Second, Hold: time.Minute, Absence: DefaultAbsence}, profile, func(time.Time) bool { return true })
	for number := range 1000 {
		as.setMatrix(ringOf(fmt.Sprintf("m%d", number), 8), nil, began)
	}
	pod := podOf("web", 0)
	for b.Loop() {
		if as.isMember(pod) || !as.admit(pod, began) {
			b.Fatal("the pod has no matrix")
		}
	}
}
