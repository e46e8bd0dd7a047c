package evictor

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/internal/service"
	"leeward.dev/kubernetes/snapshot"
)

// liveService is a client of a real service.
type liveService struct {
	*httpapi.Client
	t        *testing.T
	settings snapshot.Settings
}

func startLive(t *testing.T, cluster string, flags ...string) *liveService {
	t.Helper()
	settings := snapshot.Settings{
		Controllers: []string{service.Start(t, cluster, flags...)}, Deadline: 2 * time.Second, MaxAge: time.Minute,
		Windows: true,
	}
	client, err := httpapi.New(settings, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return &liveService{Client: client, t: t, settings: settings}
}

func (l *liveService) post(path string, body any) {
	l.t.Helper()
	if _, err := l.Send(l.t.Context(), httpapi.Request{Method: http.MethodPost, Path: path, Body: body}, nil); err != nil {
		l.t.Fatal(err)
	}
}

// report reports a load of all links of racks over the ten seconds before a time, and another load of the link r0:uplink.
func (l *liveService) report(until time.Time, load, hot int64) {
	l.t.Helper()
	var links []map[string]any
	for rack := range 4 {
		for _, direction := range []string{"uplink", "downlink"} {
			links = append(links, map[string]any{"link": fmt.Sprintf("r%d:%s", rack, direction), "load_bps": load})
		}
	}
	links[0]["load_bps"] = hot
	l.post("/v1/reports", map[string]any{
		"from": until.Add(-10 * time.Second).Format(time.RFC3339Nano), "until": until.Format(time.RFC3339Nano), "links": links,
	})
}

// commit commits a pod as package reporter does.
func (l *liveService) commit(reference, node, egress, ingress string) {
	l.t.Helper()
	l.post("/v1/commitments", map[string]any{"hosts": []string{node}, "tasks": map[string]any{
		"app": map[string]any{"tasks": []any{map[string]any{
			"name": "pod", "tolerant": true,
			"egress": map[string]any{"peak": egress}, "ingress": map[string]any{"peak": ingress},
		}}},
		"client": "scheduler", "sequence": 1, "ref": reference,
	}})
}

func TestTheRealServiceCountsAnEvictionOnBothRacks(t *testing.T) {
	client := startLive(t, service.Small)
	ctx := t.Context()
	client.report(time.Now().UTC(), 800_000_000, 800_000_000)
	record := Record{
		UID: "uid-1", Namespace: "shop", Name: "web-0", Source: "r0", Target: "r2", Rates: [2]int64{3e8, 1e8},
	}
	client.commit(record.reference(), "r0h1", "300Mbps", "100Mbps")
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
	live := startLive(t, service.Small)
	now := time.Now().UTC()
	live.report(now.Add(-10*time.Second), 0, 800_000_000)
	live.report(now, 0, 200_000_000)
	client, err := snapshot.NewClient(live.settings)
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

func TestTheRealServiceSaysWhichLoadsAreSumsUntilTheLinkReportsItself(t *testing.T) {
	live := startLive(t, service.Small)
	client, err := snapshot.NewClient(live.settings)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	var links []map[string]any
	for host := range 4 {
		for _, direction := range []string{"egress", "ingress"} {
			links = append(links, map[string]any{"link": fmt.Sprintf("r0h%d:%s", host, direction), "load_bps": 100_000_000})
		}
	}
	live.post("/v1/reports", map[string]any{
		"from": now.Add(-20 * time.Second).Format(time.RFC3339Nano), "until": now.Add(-10 * time.Second).Format(time.RFC3339Nano), "links": links,
	})
	sums, err := client.Get(t.Context(), nil, true)
	if err != nil {
		t.Fatal(err)
	}
	uplink, host := sums.Names().Link("r0:uplink"), sums.Names().Link("r0h0:egress")
	if !sums.HasWindows() {
		t.Skip("this service has no last windows")
	}
	if !sums.IsDerived(uplink) || sums.IsDerived(host) || sums.Latest()[uplink] != 400_000_000 {
		t.Errorf("sum %v, host %v, load %d", sums.IsDerived(uplink), sums.IsDerived(host), sums.Latest()[uplink])
	}
	live.report(now, 100_000_000, 300_000_000)
	counted, err := client.Get(t.Context(), sums, false)
	if err != nil || !counted.IsDifference() || counted.IsDerived(uplink) || counted.Latest()[uplink] != 300_000_000 {
		t.Errorf("%v: sum %v, load %d", err, counted.IsDerived(uplink), counted.Latest()[uplink])
	}
}

func TestAMoveThatTheRealServiceAdvisesIsCarriedOutAndAnswered(t *testing.T) {
	// All its hosts are nodes of the world.
	live := startLive(t, "racks: 4\nhosts_per_rack: 3\nnic: 1Gbps\nrack_link: 2Gbps\n", "--moves", "utp-reactive")
	in := func(state string) []httpapi.Migration {
		t.Helper()
		moves, err := live.Migrations(t.Context(), state)
		if err != nil {
			t.Fatal(err)
		}
		return moves
	}
	o := newOffice(t)
	o.caller = live.Client
	runner := o.executor(Evict, silent{})
	now := time.Now().UTC()
	live.report(now.Add(-10*time.Second), 100_000_000, 100_000_000)
	live.commit("shop/hot-a/uid-hot-a", "r0h0", "900Mbps", "0bps")
	live.report(now, 100_000_000, 1_900_000_000)
	for range 100 {
		if len(in("advised")) > 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	o.round(runner)
	taken := in("taken")
	if len(o.left) != 1 || o.left[0].uid != "uid-hot-a" || len(taken) != 1 || *taken[0].Executor != "leeward-evictor leeward/leeward-evictor" {
		t.Fatalf("%d evictions, %+v", len(o.left), taken)
	}
	o.replace("r3h1")
	o.round(runner)
	if done := in("done"); len(done) != 1 || done[0].ID != taken[0].ID {
		t.Errorf("%+v", done)
	}
}
