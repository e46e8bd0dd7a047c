package evictor

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/internal/service"
	"leeward.dev/kubernetes/snapshot"
)

func TestTheRealServiceCountsAnEvictionOnBothRacks(t *testing.T) {
	client, err := httpapi.New(snapshot.Settings{Controllers: []string{service.Start(t, service.Small)}}, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	send := func(path string, body any) {
		t.Helper()
		if _, err := client.Send(ctx, httpapi.Request{Method: http.MethodPost, Path: path, Body: body}, nil); err != nil {
			t.Fatal(err)
		}
	}
	var links []map[string]any
	for rack := range 4 {
		for _, direction := range []string{"uplink", "downlink"} {
			links = append(links, map[string]any{"link": fmt.Sprintf("r%d:%s", rack, direction), "load_bps": 800_000_000})
		}
	}
	until := time.Now().UTC()
	send("/v1/reports", map[string]any{
		"from": until.Add(-10 * time.Second).Format(time.RFC3339Nano), "until": until.Format(time.RFC3339Nano), "links": links,
	})
	record := Record{
		UID: "uid-1", Namespace: "shop", Name: "web-0", Source: "r0", Target: "r2", Rates: [2]int64{3e8, 1e8},
	}
	// The scheduler's report of the pod, as package reporter sends it.
	send("/v1/commitments", map[string]any{"hosts": []string{"r0h1"}, "tasks": map[string]any{
		"app": map[string]any{"tasks": []any{map[string]any{
			"name": "pod", "egress": map[string]any{"peak": "300Mbps"}, "ingress": map[string]any{"peak": "100Mbps"},
		}}},
		"client": "scheduler", "sequence": 1, "ref": record.reference(),
	}})
	load := func(link string) float64 {
		t.Helper()
		var state httpapi.Link
		if err := client.Get(ctx, "/v1/links/"+link, &state); err != nil {
			t.Fatal(err)
		}
		return *state.Measured + state.Pending
	}
	expect := func(when string, loads map[string]float64) {
		t.Helper()
		for link, expected := range loads {
			if got := load(link); got < expected-1 || got > expected+1 {
				t.Errorf("%s: %s has %v, expected %v", when, link, got, expected)
			}
		}
	}
	expect("before", map[string]float64{"r0:uplink": 11e8, "r0:downlink": 9e8, "r2:uplink": 8e8})
	id, err := reportEviction(ctx, client, &record, "r2h3", DefaultSettings())
	if err != nil || id == "" {
		t.Fatalf("%q, %v", id, err)
	}
	after := map[string]float64{"r0:uplink": 8e8, "r0:downlink": 8e8, "r2:uplink": 11e8, "r2:downlink": 9e8}
	expect("after the eviction", after)
	if again, err := reportEviction(ctx, client, &record, "r2h3", DefaultSettings()); err != nil || again != id {
		t.Errorf("a repetition: %q, %v", again, err)
	}
	expect("after a repetition", after)
	record.Expectation = id
	for range 2 {
		if err := reportLanding(ctx, client, &record); err != nil {
			t.Fatal(err)
		}
	}
	expect("after the landing", map[string]float64{"r0:uplink": 8e8, "r2:uplink": 8e8})
}

func TestTheRealServiceSendsTheLastWindowBesideItsEstimateOrRejectsItsColumns(t *testing.T) {
	settings := snapshot.Settings{
		Controllers: []string{service.Start(t, service.Small)}, Deadline: 2 * time.Second, MaxAge: time.Minute, Windows: true,
	}
	sender, err := httpapi.New(settings, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	for number, load := range []int64{800_000_000, 200_000_000} {
		until := now.Add(time.Duration(10*number-10) * time.Second)
		body := map[string]any{
			"from": until.Add(-10 * time.Second).Format(time.RFC3339Nano), "until": until.Format(time.RFC3339Nano),
			"links": []map[string]any{{"link": "r0:uplink", "load_bps": load}},
		}
		request := httpapi.Request{Method: http.MethodPost, Path: "/v1/reports", Body: body}
		if _, err := sender.Send(t.Context(), request, nil); err != nil {
			t.Fatal(err)
		}
	}
	client, err := snapshot.NewClient(settings)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := client.Get(t.Context(), nil, true)
	if err != nil {
		t.Fatal(err)
	}
	next, err := client.Get(t.Context(), whole, false)
	if err != nil || !next.IsDifference() || next.HasWindows() != whole.HasWindows() {
		t.Fatalf("%+v, %v", next, err)
	}
	link := next.Names().Link("r0:uplink")
	if measured := next.Measured()[link]; measured != 680_000_000 {
		t.Errorf("an estimate of %d", measured)
	}
	if !next.HasWindows() {
		t.Log("this service has no last windows")
		return
	}
	if latest, length := next.Latest()[link], next.Until()[link]-next.From()[link]; latest != 200_000_000 || length != int64(10*time.Second) {
		t.Errorf("%d over %d ns", latest, length)
	}
}
