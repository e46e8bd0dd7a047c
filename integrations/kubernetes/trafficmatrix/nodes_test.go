package trafficmatrix

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"leeward.dev/kubernetes/internal/fake"
	"leeward.dev/kubernetes/snapshot"
)

func quantities(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}
}

func TestRequestsAreThoseThatTheSchedulerCounts(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{
			{Resources: quantities("3", "1")},
			{Resources: quantities("500m", "10"), RestartPolicy: &always},
			{Resources: quantities("1", "100")},
		},
		Containers: []corev1.Container{{Resources: quantities("1", "20")}, {Resources: quantities("1", "30")}},
		Overhead:   quantities("100m", "1").Requests,
	}}
	if wants := requestsOf(pod); wants != (resources{cpu: 3100, memory: 111}) {
		t.Errorf("%+v", wants)
	}
	whole := quantities("4", "50")
	pod.Spec.Resources = &whole
	if wants := requestsOf(pod); wants != (resources{cpu: 4100, memory: 51}) {
		t.Errorf("%+v", wants)
	}
	if wants := requestsOf(&corev1.Pod{}); wants != (resources{}) {
		t.Errorf("%+v", wants)
	}
}

// nodeOf returns a ready node with four processors.
func nodeOf(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"disk": "ssd"}},
		Status: corev1.NodeStatus{
			Allocatable: quantities("4", "8Gi").Requests,
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func TestHostsThatCanTakeNoPodAreLeftOut(t *testing.T) {
	whole, err := snapshot.Read(fake.Tree(0, 2, 3).Whole(), nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"r0h0", "r0h1", "r0h2", "r1h0", "r1h1", "elsewhere"}
	var nodes []*corev1.Node
	for _, name := range names {
		nodes = append(nodes, nodeOf(name))
	}
	nodes[1].Spec.Unschedulable = true
	nodes[2].Status.Conditions[0].Status = corev1.ConditionUnknown
	nodes[3].Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}
	busy, ended := podOf("busy", 0), podOf("busy", 1)
	busy.Spec.Containers[0].Resources = quantities("3", "1Gi")
	busy.Spec.NodeName, ended.Spec.NodeName = "r1h1", "r0h0"
	ended.Spec.Containers[0].Resources = quantities("4", "8Gi")
	ended.Status.Phase = corev1.PodSucceeded
	pods := []*corev1.Pod{podOf("ring", 0)}
	out := func() string {
		return fmt.Sprint(full(whole.Names(), nodes, []*corev1.Pod{busy, ended, podOf("waits", 0)}, pods))
	}
	if out() != "[r0h1 r0h2 r1h0 r1h1 r1h2]" {
		t.Errorf("%s", out())
	}
	pods[0].Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	pods[0].Spec.Containers[0].Resources = quantities("1", "1Gi")
	if out() != "[r0h1 r0h2 r1h2]" {
		t.Errorf("with a toleration and a smaller pod: %s", out())
	}
	pods[0].Spec.NodeSelector = map[string]string{"disk": "tape"}
	if out() != "[r0h0 r0h1 r0h2 r1h0 r1h1 r1h2]" {
		t.Errorf("with another label: %s", out())
	}
}

func TestATolerationMatchesByKeyValueAndEffect(t *testing.T) {
	taint := &corev1.Taint{Key: "gpu", Value: "a100", Effect: corev1.TaintEffectNoExecute}
	for toleration, expected := range map[corev1.Toleration]bool{
		{Operator: corev1.TolerationOpExists}:                                      true,
		{Key: "gpu", Operator: corev1.TolerationOpExists}:                          true,
		{Key: "gpu", Value: "a100"}:                                                true,
		{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "h100"}:            false,
		{Key: "cpu", Operator: corev1.TolerationOpExists}:                          false,
		{Key: "gpu", Value: "a100", Effect: corev1.TaintEffectNoSchedule}:          false,
		{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}: true,
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{toleration}}}
		if tolerates(pod, taint) != expected {
			t.Errorf("%+v: expected %v", toleration, expected)
		}
	}
}
