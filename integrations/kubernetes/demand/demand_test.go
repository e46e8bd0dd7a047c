package demand

import (
	"errors"
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"leeward.dev/kubernetes/ledger"
)

const gbps = 1_000_000_000

func pod(annotations ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-7d4b9c-x2x", Annotations: map[string]string{},
		Labels: map[string]string{"pod-template-hash": "7d4b9c"},
	}}
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-7d4b9c", Controller: &yes}}
	for i := 0; i < len(annotations); i += 2 {
		p.Annotations[annotations[i]] = annotations[i+1]
	}
	return p
}

func history(egress, ingress int64) Peaks {
	return func(Workload) (int64, int64, bool) { return egress, ingress, true }
}

func TestTheFirstOfAnnotationHistoryAndLimitCounts(t *testing.T) {
	for _, c := range []struct {
		name            string
		pod             *corev1.Pod
		peaks           Peaks
		egress, ingress Rate
	}{
		{"annotations", pod(PeakEgress, "2G", PeakIngress, "500M"), history(7, 7),
			Rate{2 * gbps, FromAnnotation}, Rate{500_000_000, FromAnnotation}},
		{"history", pod(), history(3*gbps, 0), Rate{3 * gbps, FromHistory}, Rate{0, FromHistory}},
		{"one annotation beside history", pod(PeakEgress, "2G"), history(7, 8),
			Rate{2 * gbps, FromAnnotation}, Rate{8, FromHistory}},
		{"limits", pod(LimitEgress, "10M", LimitIngress, "20M"), nil,
			Rate{10_000_000, FromLimit}, Rate{20_000_000, FromLimit}},
		{"nothing", pod(), nil, Rate{0, Unknown}, Rate{0, Unknown}},
		{"one direction", pod(PeakIngress, "1Gi"), nil, Rate{0, Unknown}, Rate{1 << 30, FromAnnotation}},
		{"a peak of zero is known", pod(PeakEgress, "0"), nil, Rate{0, FromAnnotation}, Rate{0, Unknown}},
		{"a limit bounds an annotation", pod(PeakEgress, "2G", LimitEgress, "1G"), nil,
			Rate{gbps, FromLimit}, Rate{0, Unknown}},
		{"a limit bounds history", pod(LimitIngress, "1G"), history(5, 2*gbps),
			Rate{5, FromHistory}, Rate{gbps, FromLimit}},
		{"a larger limit changes nothing", pod(PeakEgress, "2G", LimitEgress, "3G"), nil,
			Rate{2 * gbps, FromAnnotation}, Rate{0, Unknown}},
		{"absurd history is bounded", pod(), history(math.MaxInt64, math.MinInt64),
			Rate{ledger.MaxRate, FromHistory}, Rate{0, FromHistory}},
		{"a fraction is rounded up", pod(PeakEgress, "0.5"), nil, Rate{1, FromAnnotation}, Rate{0, Unknown}},
	} {
		t.Run(c.name, func(t *testing.T) {
			demand, err := Of(c.pod, c.peaks)
			if err != nil || demand.Egress != c.egress || demand.Ingress != c.ingress {
				t.Errorf("%+v, %v", demand, err)
			}
			if known := c.egress.Source != Unknown || c.ingress.Source != Unknown; demand.IsKnown() != known {
				t.Errorf("known: %v", demand.IsKnown())
			}
		})
	}
}

func TestAnInvalidAnnotationIsNamedAndTheNextSourceCounts(t *testing.T) {
	for _, value := range []string{
		"", "fast", "-1", "2X", "2Gbps", "1e99", "NaN", "Inf", "0x10", "200T", "1" + strings.Repeat("0", 100), "２G", "2 G",
	} {
		demand, err := Of(pod(PeakEgress, value, PeakIngress, "1G"), history(5, 6))
		var problem *InvalidAnnotationError
		if !errors.As(err, &problem) || problem.Annotation != PeakEgress || problem.Value != value {
			t.Errorf("%q: %v", value, err)
			continue
		}
		if text := err.Error(); !strings.Contains(text, "pod shop/web-7d4b9c-x2x: annotation leeward.dev/peak-egress: ") {
			t.Errorf("%q: %v", value, text)
		}
		if demand.Egress != (Rate{5, FromHistory}) || demand.Ingress != (Rate{gbps, FromAnnotation}) {
			t.Errorf("%q: %+v", value, demand)
		}
	}
}

func TestALimitThatKubernetesRejectsIsNoBound(t *testing.T) {
	for _, value := range []string{"999", "2P", "much"} {
		demand, err := Of(pod(PeakEgress, "2G", LimitEgress, value), nil)
		if err == nil || !strings.Contains(err.Error(), LimitEgress) {
			t.Errorf("%q: %v", value, err)
		}
		if demand.Egress != (Rate{2 * gbps, FromAnnotation}) {
			t.Errorf("%q: %+v", value, demand)
		}
	}
}

func TestLimitsDoNotHoldInTheNetworkOfTheHost(t *testing.T) {
	p := pod(PeakEgress, "2G", LimitEgress, "1G", LimitIngress, "1G")
	p.Spec.HostNetwork = true
	demand, err := Of(p, nil)
	if err != nil || demand.Egress != (Rate{2 * gbps, FromAnnotation}) || demand.Ingress != (Rate{0, Unknown}) {
		t.Errorf("%+v, %v", demand, err)
	}
}

func TestOnlyTrueMakesAPodMigratable(t *testing.T) {
	for value, expected := range map[string]struct{ migratable, valid bool }{
		"true": {true, true}, "false": {false, true}, "True": {}, "1": {}, "yes": {}, "": {},
	} {
		demand, err := Of(pod(Migratable, value), nil)
		if demand.Migratable != expected.migratable || (err == nil) != expected.valid {
			t.Errorf("%q: %v, %v", value, demand.Migratable, err)
		}
	}
	if demand, err := Of(pod(), nil); demand.Migratable || err != nil {
		t.Errorf("without the annotation: %v, %v", demand.Migratable, err)
	}
}

func TestEveryInvalidAnnotationHasItsOwnError(t *testing.T) {
	_, err := Of(pod(PeakEgress, "a", PeakIngress, "b", LimitEgress, "c", LimitIngress, "d", Migratable, "e"), nil)
	for _, annotation := range []string{PeakEgress, PeakIngress, LimitEgress, LimitIngress, Migratable} {
		if !strings.Contains(err.Error(), annotation) {
			t.Errorf("%s is missing in %v", annotation, err)
		}
	}
}

func TestReplicaSetsOfADeploymentAreOneWorkload(t *testing.T) {
	yes := true
	set := pod()
	set.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", Controller: &yes}}
	alone, bare := pod(), pod()
	alone.OwnerReferences = nil
	bare.Labels = nil
	for _, c := range []struct {
		pod      *corev1.Pod
		expected Workload
	}{
		{pod(), Workload{"shop", "Deployment", "web"}},
		{set, Workload{"shop", "StatefulSet", "db"}},
		{alone, Workload{"shop", "Pod", "web-7d4b9c-x2x"}},
		{bare, Workload{"shop", "ReplicaSet", "web-7d4b9c"}},
	} {
		if workload := WorkloadOf(c.pod); workload != c.expected {
			t.Errorf("%+v: expected %+v", workload, c.expected)
		}
	}
}

func FuzzNoAnnotationGivesAnImpossibleRate(f *testing.F) {
	for _, value := range []string{"2G", "500M", "-1", "1e30", "0.1", "9223372036854775807", "1Ei", "1e-9"} {
		f.Add(value, value)
	}
	f.Fuzz(func(t *testing.T, peak, limit string) {
		demand, err := Of(pod(PeakEgress, peak, LimitEgress, limit), nil)
		if demand.Egress.Bps < 0 || demand.Egress.Bps > ledger.MaxRate {
			t.Errorf("%q, %q: %+v", peak, limit, demand)
		}
		if demand.Egress.Source == Unknown && err == nil {
			t.Errorf("%q, %q: neither a rate nor an error", peak, limit)
		}
	})
}
