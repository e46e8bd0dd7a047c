package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"leeward.dev/kubernetes/snapshot"
)

// reports are the telemetry of the links: at the end of each tick of the clock, the service learns the loads that the links
// had in it. The clock of the machine never stops, so links report also while simulated time stands still.
type reports struct {
	client *snapshot.Client
	names  [2][]string
	tick   time.Duration

	// mutex guards the fields below.
	mutex sync.Mutex
	loads [2][]int64
	// ticks is the number of reports.
	ticks int
	// reported is closed once the present loads were reported; nil after it.
	reported chan struct{}
}

// newReports returns the telemetry of idle links.
func newReports(client *snapshot.Client, of *fabric, tick time.Duration) *reports {
	r := &reports{client: client, tick: tick, loads: of.loads()}
	for side := range of.links {
		for i := range of.links[side] {
			r.names[side] = append(r.names[side], of.links[side][i].name)
		}
	}
	return r
}

// run reports until the context ends, or until a report fails.
func (r *reports) run(ctx context.Context) error {
	for last := time.Now().Truncate(r.tick); ; last = last.Add(r.tick) {
		next := last.Add(r.tick)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(next)):
		}
		r.mutex.Lock()
		loads, reported := r.loads, r.reported
		r.reported = nil
		r.mutex.Unlock()
		if _, err := r.client.Call(ctx, http.MethodPost, "/v1/reports", r.body(last, next, loads)); err != nil {
			return fmt.Errorf("report of the links: %w", err)
		}
		r.mutex.Lock()
		r.ticks++
		r.mutex.Unlock()
		if reported != nil {
			close(reported)
		}
	}
}

// count returns the number of ticks that were reported.
func (r *reports) count() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.ticks
}

// set sets the loads of the links.
func (r *reports) set(loads [2][]int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.loads = loads
}

// carry sets the loads of the links, and waits until the service has a report of them.
func (r *reports) carry(ctx context.Context, loads [2][]int64) error {
	reported := make(chan struct{})
	r.mutex.Lock()
	r.loads, r.reported = loads, reported
	r.mutex.Unlock()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-reported:
		return nil
	}
}

// body returns the body of a report.
func (r *reports) body(from, until time.Time, loads [2][]int64) []byte {
	type load struct {
		Link string `json:"link"`
		Load int64  `json:"load_bps"`
	}
	var links []load
	for side, names := range r.names {
		for rack, name := range names {
			links = append(links, load{name, loads[side][rack]})
		}
	}
	text, err := json.Marshal(map[string]any{
		"from": from.UTC().Format(time.RFC3339Nano), "until": until.UTC().Format(time.RFC3339Nano), "links": links,
	})
	if err != nil {
		// No field of a body can fail.
		panic(err)
	}
	return text
}
