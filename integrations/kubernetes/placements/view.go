// Package placements counts the placements of this scheduler that the controller's snapshot does not include.
//
// A scheduler places many pods between two snapshots. Without its own placements, all of them would go below the same cold
// link. A placement counts on the links of its node from the moment at which the scheduler reserves it. It leaves when a
// snapshot counts it, or else as telemetry shows it (package ledger).
package placements

import (
	"math"
	"sync/atomic"

	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/snapshot"
)

// View is a snapshot with the own placements that it does not include. Any number of goroutines may read it while the
// scheduler places pods. A snapshot and the placements beside it change together, so no placement ever counts twice.
type View struct {
	snapshot *snapshot.Snapshot
	// base has the load of each link in the snapshot; NaN for an unknown one.
	base  []float64
	local []localLoad
	// reported has, for each rack, whether any of its hosts was ever reported. The last is for hosts without a rack.
	reported []bool
}

// localLoad is the rate of own placements on one link.
type localLoad struct {
	held, settling atomic.Int64
}

func newView(s *snapshot.Snapshot) *View {
	v := &View{
		snapshot: s,
		base:     make([]float64, s.Names().Links()),
		local:    make([]localLoad, s.Names().Links()),
		reported: make([]bool, s.Names().Racks()+1),
	}
	measured, pending := s.Measured(), s.Pending()
	for link := range v.base {
		v.base[link] = math.NaN()
		if measured[link] != snapshot.Unknown {
			v.base[link] = float64(measured[link])
			if pending[link] != snapshot.Unknown {
				v.base[link] += float64(pending[link])
			}
		}
	}
	until := s.Until()
	for _, links := range s.Names().HostLinks() {
		for _, link := range [...]int32{links.Egress, links.Ingress} {
			if link != snapshot.None && until[link] != snapshot.Unknown {
				v.reported[v.rack(links)] = true
			}
		}
	}
	return v
}

func (v *View) rack(links snapshot.HostLinks) int32 {
	if links.Rack == snapshot.None {
		return int32(len(v.reported) - 1)
	}
	return links.Rack
}

// Snapshot returns the snapshot of the view.
func (v *View) Snapshot() *snapshot.Snapshot { return v.snapshot }

// Load returns the load of a link in bit/s with all placements, NaN if it is unknown.
func (v *View) Load(link int32) float64 {
	local := &v.local[link]
	return ledger.Load(v.base[link], float64(local.held.Load()), float64(local.settling.Load()))
}

// Local returns the part of the load in bit/s that own placements add, negative if they leave.
func (v *View) Local(link int32) int64 {
	return v.local[link].held.Load() + v.local[link].settling.Load()
}

// Utilization returns the share of a link's capacity that its load takes with an extra rate in bit/s, NaN if the load is
// unknown.
func (v *View) Utilization(link int32, extra int64) float64 {
	return ledger.Utilization(v.Load(link), float64(extra), float64(v.snapshot.Capacities()[link]))
}

// HostsReport returns true if any host in the rack of these links was ever reported. If none was, hosts have no counters,
// and their own links limit nothing.
func (v *View) HostsReport(links snapshot.HostLinks) bool { return v.reported[v.rack(links)] }
