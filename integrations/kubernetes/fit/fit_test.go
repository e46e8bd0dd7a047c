package fit

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// container returns a container that requests processors and memory.
func container(cpu, memory string, policy *corev1.ContainerRestartPolicy) corev1.Container {
	return corev1.Container{RestartPolicy: policy, Resources: corev1.ResourceRequirements{Requests: quantities(cpu, memory)}}
}

func quantities(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func TestRequestsAreThoseThatTheSchedulerReserves(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	for _, c := range []struct {
		name     string
		spec     corev1.PodSpec
		expected Resources
	}{
		{"nothing", corev1.PodSpec{}, Resources{"pods": 1}},
		{"containers", corev1.PodSpec{
			Containers: []corev1.Container{container("1", "20", nil), container("500m", "30", nil)},
		}, Resources{"pods": 1, "cpu": 1500, "memory": 50}},
		{"a large init container", corev1.PodSpec{
			InitContainers: []corev1.Container{container("4", "1", nil)}, Containers: []corev1.Container{container("1", "20", nil)},
		}, Resources{"pods": 1, "cpu": 4000, "memory": 20}},
		{"a sidecar", corev1.PodSpec{
			InitContainers: []corev1.Container{container("2", "10", &always)}, Containers: []corev1.Container{container("1", "20", nil)},
		}, Resources{"pods": 1, "cpu": 3000, "memory": 30}},
		{"an init container beside a sidecar", corev1.PodSpec{
			InitContainers: []corev1.Container{container("2", "10", &always), container("3", "100", nil)},
			Containers:     []corev1.Container{container("1", "20", nil)},
		}, Resources{"pods": 1, "cpu": 5000, "memory": 110}},
		{"overhead", corev1.PodSpec{
			Containers: []corev1.Container{container("1", "20", nil)}, Overhead: quantities("250m", "1"),
		}, Resources{"pods": 1, "cpu": 1250, "memory": 21}},
		{"the whole pod", corev1.PodSpec{
			Containers: []corev1.Container{container("1", "20", nil)},
			Resources:  &corev1.ResourceRequirements{Requests: quantities("6", "50")}, Overhead: quantities("250m", "1"),
		}, Resources{"pods": 1, "cpu": 6250, "memory": 51}},
		{"a request of nothing", corev1.PodSpec{Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"example.com/gpu": resource.MustParse("0")}},
		}}}, Resources{"pods": 1}},
	} {
		if requests := Requests(&corev1.Pod{Spec: c.spec}); !maps.Equal(requests, c.expected) {
			t.Errorf("%s: %v", c.name, requests)
		}
	}
}

func TestAPodFitsIfAllItsRequestsDo(t *testing.T) {
	free := Resources{"cpu": 1000, "pods": 2}
	for _, c := range []struct {
		wants    Resources
		expected bool
	}{
		{Resources{"cpu": 1000, "pods": 1}, true}, {Resources{"cpu": 1001}, false}, {Resources{"example.com/gpu": 1}, false}, {nil, true},
	} {
		if c.wants.Fit(free) != c.expected {
			t.Errorf("%v in %v", c.wants, free)
		}
	}
	free.Take(Resources{"cpu": 1, "pods": 1})
	if !maps.Equal(free, Resources{"cpu": 999, "pods": 1}) {
		t.Errorf("%v", free)
	}
}

func TestOnlyAReadyNodeWithoutACordonIsOpen(t *testing.T) {
	node := func(cordoned bool, conditions ...corev1.NodeCondition) *corev1.Node {
		return &corev1.Node{
			Spec: corev1.NodeSpec{Unschedulable: cordoned}, Status: corev1.NodeStatus{Conditions: conditions},
		}
	}
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
	unknown := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}
	pressure := corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue}
	if !IsOpen(node(false, pressure, ready)) || IsOpen(node(true, ready)) || IsOpen(node(false, unknown)) || IsOpen(node(false)) {
		t.Error("only the first node is open")
	}
}

func TestATolerationMatchesByKeyValueAndEffect(t *testing.T) {
	taint := corev1.Taint{Key: "gpu", Value: "a100", Effect: corev1.TaintEffectNoExecute}
	for toleration, expected := range map[corev1.Toleration]bool{
		{Operator: corev1.TolerationOpExists}:                                      true,
		{Key: "gpu", Operator: corev1.TolerationOpExists}:                          true,
		{Key: "gpu", Value: "a100"}:                                                true,
		{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "h100"}:            false,
		{Key: "cpu", Operator: corev1.TolerationOpExists}:                          false,
		{Key: "gpu", Value: "a100", Effect: corev1.TaintEffectNoSchedule}:          false,
		{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}: true,
	} {
		of := ConstraintsOf(&corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{toleration}}})
		if of.Allow("n", nil, []corev1.Taint{taint}) != expected {
			t.Errorf("%+v: expected %v", toleration, expected)
		}
	}
	var none Constraints
	if none.Allow("n", nil, []corev1.Taint{taint}) {
		t.Error("a pod without tolerations")
	}
	taint.Effect = corev1.TaintEffectPreferNoSchedule
	if !none.Allow("n", nil, []corev1.Taint{taint}) {
		t.Error("a taint that only advises")
	}
}

func TestANodeHasTheLabelsOfTheSelectorAndOfTheRequiredAffinity(t *testing.T) {
	affinity := func(term corev1.NodeSelectorTerm) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term}},
		}}
	}
	ssd := corev1.NodeSelectorRequirement{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: []string{"ssd", "nvme"}}
	large := corev1.NodeSelectorRequirement{Key: "cores", Operator: corev1.NodeSelectorOpGt, Values: []string{"31"}}
	named := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}
	invalid := corev1.NodeSelectorRequirement{Key: "cores", Operator: corev1.NodeSelectorOpGt, Values: []string{"many"}}
	labels := map[string]string{"disk": "ssd", "cores": "32"}
	for name, c := range map[string]struct {
		spec     corev1.PodSpec
		expected bool
	}{
		"selector":       {corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd"}}, true},
		"other value":    {corev1.PodSpec{NodeSelector: map[string]string{"disk": "tape"}}, false},
		"expressions":    {corev1.PodSpec{Affinity: affinity(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{ssd, large}})}, true},
		"name":           {corev1.PodSpec{Affinity: affinity(corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{named}})}, true},
		"both":           {corev1.PodSpec{NodeSelector: map[string]string{"disk": "tape"}, Affinity: affinity(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{ssd}})}, false},
		"invalid number": {corev1.PodSpec{Affinity: affinity(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{invalid}})}, false},
	} {
		of := ConstraintsOf(&corev1.Pod{Spec: c.spec})
		if of.Allow("n", labels, nil) != c.expected {
			t.Errorf("%s: expected %v", name, c.expected)
		}
	}
}

// BenchmarkAllow measures a pod with tolerations on a node without taints, which is the usual case.
func BenchmarkAllow(b *testing.B) {
	of := ConstraintsOf(&corev1.Pod{Spec: corev1.PodSpec{
		Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}},
	}})
	labels := map[string]string{"disk": "ssd"}
	for b.Loop() {
		if !of.Allow("n", labels, nil) {
			b.Fatal("the node is open")
		}
	}
}
