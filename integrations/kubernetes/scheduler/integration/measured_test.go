package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"leeward.dev/kubernetes/internal/service"
	"leeward.dev/kubernetes/snapshot"
)

// placeOwned adds pods of a StatefulSet without annotations, and waits until all are bound.
func (s *scene) placeOwned(owner string, first, count int) {
	s.t.Helper()
	yes := true
	for number := first; number < first+count; number++ {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", owner, number),
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: "apps/v1", Kind: "StatefulSet", Name: owner, UID: types.UID(owner), Controller: &yes,
				}},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "work", Image: "none.invalid/none"}}},
		}
		if _, err := plane.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(s.t.Context(), pod, metav1.CreateOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
	s.pods += count
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	if err := s.bindings.Wait(ctx, s.pods); err != nil {
		s.t.Fatal(err)
	}
}

// reportPods reports the same rate out of each pod, as the agents of their nodes do.
func reportPods(t *testing.T, client *snapshot.Client, egress int64) {
	t.Helper()
	list, err := plane.Client.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var pods []map[string]any
	for i := range list.Items {
		pod := &list.Items[i]
		pods = append(pods, map[string]any{
			"pod": string(pod.UID), "host": pod.Spec.NodeName, "egress_bps": egress, "ingress_bps": 0,
		})
	}
	until := time.Now().UTC()
	body, err := json.Marshal(map[string]any{
		"from": until.Add(-time.Second).Format(time.RFC3339Nano), "until": until.Format(time.RFC3339Nano), "pods": pods,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(t.Context(), http.MethodPost, "/v1/reports", body); err != nil {
		t.Fatal(err)
	}
}

// unnamed returns the number of reported pods without a workload.
func unnamed(t *testing.T, client *snapshot.Client) int {
	t.Helper()
	body, err := client.Call(t.Context(), http.MethodPost, "/v1/pods", []byte(`{"limit": 1000}`))
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Unnamed []json.RawMessage `json:"unnamed"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	return len(answer.Unnamed)
}

func TestPodsWithoutAnnotationsAvoidHotRacksOnceTheirWorkloadWasMeasured(t *testing.T) {
	cluster := fmt.Sprintf("racks: %d\nhosts_per_rack: %d\nnic: 10Gbps\nrack_link: 40Gbps\n", racks, rackSize)
	address := service.Start(t, cluster)
	client, err := snapshot.NewClient(snapshot.Settings{Controllers: []string{address}, Deadline: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s := newSceneAt(t, address)
	s.nodesToScore = 100
	reportHot(t, client, 10)
	stop := s.start(s.args)
	s.placeOwned("web", 0, 100)
	inHot := 0
	for rack := range 10 {
		inHot += s.inRacks()[fmt.Sprintf("r%d", rack)]
	}
	if inHot < 10 {
		t.Fatalf("without a demand, %d of 100 pods are in hot racks: the test shows nothing", inHot)
	}
	// The agents report pods before anything names them. The next scheduler does, and the one after it reads the peak.
	reportPods(t, client, 200e6)
	if count := unnamed(t, client); count != 100 {
		t.Fatalf("the service has %d of 100 pods", count)
	}
	stop()
	stop = s.start(s.args)
	eventually(t, "the pods are not named", func() bool { return unnamed(t, client) == 0 })
	reportPods(t, client, 200e6)
	stop()
	reportHot(t, client, 10)
	stop = s.start(s.args)
	defer stop()
	eventually(t, "no peak", func() bool { return metric(t, "leeward_measured_workloads", "") == 1 })
	s.placeOwned("web", 100, 100)
	for pod, node := range s.bindings.Nodes() {
		var number, rack int
		if _, err := fmt.Sscanf(pod, "web-%d", &number); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscanf(s.rackOf[node], "r%d", &rack); err != nil {
			t.Fatal(err)
		}
		if number >= 100 && rack < 10 {
			t.Errorf("pod %s is in the hot rack r%d", pod, rack)
		}
	}
	eventually(t, "the service does not have the placements", func() bool { return committed(t, client) == 100 })
}
