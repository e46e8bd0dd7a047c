package trafficmatrix

import (
	"iter"
	"math"

	"leeward.dev/kubernetes/placements"
	"leeward.dev/kubernetes/snapshot"
)

// Most is the score of a node on which a pod waits for no transfer.
const Most int64 = 100

// leastShare is the share of a link that a transfer gets at least: other traffic makes room, as TCP does. It also bounds the
// time behind a link of unknown load, which may be full.
const leastShare = 0.01

// bitsPerByte converts bytes to bits.
const bitsPerByte = 8

// traffic is the bytes to and from some peers of a pod.
type traffic struct{ out, in int64 }

// worst has the longest time of any key, and the longest of any other key.
type worst struct {
	key           int32
	first, second float64
}

func newWorst() worst { return worst{key: snapshot.None} }

func (w *worst) add(key int32, time float64) {
	if time > w.first {
		w.key, w.first, w.second = key, time, w.first
	} else {
		w.second = max(w.second, time)
	}
}

// except returns the longest time without that of a key.
func (w *worst) except(key int32) float64 {
	if key == w.key {
		return w.second
	}
	return w.first
}

// pairwise finds the time that the transfers of a pod take from a node: the bytes on each link between the node and the peers,
// over the rate that remains there (Choreo, section 5: the path with the highest rate). Transfers of a pod share the links that
// they cross.
type pairwise struct {
	view  *placements.View
	names *snapshot.Names
	total traffic
	// hosts, racks and pods have the traffic with the peers below each of them.
	hosts, racks, pods map[int32]traffic
	// atHosts, atRacks and atPods have the times on the links of the peers.
	atHosts, atRacks, atPods worst
}

func newPairwise(view *placements.View, peers []peer) *pairwise {
	p := &pairwise{
		view: view, names: view.Snapshot().Names(),
		hosts: map[int32]traffic{}, racks: map[int32]traffic{}, pods: map[int32]traffic{},
		atHosts: newWorst(), atRacks: newWorst(), atPods: newWorst(),
	}
	for _, peer := range peers {
		host := p.names.Host(peer.node)
		if host == snapshot.None {
			continue
		}
		links := p.names.HostLinks()[host]
		add := func(to map[int32]traffic, key int32) {
			if key != snapshot.None {
				to[key] = traffic{out: to[key].out + peer.out, in: to[key].in + peer.in}
			}
		}
		add(p.hosts, host)
		add(p.racks, links.Rack)
		add(p.pods, links.PodUplink)
		p.total = traffic{out: p.total.out + peer.out, in: p.total.in + peer.in}
	}
	for host, with := range p.hosts {
		links := p.names.HostLinks()[host]
		p.atHosts.add(host, max(p.hostTime(links, links.Ingress, with.out), p.hostTime(links, links.Egress, with.in)))
		p.addAbove(links)
	}
	return p
}

// addAbove adds the times on the links of a peer's rack and of the rack's pod. A second peer below them adds the same again,
// which must not count as another key.
func (p *pairwise) addAbove(links snapshot.HostLinks) {
	if links.Rack != snapshot.None && p.atRacks.key != links.Rack {
		with := p.racks[links.Rack]
		p.atRacks.add(links.Rack, max(p.time(links.Downlink, with.out), p.time(links.Uplink, with.in)))
	}
	if links.PodUplink != snapshot.None && p.atPods.key != links.PodUplink {
		with := p.pods[links.PodUplink]
		p.atPods.add(links.PodUplink, max(p.time(links.PodDownlink, with.out), p.time(links.PodUplink, with.in)))
	}
}

// isUseful returns true if any peer is on a node that the controller knows.
func (p *pairwise) isUseful() bool { return p.total != traffic{} }

// timeOn returns the time of the transfers from a node in seconds, 0 if all peers are on it. It returns false for a node that
// the controller does not know.
func (p *pairwise) timeOn(node string) (float64, bool) {
	host := p.names.Host(node)
	if host == snapshot.None {
		return 0, false
	}
	links := p.names.HostLinks()[host]
	result := p.atHosts.except(host)
	away := p.without(p.hosts, host)
	result = max(result, p.hostTime(links, links.Egress, away.out), p.hostTime(links, links.Ingress, away.in))
	if links.Rack != snapshot.None {
		away = p.without(p.racks, links.Rack)
		result = max(result, p.atRacks.except(links.Rack), p.time(links.Uplink, away.out), p.time(links.Downlink, away.in))
	}
	if links.PodUplink != snapshot.None {
		away = p.without(p.pods, links.PodUplink)
		result = max(result, p.atPods.except(links.PodUplink), p.time(links.PodUplink, away.out), p.time(links.PodDownlink, away.in))
	}
	return result, true
}

// without returns the traffic with the peers outside of a domain.
func (p *pairwise) without(below map[int32]traffic, key int32) traffic {
	return traffic{out: p.total.out - below[key].out, in: p.total.in - below[key].in}
}

// hostTime is the time on a link of a host. Where no host of a rack reports, hosts have no counters, and only the capacity of
// their links counts.
func (p *pairwise) hostTime(links snapshot.HostLinks, link int32, bytes int64) float64 {
	if link == snapshot.None || bytes == 0 {
		return 0
	}
	if !p.view.HostsReport(links) {
		return over(bytes, float64(p.view.Snapshot().Capacities()[link]))
	}
	return p.time(link, bytes)
}

// time is the time of bytes on the rest of a link, in seconds.
func (p *pairwise) time(link int32, bytes int64) float64 {
	if link == snapshot.None || bytes == 0 {
		return 0
	}
	capacity := float64(p.view.Snapshot().Capacities()[link])
	rest := capacity - p.view.Load(link)
	if math.IsNaN(rest) {
		rest = 0
	}
	return over(bytes, max(rest, leastShare*capacity))
}

// over returns the time of bytes at a rate in bit/s. A link without capacity never ends.
func over(bytes int64, rate float64) float64 {
	if rate <= 0 {
		return math.Inf(1)
	}
	return float64(bytes) * bitsPerByte / rate
}

// scoresOf returns the scores of nodes: 100 for a node without any wait, 50 for the shortest wait of the others, and less in
// proportion for longer ones. It returns nil if all nodes are equal. Nodes that the controller does not know have 0.
func scoresOf(p *pairwise, nodes iter.Seq[string]) map[string]int64 {
	times, shortest, first, differ := map[string]float64{}, math.Inf(1), math.NaN(), false
	for node := range nodes {
		time, ok := p.timeOn(node)
		if !ok {
			time = math.Inf(1)
		}
		times[node] = time
		if time > 0 {
			shortest = min(shortest, time)
		}
		differ = differ || (!math.IsNaN(first) && time != first)
		first = time
	}
	if !differ {
		return nil
	}
	scores := make(map[string]int64, len(times))
	for node, time := range times {
		scores[node] = scoreOf(time, shortest)
	}
	return scores
}

// scoreOf returns the score of a time, from 0 to [Most].
func scoreOf(time, shortest float64) int64 {
	switch {
	case time == 0:
		return Most
	case math.IsInf(time, 1):
		return 0
	}
	return int64(math.Round(float64(Most) * shortest / (shortest + time)))
}
