// Package evictor moves pods away from hot racks (UTP, reactive: Hotspots, section 5.1).
//
// A rack is hot if the mean load of a link over a window exceeds the threshold for several windows in a row. Then the
// migratable pod with the largest demand leaves first, until the projected load is at the threshold. A pod leaves only if
// another rack would stay cool with it and has room for its requests. The scheduler places the replacement.
//
// The decision ([Decide]) is a pure function: windows, pods, nodes, earlier evictions and settings make a round. It has
// neither clock nor I/O. A [Runner] carries rounds out through the Eviction API, so disruption budgets always hold.
//
// The paper leaves points open. Cooldowns of racks and workloads prevent exchanges of pods, a budget an hour limits damage,
// and evictions count on both racks until telemetry shows them, so that replacements do not meet on the coldest rack.
package evictor

import (
	"fmt"
	"math"
	"time"

	"leeward.dev/kubernetes/ledger"
)

// Settings limit evictions.
type Settings struct {
	// Threshold is the utilization above which a link is hot, as a share.
	Threshold float64
	// Margin is the distance below the threshold that the links of a target must keep, as a share.
	Margin float64
	// Window is the time over which loads are averaged. It is at least the interval of reports.
	Window time.Duration
	// HotWindows is the number of hot windows in a row after which pods leave.
	HotWindows int
	// RackCooldown and WorkloadCooldown are the numbers of windows after an eviction in which no other pod leaves the rack, and
	// no other pod of the workload is evicted.
	RackCooldown, WorkloadCooldown int
	// HourlyBudget is the largest number of evictions in any hour.
	HourlyBudget int
	// DerivedLinks is true if pods leave also links whose load is the sum of the nodes, with traffic within the rack.
	DerivedLinks bool
	// Lasts is the time after which an eviction no longer counts on the loads, even if no report shows it.
	Lasts time.Duration
}

// DefaultSettings returns the default of each setting. The threshold is that of Hotspots, section 5.1, and five windows of a
// minute are the five minutes of section 3.1. The others are Leeward's own; the cooldowns are at least those of the service.
func DefaultSettings() Settings {
	return Settings{
		Threshold: 0.75, Margin: 0.05, Window: time.Minute, HotWindows: 5,
		RackCooldown: 10, WorkloadCooldown: 10, HourlyBudget: 20, Lasts: 10 * time.Minute,
	}
}

// Most windows of a cooldown or a streak, and most evictions in an hour.
const (
	mostWindows   = 1000
	mostEvictions = 1000
)

// Check returns an error that names an invalid setting and its value.
func (s Settings) Check(interval time.Duration) error {
	shares := []struct {
		name        string
		value, most float64
	}{{"threshold", s.Threshold, 1}, {"margin", s.Margin, s.Threshold}}
	for _, share := range shares {
		if math.IsNaN(share.value) || share.value < 0 || share.value > share.most {
			return fmt.Errorf("%s: %v: expected a share from 0 to %v", share.name, share.value, share.most)
		}
	}
	if s.Threshold == 0 {
		return fmt.Errorf("threshold: 0: expected a share above 0")
	}
	if s.Window < interval || s.Window > time.Hour {
		return fmt.Errorf("window: %v: expected at least the interval of reports, %v, and at most 1h", s.Window, interval)
	}
	if s.Lasts < s.Window || s.Lasts > 24*time.Hour {
		return fmt.Errorf("lasts: %v: expected at least the window, %v, and at most 24h", s.Lasts, s.Window)
	}
	counts := []struct {
		name               string
		value, least, most int
	}{
		{"hot windows", s.HotWindows, 1, mostWindows},
		{"rack cooldown", s.RackCooldown, 1, mostWindows},
		{"workload cooldown", s.WorkloadCooldown, 1, mostWindows},
		{"hourly budget", s.HourlyBudget, 0, mostEvictions},
	}
	for _, count := range counts {
		if count.value < count.least || count.value > count.most {
			return fmt.Errorf("%s: %d: expected %d to %d", count.name, count.value, count.least, count.most)
		}
	}
	return nil
}

// cooldown returns the time of a number of windows.
func (s Settings) cooldown(windows int) time.Duration { return time.Duration(windows) * s.Window }

// remembered returns the time for which an eviction matters: for budgets, cooldowns or loads.
func (s Settings) remembered() time.Duration {
	return max(time.Hour, s.Lasts, s.cooldown(s.RackCooldown), s.cooldown(s.WorkloadCooldown))
}

// limit returns the largest load of a link of a target in bit/s.
func (s Settings) limit(capacity float64) float64 { return (s.Threshold - s.Margin) * capacity }

// rate returns a rate within the bounds of the ledger.
func rate(bps int64) int64 { return min(max(bps, 0), ledger.MaxRate) }
