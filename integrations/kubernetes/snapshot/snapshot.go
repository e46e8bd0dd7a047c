// Package snapshot follows the state of the network as the controller knows it.
//
// A follower requests GET /v1/snapshot again and again: first a whole snapshot, then differences. Each answer becomes an
// immutable snapshot, and a feed holds the last one in an atomic pointer. Decisions read it and never wait. Nothing that a
// controller answers ends the follower or fills the memory.
package snapshot

import (
	"fmt"
	"sync/atomic"
	"time"
)

// None stands for a link that a host does not have.
const None int32 = -1

// InvalidError says why an answer is no snapshot.
type InvalidError struct{ problem string }

// Error returns the reason with the name of the field and its value.
func (e *InvalidError) Error() string { return e.problem }

func invalid(format string, arguments ...any) error {
	return &InvalidError{problem: fmt.Sprintf(format, arguments...)}
}

// Snapshot is the network at one time. It does not change, so any number of goroutines may read it.
type Snapshot struct {
	id             string
	epoch          int64
	time           int64
	clusterVersion string
	difference     bool
	advanced       time.Time
	names          *Names
	capacity       []int64
	measured       []int64
	pending        []int64
	until          []int64
	// from and latest are nil if the answer did not have them.
	from, latest []int64
	// derived has 1 for each link whose load is a sum, nil if the answer did not say it.
	derived []int64
	clients map[string]int64
}

// ID identifies the snapshot, for the difference from it.
func (s *Snapshot) ID() string { return s.id }

// Epoch returns the state of the controller's ledger. Epochs start again when the controller does.
func (s *Snapshot) Epoch() int64 { return s.epoch }

// Time returns the time of the state by the controller's clock, in nanoseconds since 1970.
func (s *Snapshot) Time() int64 { return s.time }

// IsDifference returns true if the controller sent the difference from the snapshot before.
func (s *Snapshot) IsDifference() bool { return s.difference }

// Age returns the age of the state at a local time. A controller that sends the same state again and again is as old as
// that state.
func (s *Snapshot) Age(now time.Time) time.Duration { return max(now.Sub(s.advanced), 0) }

// TimeAt returns the time by the controller's clock at a local time, in nanoseconds since 1970.
func (s *Snapshot) TimeAt(now time.Time) int64 { return s.time + int64(now.Sub(s.advanced)) }

// Counted returns the last sequence of a client whose placements the loads include, -1 if there is none.
func (s *Snapshot) Counted(client string) int64 {
	if sequence, ok := s.clients[client]; ok {
		return sequence
	}
	return -1
}

// Names returns the names of the rows, and the links of hosts. Snapshots with the same Names have the same rows.
func (s *Snapshot) Names() *Names { return s.names }

// Capacities returns the capacity of each link in bit/s. The caller must not change it, nor the slices below.
func (s *Snapshot) Capacities() []int64 { return s.capacity }

// Measured returns the load of each link by telemetry in bit/s, or [Unknown].
func (s *Snapshot) Measured() []int64 { return s.measured }

// Pending returns, for each link, the placed load in bit/s that telemetry does not show; it is below 0 if more work has left
// than come.
func (s *Snapshot) Pending() []int64 { return s.pending }

// Until returns the end of the last window of each link in nanoseconds since 1970, [Unknown] for a link without reports.
func (s *Snapshot) Until() []int64 { return s.until }

// HasWindows returns true if the snapshot has the last window of each link.
func (s *Snapshot) HasWindows() bool { return s.latest != nil }

// Latest returns the mean load of each link over its last window alone in bit/s, or [Unknown]; nil without windows. In
// contrast to [Snapshot.Measured], earlier windows do not count.
func (s *Snapshot) Latest() []int64 { return s.latest }

// From returns the start of the last window of each link in nanoseconds since 1970, or [Unknown]; nil without windows.
func (s *Snapshot) From() []int64 { return s.from }

// IsDerived returns true if the load of a link is the sum of the hosts below, because the link has no counter. The sum contains
// traffic that stays below the link. Only snapshots with windows say it.
func (s *Snapshot) IsDerived(link int32) bool { return s.derived != nil && s.derived[link] == 1 }

// Names has the names of all rows, and the links of every host. It does not change.
type Names struct {
	tables [tableCount][mostColumns][]string
	rows   [tableCount]map[string]int32
	hosts  []HostLinks
	// after has, for each host, the one that callers asked for next.
	after []atomic.Int32
}

// HostLinks has the rows of the links between a host and the core, [None] for those that the cluster does not have.
type HostLinks struct {
	// Rack is the row of the host's rack.
	Rack int32
	// Egress and Ingress are the links of the host's interface.
	Egress, Ingress int32
	// Uplink and Downlink are the links of the rack.
	Uplink, Downlink int32
	// PodUplink and PodDownlink are the links of the rack's pod.
	PodUplink, PodDownlink int32
}

func newNames(read *[tableCount]rowsOf) (*Names, error) {
	n := &Names{}
	for number := range tables {
		for i := range tables[number].columns {
			n.tables[number][i] = read[number].columns[i].names
		}
		keys := n.tables[number][0]
		n.rows[number] = make(map[string]int32, len(keys))
		for row, key := range keys {
			if _, twice := n.rows[number][key]; twice {
				return nil, invalid("%s: `%s`: occurs twice", tables[number].name, key)
			}
			n.rows[number][key] = int32(row)
		}
	}
	n.hosts = make([]HostLinks, n.Hosts())
	for host := range n.hosts {
		n.hosts[host] = n.linksOf(host)
	}
	n.after = make([]atomic.Int32, n.Hosts())
	return n, nil
}

func (n *Names) linksOf(host int) HostLinks {
	own := n.tables[hosts][hostName][host]
	result := HostLinks{
		Rack: None, Egress: n.Link(own + ":egress"), Ingress: n.Link(own + ":ingress"),
		Uplink: None, Downlink: None, PodUplink: None, PodDownlink: None,
	}
	rack, ok := n.rows[racks][n.tables[hosts][hostRack][host]]
	if !ok {
		return result
	}
	result.Rack = rack
	result.Uplink = n.Link(n.tables[racks][rackUplink][rack])
	result.Downlink = n.Link(n.tables[racks][rackDownlink][rack])
	if pod := n.tables[racks][rackPod][rack]; pod != "" {
		result.PodUplink, result.PodDownlink = n.Link(pod+":uplink"), n.Link(pod+":downlink")
	}
	return result
}

// Links returns the number of links.
func (n *Names) Links() int { return len(n.tables[links][linkName]) }

// Racks returns the number of racks.
func (n *Names) Racks() int { return len(n.tables[racks][rackName]) }

// Hosts returns the number of hosts.
func (n *Names) Hosts() int { return len(n.tables[hosts][hostName]) }

// Link returns the row of a link by its name, or [None].
func (n *Names) Link(name string) int32 { return n.row(links, name) }

// Host returns the row of a host by its name, or [None].
func (n *Names) Host(name string) int32 { return n.row(hosts, name) }

// HostAfter returns the same as [Names.Host], and is faster if the caller asked for this name after the previous host before.
func (n *Names) HostAfter(previous int32, name string) int32 {
	if previous == None {
		return n.Host(name)
	}
	if next := n.after[previous].Load(); n.HostName(next) == name {
		return next
	}
	host := n.Host(name)
	if host != None {
		n.after[previous].Store(host)
	}
	return host
}

func (n *Names) row(table int, name string) int32 {
	if row, ok := n.rows[table][name]; ok {
		return row
	}
	return None
}

// LinkName returns the name of a link.
func (n *Names) LinkName(link int32) string { return n.tables[links][linkName][link] }

// HostName returns the name of a host.
func (n *Names) HostName(host int32) string { return n.tables[hosts][hostName][host] }

// RackName returns the name of a rack.
func (n *Names) RackName(rack int32) string { return n.tables[racks][rackName][rack] }

// RackPod returns the pod of a rack, empty without one.
func (n *Names) RackPod(rack int32) string { return n.tables[racks][rackPod][rack] }

// HostLinks returns the links of every host by its row. The caller must not change them.
func (n *Names) HostLinks() []HostLinks { return n.hosts }

// RackOf returns the rack of a host, empty for a host that the controller does not know or that has no rack.
func (n *Names) RackOf(host string) string {
	if row := n.Host(host); row != None {
		if rack := n.hosts[row].Rack; rack != None {
			return n.RackName(rack)
		}
	}
	return ""
}
