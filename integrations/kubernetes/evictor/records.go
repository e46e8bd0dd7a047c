package evictor

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Record is an eviction that still matters: for budgets, cooldowns or loads.
type Record struct {
	// At is the time of the eviction.
	At time.Time `json:"at"`
	// UID, Namespace and Name identify the pod, and Workload is its owner.
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Workload  string `json:"workload"`
	// Source and Target are racks. The scheduler may choose another rack than the target.
	Source string `json:"source"`
	Target string `json:"target"`
	// Rates are the peak rates of the pod in bit/s, out of it and into it.
	Rates [2]int64 `json:"rates"`
	// Gone is the time from which the pod is gone, zero before.
	Gone time.Time `json:"gone,omitzero"`
	// Replacement is the UID of the pod that took its place, Landed the rack of its node, and Started its start.
	Replacement string    `json:"replacement,omitempty"`
	Landed      string    `json:"landed,omitempty"`
	Started     time.Time `json:"started,omitzero"`
	// Expectation is the decision of the service that stands for the replacement until it has landed.
	Expectation string `json:"expectation,omitempty"`
	// Move is the move of the service that the eviction carries out, empty if none waits for its outcome.
	Move string `json:"move,omitempty"`
}

// relieves returns true if the pod's traffic is in a window that starts at a time, though the pod leaves.
func (r *Record) relieves(start time.Time) bool { return r.Gone.IsZero() || start.Before(r.Gone) }

// arrives returns the rack on which the replacement is expected, and true if a window that starts at a time does not show it.
func (r *Record) arrives(start time.Time) (string, bool) {
	if r.Landed == "" {
		return r.Target, true
	}
	return r.Landed, r.Started.IsZero() || start.Before(r.Started)
}

// isReported returns true if the load of the service contains the replacement: by the expectation, by the move, or by the
// scheduler's report on its node. Without such a report the mean of the window still counts the replacement.
func (r *Record) isReported() bool { return r.Expectation != "" || r.Move != "" || r.Landed != "" }

// prune returns the records that matter at a time.
func prune(records []Record, settings Settings, now time.Time) []Record {
	rest := make([]Record, 0, len(records))
	for _, record := range records {
		if now.Sub(record.At) <= settings.remembered() {
			rest = append(rest, record)
		}
	}
	return rest
}

// inHour returns the number of evictions in the hour before a time.
func inHour(records []Record, now time.Time) int {
	count := 0
	for _, record := range records {
		if now.Sub(record.At) < time.Hour {
			count++
		}
	}
	return count
}

// Sighting is a pod as the cluster knows it now.
type Sighting struct {
	UID, Workload string
	Created       time.Time
	// Rack is that of the pod's node, empty before the pod has one. Started is zero before its start.
	Rack    string
	Started time.Time
}

// follow updates records by the pods of the cluster: which pods are gone, and where their replacements run. A pod replaces
// one evicted pod: the first one of its workload that was evicted before its creation.
func follow(records []Record, pods []Sighting, now time.Time) []Record {
	records = slices.Clone(records)
	byUID := make(map[string]*Sighting, len(pods))
	byWorkload := map[string][]*Sighting{}
	for i := range pods {
		byUID[pods[i].UID] = &pods[i]
		byWorkload[pods[i].Workload] = append(byWorkload[pods[i].Workload], &pods[i])
	}
	taken := map[string]bool{}
	for _, record := range records {
		taken[record.Replacement] = true
	}
	for i := range records {
		record := &records[i]
		if record.Gone.IsZero() && byUID[record.UID] == nil {
			record.Gone = now
		}
		if record.Replacement == "" {
			for _, pod := range byWorkload[record.Workload] {
				// Creation times are whole seconds.
				if !taken[pod.UID] && pod.UID != record.UID && !pod.Created.Before(record.At.Truncate(time.Second)) {
					record.Replacement, taken[pod.UID] = pod.UID, true
					break
				}
			}
		}
		if pod := byUID[record.Replacement]; pod != nil && pod.Rack != "" {
			record.Landed = pod.Rack
			if record.Started.IsZero() {
				record.Started = pod.Started
			}
		}
	}
	return records
}

// encodeRecords writes records as text.
func encodeRecords(records []Record) (string, error) {
	text, err := json.Marshal(records)
	return string(text), err
}

// decodeRecords reads records. An empty text has none.
func decodeRecords(text string) ([]Record, error) {
	if text == "" {
		return nil, nil
	}
	var records []Record
	if err := json.Unmarshal([]byte(text), &records); err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	for i := range records {
		if records[i].UID == "" || records[i].At.IsZero() {
			return nil, fmt.Errorf("records: entry %d has no `uid` or no `at`", i)
		}
		for side, bps := range records[i].Rates {
			records[i].Rates[side] = rate(bps)
		}
	}
	return records, nil
}
