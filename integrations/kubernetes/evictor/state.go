package evictor

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// limitsKey is the key of the limits in the ConfigMap, which the evictor writes with its records for readers such as kubectl.
const limitsKey = "limits"

// limits are the settings that decide with the records whether a pod may leave.
type limits struct {
	Window           string `json:"window"`
	RackCooldown     int    `json:"rack_cooldown"`
	WorkloadCooldown int    `json:"workload_cooldown"`
	HourlyBudget     int    `json:"hourly_budget"`
	DerivedLinks     bool   `json:"derived_links"`
}

func encodeLimits(s Settings) (string, error) {
	text, err := json.Marshal(limits{s.Window.String(), s.RackCooldown, s.WorkloadCooldown, s.HourlyBudget, s.DerivedLinks})
	return string(text), err
}

// decodeLimits returns the default settings with the limits of a text. An empty text changes none.
func decodeLimits(text string) (Settings, error) {
	s := DefaultSettings()
	if text == "" {
		return s, nil
	}
	var read limits
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return s, fmt.Errorf("limits: %w", err)
	}
	window, err := time.ParseDuration(read.Window)
	if err != nil {
		return s, fmt.Errorf("limits: window: %w", err)
	}
	s.Window, s.Lasts = window, max(s.Lasts, window)
	s.RackCooldown, s.WorkloadCooldown, s.HourlyBudget = read.RackCooldown, read.WorkloadCooldown, read.HourlyBudget
	s.DerivedLinks = read.DerivedLinks
	if err := s.Check(0); err != nil {
		return s, fmt.Errorf("limits: %w", err)
	}
	return s, nil
}

// State is the state of an evictor as its ConfigMap has it.
type State struct {
	// IsStopped is true if the annotation stops all evictions.
	IsStopped bool
	// Records are the evictions that still matter, and Settings has the limits of the evictor that wrote them. Without records
	// these are the defaults: an evictor writes its limits with its first eviction.
	Records  []Record
	Settings Settings
}

// StateOf reads the ConfigMap of an evictor, nil for none.
func StateOf(read *corev1.ConfigMap) (State, error) {
	if read == nil {
		return State{Settings: DefaultSettings()}, nil
	}
	records, err := decodeRecords(read.Data[recordsKey])
	if err != nil {
		return State{}, err
	}
	settings, err := decodeLimits(read.Data[limitsKey])
	if err != nil {
		return State{}, err
	}
	return State{IsStopped: read.Annotations[StopAnnotation] == StopValue, Records: records, Settings: settings}, nil
}

// InHour returns the number of evictions in the hour before a time.
func (s State) InHour(now time.Time) int { return inHour(s.Records, now) }

// Cooldowns returns the times for which no other pod leaves the rack of a pod, and none of its workload; 0 for none.
func (s State) Cooldowns(pod *Pod, now time.Time) (rack, workload time.Duration) {
	for _, record := range s.Records {
		age := now.Sub(record.At)
		if record.Source == pod.Rack {
			rack = max(rack, s.Settings.cooldown(s.Settings.RackCooldown)-age)
		}
		if record.Workload == pod.Workload {
			workload = max(workload, s.Settings.cooldown(s.Settings.WorkloadCooldown)-age)
		}
	}
	return rack, workload
}

// Judge says why the evictor would leave a pod on a hot link, before it looks for a target.
type Judge struct{ decision *decision }

// NewJudge returns a judge for the pods of a cluster.
func NewJudge(state State, places Places, now time.Time) Judge {
	return Judge{newDecision(Request{
		Now: now, Start: now, Records: state.Records, Disruptions: places.Disruptions, Settings: state.Settings,
	})}
}

// Stays returns the reason for which a pod stays on a link, empty if it may leave. isKnown is true if the demand of the pod over
// the link is known, and isDerived if the load of the link is the sum of its nodes.
func (j Judge) Stays(pod *Pod, isKnown, isDerived bool) Reason {
	if pod.Stays == "" && !isKnown {
		return UnknownDemand
	}
	return j.decision.limit(pod, isDerived)
}
