package peaks

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/internal/service"
	"leeward.dev/kubernetes/snapshot"
)

// report sends the rates of pods, as their agents do.
func report(t *testing.T, client *snapshot.Client, pods []*corev1.Pod, egress, ingress int64) {
	t.Helper()
	until := time.Now().UTC()
	var rates []map[string]any
	for _, pod := range pods {
		rates = append(rates, map[string]any{
			"pod": string(pod.UID), "host": pod.Spec.NodeName, "egress_bps": egress, "ingress_bps": ingress,
		})
	}
	body, err := json.Marshal(map[string]any{
		"from": until.Add(-time.Second).Format(time.RFC3339Nano), "until": until.Format(time.RFC3339Nano), "pods": rates,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(t.Context(), http.MethodPost, "/v1/reports", body); err != nil {
		t.Fatal(err)
	}
}

func TestTheRealServiceLearnsThePeakOfAWorkloadFromItsPods(t *testing.T) {
	client, err := snapshot.NewClient(snapshot.Settings{
		Controllers: []string{service.Start(t, service.Small)}, Deadline: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	var pods []*corev1.Pod
	for number := range leastObservations {
		pods = append(pods, podOf(number, []string{"r0h0", "r1h1"}[number%2]))
	}
	follower := New(Options{
		Call: client.Call, Pods: podsOf(pods...), Now: time.Now, Random: func() float64 { return 0.5 },
		Log: slog.New(slog.DiscardHandler),
	})
	report(t, client, pods, 600_000_000, 5)
	follower.step(t.Context())
	if counts := follower.Counts(); counts.Named != uint64(len(pods)) || counts.Workloads != 0 {
		t.Fatalf("%+v", counts)
	}
	report(t, client, pods, 600_000_000, 5)
	// A pod counts once in five minutes.
	report(t, client, pods, 900_000_000, 900_000_000)
	follower.step(t.Context())
	egress, ingress, ok := follower.Peaks(web)
	if !ok || egress < 600_000_000 || egress > 600_000_000*17/16 || ingress != 5 {
		t.Errorf("%d, %d, %v", egress, ingress, ok)
	}
	wanted, err := demand.Of(pods[0], follower.Peaks)
	if err != nil || wanted.Egress != (demand.Rate{Bps: egress, Source: demand.FromHistory}) {
		t.Errorf("%+v, %v", wanted, err)
	}
}

func TestTheRealServiceDoesNotCountPodsThatAnotherNodeReports(t *testing.T) {
	client, err := snapshot.NewClient(snapshot.Settings{
		Controllers: []string{service.Start(t, service.Small)}, Deadline: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	var pods, elsewhere []*corev1.Pod
	for number := range leastObservations {
		pods = append(pods, podOf(number, "r0h0"))
		elsewhere = append(elsewhere, podOf(number, "r3h3"))
	}
	follower := New(Options{
		Call: client.Call, Pods: podsOf(pods...), Now: time.Now, Random: func() float64 { return 0.5 },
		Log: slog.New(slog.DiscardHandler),
	})
	for range 2 {
		report(t, client, elsewhere, 900_000_000, 900_000_000)
		follower.step(t.Context())
	}
	if _, _, ok := follower.Peaks(web); ok || follower.Counts().Named != 0 {
		t.Errorf("%+v", follower.Counts())
	}
}
