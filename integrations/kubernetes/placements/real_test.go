package placements

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"testing"
	"time"

	"leeward.dev/kubernetes/internal/service"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/snapshot"
)

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 1000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("after 10 s: %s", what)
}

func post(t *testing.T, url string, body any) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post(url, "application/json", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		problem, _ := io.ReadAll(answer.Body)
		t.Fatalf("%s: %d: %s", url, answer.StatusCode, problem)
	}
}

// report reports a load of 500 Mb/s on all links of racks over the last second.
func report(t *testing.T, address string) {
	t.Helper()
	var links []map[string]any
	for rack := range 4 {
		for _, direction := range []string{"uplink", "downlink"} {
			links = append(links, map[string]any{"link": fmt.Sprintf("r%d:%s", rack, direction), "load_bps": 500_000_000})
		}
	}
	until := time.Now().UTC()
	post(t, address+"/v1/reports", map[string]any{
		"from": until.Add(-time.Second).Format(time.RFC3339Nano), "until": until.Format(time.RFC3339Nano), "links": links,
	})
}

func TestARealControllerTakesOverAPlacementWithoutAJump(t *testing.T) {
	address := service.Start(t, service.Small)
	estimator, err := ledger.NewEstimator(time.Second, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(client, estimator, DefaultLasts)
	if err != nil {
		t.Fatal(err)
	}
	c, err := snapshot.NewClient(snapshot.Settings{Controllers: []string{address}, Interval: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	feed := snapshot.NewFeed(c.Settings().MaxAge)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		follower := snapshot.NewFollower(c, feed, p.OnSnapshot, func() float64 { return 0 }, slog.New(slog.DiscardHandler))
		follower.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	report(t, address)
	load := func(link string) float64 {
		view := p.View()
		if view == nil {
			return math.NaN()
		}
		return view.Load(view.Snapshot().Names().Link(link))
	}
	eventually(t, "no telemetry", func() bool { return load("r1:uplink") == 5e8 })
	p.Add("pod", "r1h2", Rates{Egress: 3e8, Ingress: 1e8}, time.Now())
	p.Reported("pod", 1)
	post(t, address+"/v1/commitments", map[string]any{"hosts": []string{"r1h2"}, "tasks": map[string]any{
		"app": map[string]any{"tasks": []any{map[string]any{
			"name": "pod", "egress": map[string]any{"peak": "300Mbps"}, "ingress": map[string]any{"peak": "100Mbps"},
		}}},
		"client": client, "sequence": 1, "ref": "pod",
	}})
	eventually(t, "the placement still counts beside the snapshot", func() bool {
		if load := load("r1:uplink"); load != 8e8 {
			t.Fatalf("load %v", load)
		}
		return p.Len() == 0
	})
	if last := feed.Last(); !feed.IsFresh(last, time.Now()) {
		t.Errorf("the last snapshot is %v old", last.Age(time.Now()))
	}
	if up, down, other := load("r1:uplink"), load("r1:downlink"), load("r2:uplink"); up != 8e8 || down != 6e8 || other != 5e8 {
		t.Errorf("the controller counts %v, %v and %v", up, down, other)
	}
	if whole, differences := feed.Counts(); whole != 1 || differences == 0 {
		t.Errorf("%d whole snapshots and %d differences", whole, differences)
	}
}
