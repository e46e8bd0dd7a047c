package score

import (
	"math"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/placements"
	"leeward.dev/kubernetes/snapshot"
)

// Explanation says how a node gets its score.
type Explanation struct {
	// Node and Score are the node and its score.
	Node  string
	Score int64
	// Limit is the position in Links of the fullest link, or of the first unknown one; -1 without links.
	Limit int
	// Links are the links that the traffic of the pod crosses, from the node upward, first out of it and then into it.
	Links []Link
}

// Link is a link on the way of a pod's traffic. Rates are in bit/s.
type Link struct {
	Name     string
	Capacity int64
	// Load is the load with all placements, NaN if it is unknown.
	Load float64
	// Local is the part of the load by placements that the snapshot does not include.
	Local int64
	// Demand is the rate of the pod.
	Demand int64
	// Utilization is the share of the capacity with the pod, NaN if the load is unknown.
	Utilization float64
}

// Explain returns the explanation of a node's score, and false for a node that the controller does not know.
func Explain(view *placements.View, node string, d demand.Demand) (Explanation, bool) {
	names := view.Snapshot().Names()
	host := names.Host(node)
	if host == snapshot.None {
		return Explanation{}, false
	}
	of := names.HostLinks()[host]
	result := Explanation{Node: node, Score: scoreOf(newScorer(view, d).utilization(host)), Limit: -1}
	add := func(link int32, rate int64) {
		if link == snapshot.None {
			return
		}
		result.Links = append(result.Links, Link{
			Name: names.LinkName(link), Capacity: view.Snapshot().Capacities()[link], Load: view.Load(link),
			Local: view.Local(link), Demand: rate, Utilization: view.Utilization(link, rate),
		})
	}
	hostsReport := view.HostsReport(of)
	for _, direction := range []struct {
		links [3]int32
		rate  int64
	}{
		{[3]int32{of.Egress, of.Uplink, of.PodUplink}, d.Egress.Bps},
		{[3]int32{of.Ingress, of.Downlink, of.PodDownlink}, d.Ingress.Bps},
	} {
		for i, link := range direction.links {
			if i > 0 || hostsReport {
				add(link, direction.rate)
			}
		}
	}
	for i, link := range result.Links {
		if math.IsNaN(link.Utilization) {
			result.Limit = i
			break
		}
		if result.Limit < 0 || link.Utilization > result.Links[result.Limit].Utilization {
			result.Limit = i
		}
	}
	return result, true
}
