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

// nodeOf returns a ready node with four processors and room for two pods.
func nodeOf(name string) *corev1.Node {
	allocatable := quantities("4", "8Gi").Requests
	allocatable[corev1.ResourcePods] = resource.MustParse("2")
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"disk": "ssd"}},
		Status: corev1.NodeStatus{
			Allocatable: allocatable,
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
	running := []*corev1.Pod{busy, ended, podOf("waits", 0)}
	out := func() string { return fmt.Sprint(full(whole.Names(), nodes, running, pods)) }
	if out() != "[r0h1 r0h2 r1h0 r1h1 r1h2]" {
		t.Errorf("%s", out())
	}
	pods[0].Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	pods[0].Spec.Containers[0].Resources = quantities("1", "1Gi")
	if out() != "[r0h1 r0h2 r1h2]" {
		t.Errorf("with a toleration and a smaller pod: %s", out())
	}
	for index := range 2 {
		small := on(podOf("small", index), "r0h0")
		small.Spec.Containers = nil
		running = append(running, small)
	}
	if out() != "[r0h0 r0h1 r0h2 r1h2]" {
		t.Errorf("with as many pods as a node takes: %s", out())
	}
	pods[0].Spec.NodeSelector = map[string]string{"disk": "tape"}
	if out() != "[r0h0 r0h1 r0h2 r1h0 r1h1 r1h2]" {
		t.Errorf("with another label: %s", out())
	}
}
