// Package peaks follows the measured peaks of workloads.
//
// Agents report the rates of pods to the service, and know pods by their UID alone. So a program that knows pods names their
// workloads ([Follower.Run]): the service then counts the rates of a pod towards its workload, and lists the peaks. Decisions
// read the last list in memory and never wait for the service.
package peaks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/ledger"
)

const (
	// leastObservations is the number of observations from which a peak counts: an hour of one pod, or five minutes of
	// twelve. Before that, a workload that has just started looks idle.
	leastObservations = 12
	// mostWorkloads limits the list, against a service that never ends one.
	mostWorkloads = 200_000
	// pageSize is the largest number of items that the service returns at once.
	pageSize = 1000
)

// Call sends a request to the service and returns the body of its answer.
type Call func(ctx context.Context, method, path string, body []byte) ([]byte, error)

// Table has the peaks of workloads. It does not change.
type Table struct {
	rates map[demand.Workload][2]int64
	// Window is the time for which observations count, 0 if the service has no history.
	Window time.Duration
}

// Len returns the number of workloads.
func (t *Table) Len() int { return len(t.rates) }

// Peaks returns the measured peaks of a workload in bit/s; see [demand.Peaks]. A nil table has none.
func (t *Table) Peaks(workload demand.Workload) (egressBps, ingressBps int64, ok bool) {
	if t == nil {
		return 0, 0, false
	}
	rates, ok := t.rates[workload]
	return rates[0], rates[1], ok
}

// page is a page of GET /v1/peaks.
type page struct {
	Items []struct {
		Job          string `json:"job"`
		Egress       int64  `json:"egress_peak_bps"`
		Ingress      int64  `json:"ingress_peak_bps"`
		Observations int64  `json:"observations"`
	} `json:"items"`
	Next   *string  `json:"next"`
	Window *float64 `json:"window_s"`
}

// Fetch requests the peaks of all workloads. Jobs of other clients, and workloads with too few observations, are left out.
func Fetch(ctx context.Context, call Call) (*Table, error) {
	table := &Table{rates: map[demand.Workload][2]int64{}}
	for after, jobs := "", 0; ; {
		path := fmt.Sprintf("/v1/peaks?limit=%d", pageSize)
		if after != "" {
			path += "&after=" + url.QueryEscape(after)
		}
		body, err := call(ctx, http.MethodGet, path, nil)
		if err != nil {
			return nil, err
		}
		var next page
		if err := json.Unmarshal(body, &next); err != nil {
			return nil, fmt.Errorf("GET /v1/peaks: %w", err)
		}
		if jobs += len(next.Items); jobs > mostWorkloads {
			return nil, fmt.Errorf("GET /v1/peaks: more than %d jobs", mostWorkloads)
		}
		table.add(next)
		switch {
		case next.Next == nil:
			return table, nil
		case *next.Next <= after:
			return nil, fmt.Errorf("GET /v1/peaks: the page after %.80q ends with %.80q", after, *next.Next)
		}
		after = *next.Next
	}
}

func (t *Table) add(from page) {
	if window := from.Window; window != nil && *window > 0 && *window < (1<<32) {
		t.Window = time.Duration(*window * float64(time.Second))
	}
	for _, item := range from.Items {
		workload, ok := demand.ParseWorkload(item.Job)
		if !ok || item.Observations < leastObservations || item.Egress < 0 || item.Ingress < 0 {
			continue
		}
		t.rates[workload] = [2]int64{min(item.Egress, ledger.MaxRate), min(item.Ingress, ledger.MaxRate)}
	}
}
