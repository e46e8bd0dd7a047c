// Package score ranks nodes for a pod by the links that its traffic crosses.
//
// The score is that of UTP (Hotspots, section 5.1): the capacity that remains on the fullest link, in percent, with the
// pod's peak demand. The links are those of the node's interface, of its rack and of its rack's pod, each in the direction
// of the traffic. Unlike UTP, which compares racks by lexicographic objectives, the scheduler adds weighted scores; so the
// score is absolute and not normalized. All functions are pure: a view of the network and a demand make a score.
package score

import (
	"iter"
	"math"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/placements"
	"leeward.dev/kubernetes/snapshot"
)

// Most is the score of a node whose links are idle.
const Most int64 = 100

// rounding is the error of a utilization that must not cost a point.
const rounding = 1e-9

// Outcome says whether nodes have scores, and if not, the reason. The texts are values of metrics.
type Outcome string

// Outcomes. With any but Ranked, the pod is placed without regard to the network.
const (
	// Ranked means that nodes have scores.
	Ranked Outcome = "ranked"
	// UnknownDemand means that nothing says the demand of the pod.
	UnknownDemand Outcome = "unknown_demand"
	// NoSnapshot means that no snapshot has come yet.
	NoSnapshot Outcome = "no_snapshot"
	// Stale means that the last snapshot is too old.
	Stale Outcome = "stale"
	// OtherCluster means that the controller knows fewer than half of the nodes.
	OtherCluster Outcome = "other_cluster"
	// NoTelemetry means that the load of no node is known.
	NoTelemetry Outcome = "no_telemetry"
)

// Request is a pod that needs a node.
type Request struct {
	// View is the network, nil before the first snapshot.
	View *placements.View
	// Fresh is true if the snapshot of the view is young enough to count.
	Fresh bool
	// Nodes are the names of the nodes that can take the pod.
	Nodes iter.Seq[string]
	// Demand is that of the pod.
	Demand demand.Demand
}

// Ranking has the scores of nodes. It does not change.
type Ranking struct {
	names  *snapshot.Names
	scores []int8
	// average is the score of a node that the controller does not know.
	average int64
}

// unscored marks a host that is no candidate.
const unscored int8 = -1

// Rank scores the nodes of a request. The ranking is nil unless the outcome is [Ranked].
//
// A node behind a link of unknown load has the score 0: the link may be full. A node that the controller does not know has
// the average of the others, so it is neither drawn nor avoided.
func Rank(request Request) (*Ranking, Outcome) {
	switch {
	case !request.Demand.IsKnown():
		return nil, UnknownDemand
	case request.View == nil:
		return nil, NoSnapshot
	case !request.Fresh:
		return nil, Stale
	}
	names := request.View.Snapshot().Names()
	ranking := &Ranking{names: names, scores: make([]int8, names.Hosts())}
	for host := range ranking.scores {
		ranking.scores[host] = unscored
	}
	scorer := newScorer(request.View, request.Demand)
	sum, scored, unknown, measured := int64(0), 0, 0, 0
	last := snapshot.None
	for node := range request.Nodes {
		host := names.HostAfter(last, node)
		if host == snapshot.None {
			unknown++
			continue
		}
		last = host
		utilization := scorer.utilization(host)
		if !math.IsNaN(utilization) {
			measured++
		}
		score := scoreOf(utilization)
		ranking.scores[host] = int8(score)
		sum += score
		scored++
	}
	switch {
	case unknown > scored:
		return nil, OtherCluster
	case measured == 0:
		return nil, NoTelemetry
	}
	ranking.average = sum / int64(scored)
	return ranking, Ranked
}

// Score returns the score of a node from 0 to [Most].
func (r *Ranking) Score(node string) int64 {
	host := r.names.Host(node)
	if host == snapshot.None || r.scores[host] == unscored {
		return r.average
	}
	return int64(r.scores[host])
}

// scoreOf returns the score at a utilization of the fullest link, 0 if it is unknown.
func scoreOf(utilization float64) int64 {
	if math.IsNaN(utilization) || utilization >= 1 {
		return 0
	}
	return int64(math.Floor(float64(Most)*(1-max(utilization, 0)) + rounding))
}

// scorer scores hosts for one demand. Hosts of a rack share the links above them, which count once.
type scorer struct {
	view            *placements.View
	hosts           []snapshot.HostLinks
	egress, ingress int64
	racks           []float64
	ranked          []bool
}

func newScorer(view *placements.View, d demand.Demand) *scorer {
	racks := view.Snapshot().Names().Racks()
	return &scorer{
		view: view, hosts: view.Snapshot().Names().HostLinks(), egress: d.Egress.Bps, ingress: d.Ingress.Bps,
		racks: make([]float64, racks), ranked: make([]bool, racks),
	}
}

// utilization returns that of the fullest link of a host with the demand, NaN if a load is unknown.
func (s *scorer) utilization(host int32) float64 {
	links := &s.hosts[host]
	above := 0.0
	if links.Rack != snapshot.None {
		if !s.ranked[links.Rack] {
			s.racks[links.Rack], s.ranked[links.Rack] = s.above(links), true
		}
		above = s.racks[links.Rack]
	}
	if !s.view.HostsReport(*links) {
		return above
	}
	return max(above, s.link(links.Egress, s.egress), s.link(links.Ingress, s.ingress))
}

func (s *scorer) above(links *snapshot.HostLinks) float64 {
	return max(
		s.link(links.Uplink, s.egress), s.link(links.PodUplink, s.egress),
		s.link(links.Downlink, s.ingress), s.link(links.PodDownlink, s.ingress),
	)
}

// link returns the utilization of a link with an extra rate, 0 without the link. [max] hands on an unknown one.
func (s *scorer) link(link int32, extra int64) float64 {
	if link == snapshot.None {
		return 0
	}
	return s.view.Utilization(link, extra)
}
