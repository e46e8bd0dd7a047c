// Package fake is a network and its controller for tests. The network writes its snapshots in the form of GET /v1/snapshot,
// whole or as differences, and the controller serves them.
package fake

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// Unknown is the value of an unknown load.
const Unknown int64 = math.MinInt64

// Link is a link of the network. Rates are in bit/s.
type Link struct {
	Name                        string
	Capacity, Measured, Pending int64
	// From and Until are the ends of the last window, zero without one, and Latest is the mean load over it.
	From, Until time.Time
	Latest      int64
	// Derived is true for a link whose load is the sum of its hosts.
	Derived bool
}

// Rack is a rack. A network without pods has racks with an empty one.
type Rack struct {
	Name, Pod string
}

// Host is a host in a rack.
type Host struct {
	Name, Rack string
}

// Network is the state of a network. The caller changes its fields, and Whole and Difference write them.
type Network struct {
	Run, Version string
	Epoch        int64
	Time         time.Time
	Links        []Link
	Racks        []Rack
	Hosts        []Host
	Clients      map[string]int64
	// Windows is true if snapshots have From, Latest and Derived of links.
	Windows bool

	number int
	sent   map[string]state
	rows   map[string]int
}

// state is what a snapshot had.
type state struct {
	version string
	links   []Link
	clients map[string]int64
}

// mostSent is the number of last snapshots from which the network writes differences. All readers share them.
const mostSent = 256

// Start is the time of a new network.
var Start = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// Tree returns a network of pods with racks of hosts. All links are measured and idle: 10 Gb/s for a host, 40 Gb/s for a
// rack, 400 Gb/s for a pod. With 0 pods, racks have none.
func Tree(pods, racks, hosts int) *Network {
	n := &Network{
		Run: "f00d", Version: "1", Time: Start, Clients: map[string]int64{}, sent: map[string]state{}, rows: map[string]int{},
	}
	for pod := range max(pods, 1) {
		name := ""
		if pods > 0 {
			name = fmt.Sprintf("p%d", pod)
			n.addLinks(name, "uplink", "downlink", 400e9)
		}
		for rack := range racks {
			n.addRack(fmt.Sprintf("r%d", pod*racks+rack), name, hosts)
		}
	}
	return n
}

func (n *Network) addRack(name, pod string, hosts int) {
	n.Racks = append(n.Racks, Rack{Name: name, Pod: pod})
	n.addLinks(name, "uplink", "downlink", 40e9)
	for host := range hosts {
		host := Host{Name: fmt.Sprintf("%sh%d", name, host), Rack: name}
		n.Hosts = append(n.Hosts, host)
		n.addLinks(host.Name, "egress", "ingress", 10e9)
	}
}

func (n *Network) addLinks(of, out, in string, capacity int64) {
	for _, direction := range []string{out, in} {
		name := of + ":" + direction
		n.rows[name] = len(n.Links)
		n.Links = append(n.Links, Link{Name: name, Capacity: capacity, Until: n.Time})
	}
}

// Link returns a link by its name.
func (n *Network) Link(name string) *Link { return &n.Links[n.rows[name]] }

// Advance passes time and reports all links: their last windows end at the new time, with the present loads.
func (n *Network) Advance(by time.Duration) {
	n.Time = n.Time.Add(by)
	n.Epoch++
	for i := range n.Links {
		n.Links[i].From, n.Links[i].Until = n.Time.Add(-by), n.Time
		n.Links[i].Latest = n.Links[i].Measured
	}
}

// head returns the fields of an answer beside the tables, and remembers what it has.
func (n *Network) head(since any, clients []map[string]any) map[string]any {
	id := fmt.Sprintf("%s-%d", n.Run, n.number)
	delete(n.sent, fmt.Sprintf("%s-%d", n.Run, n.number-mostSent))
	n.number++
	n.sent[id] = state{version: n.Version, links: slices.Clone(n.Links), clients: maps.Clone(n.Clients)}
	return map[string]any{
		"id": id, "since": since, "epoch": n.Epoch, "time": n.Time.Format(time.RFC3339Nano), "telemetry": nil,
		"cluster_version": n.Version, "resolution": 0.01, "clients": clients,
	}
}

func number(value int64) any {
	if value == Unknown {
		return nil
	}
	return value
}

func moment(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return at.Format(time.RFC3339Nano)
}

func text(value string) any {
	if value == "" {
		return nil
	}
	return value
}

func columnOf[T any](rows []T, cell func(T) any) []any {
	column := make([]any, 0, len(rows))
	for _, row := range rows {
		column = append(column, cell(row))
	}
	return column
}

// Whole writes a whole snapshot.
func (n *Network) Whole() []byte {
	clients := []map[string]any{}
	for client, sequence := range n.Clients {
		clients = append(clients, map[string]any{"client": client, "sequence": sequence})
	}
	answer := n.head(nil, clients)
	links := map[string]any{
		"link":         columnOf(n.Links, func(l Link) any { return l.Name }),
		"capacity_bps": columnOf(n.Links, func(l Link) any { return l.Capacity }),
		"measured_bps": columnOf(n.Links, func(l Link) any { return number(l.Measured) }),
		"pending_bps":  columnOf(n.Links, func(l Link) any { return number(l.Pending) }),
		"until":        columnOf(n.Links, func(l Link) any { return moment(l.Until) }),
	}
	if n.Windows {
		links["from"] = columnOf(n.Links, func(l Link) any { return moment(l.From) })
		links["latest_bps"] = columnOf(n.Links, func(l Link) any { return number(l.Latest) })
		links["derived"] = columnOf(n.Links, func(l Link) any { return l.Derived })
	}
	answer["links"] = links
	answer["racks"] = map[string]any{
		"rack":     columnOf(n.Racks, func(r Rack) any { return r.Name }),
		"pod":      columnOf(n.Racks, func(r Rack) any { return text(r.Pod) }),
		"uplink":   columnOf(n.Racks, func(r Rack) any { return r.Name + ":uplink" }),
		"downlink": columnOf(n.Racks, func(r Rack) any { return r.Name + ":downlink" }),
	}
	answer["hosts"] = map[string]any{
		"host": columnOf(n.Hosts, func(h Host) any { return h.Name }),
		"rack": columnOf(n.Hosts, func(h Host) any { return text(h.Rack) }),
	}
	return encode(answer)
}

// Difference writes the difference from an earlier snapshot, or a whole snapshot if there is none of that id.
func (n *Network) Difference(since string) []byte {
	before, ok := n.sent[since]
	if !ok || before.version != n.Version || len(before.links) != len(n.Links) {
		return n.Whole()
	}
	clients := []map[string]any{}
	for client, sequence := range n.Clients {
		if last, ok := before.clients[client]; !ok || last != sequence {
			clients = append(clients, map[string]any{"client": client, "sequence": sequence})
		}
	}
	for client := range before.clients {
		if _, ok := n.Clients[client]; !ok {
			clients = append(clients, map[string]any{"client": client, "sequence": nil})
		}
	}
	var rows []int
	var now, then []Link
	last := 0
	for row, link := range n.Links {
		if link != before.links[row] {
			rows, last = append(rows, row-last), row
			now, then = append(now, link), append(then, before.links[row])
		}
	}
	answer := n.head(since, clients)
	links := map[string]any{
		"rows":         columnOf(rows, func(row int) any { return row }),
		"capacity_bps": changes(now, then, func(l Link) int64 { return l.Capacity }),
		"measured_bps": changes(now, then, func(l Link) int64 { return l.Measured }),
		"pending_bps":  changes(now, then, func(l Link) int64 { return l.Pending }),
		"until":        columnOf(now, func(l Link) any { return moment(l.Until) }),
	}
	if n.Windows {
		links["from"] = columnOf(now, func(l Link) any { return moment(l.From) })
		links["latest_bps"] = changes(now, then, func(l Link) int64 { return l.Latest })
		links["derived"] = columnOf(now, func(l Link) any { return l.Derived })
	}
	answer["links"] = links
	answer["racks"] = map[string]any{"rows": []int{}}
	answer["hosts"] = map[string]any{"rows": []int{}}
	return encode(answer)
}

func changes(now, then []Link, value func(Link) int64) []any {
	column := make([]any, 0, len(now))
	for i := range now {
		after, before := value(now[i]), value(then[i])
		switch {
		case after == Unknown:
			column = append(column, nil)
		case before == Unknown:
			column = append(column, after)
		default:
			column = append(column, after-before)
		}
	}
	return column
}

func encode(answer any) []byte {
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return body
}
