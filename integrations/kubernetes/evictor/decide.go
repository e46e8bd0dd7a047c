package evictor

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"leeward.dev/kubernetes/fit"
)

// Reason says why a pod stays on a hot link. The texts are values of metrics.
type Reason string

// Reasons for which pods stay.
const (
	// NotMigratable means that the pod does not have the annotation.
	NotMigratable Reason = "not_migratable"
	// NoController means that nothing would replace the pod.
	NoController Reason = "no_controller"
	// Bound means that a replacement must run on the same node, such as that of a DaemonSet.
	Bound Reason = "bound_to_node"
	// OtherScheduler means that a scheduler would place the replacement that may not know the network.
	OtherScheduler Reason = "other_scheduler"
	// NotRunning means that the pod has not started, or is ending.
	NotRunning Reason = "not_running"
	// ManyBudgets means that several PodDisruptionBudgets select the pod; the Eviction API rejects such pods.
	ManyBudgets Reason = "several_disruption_budgets"
	// BudgetSpent means that the PodDisruptionBudget of the pod allows no disruption now.
	BudgetSpent Reason = "disruption_budget"
	// UnknownDemand means that nothing says the peak rate of the pod in the direction of the link.
	UnknownDemand Reason = "unknown_demand"
	// DerivedLink means that the load of the link is the sum of its nodes, which contains traffic within the rack.
	DerivedLink Reason = "derived_link"
	// RackCools means that a pod left the rack a short time ago.
	RackCools Reason = "rack_cooldown"
	// WorkloadCools means that a pod of the workload was evicted a short time ago.
	WorkloadCools Reason = "workload_cooldown"
	// HourSpent means that the budget of the hour is spent.
	HourSpent Reason = "hourly_budget"
	// NoTarget means that no rack which stays cool has room for the pod.
	NoTarget Reason = "no_target"
	// Unseen means that the loads of all other racks are unknown.
	Unseen Reason = "loads_unknown"
	// OtherNode means that the service advises to move the pod from another node than its own.
	OtherNode Reason = "other_node"
)

// Reasons lists all reasons.
var Reasons = [...]Reason{
	NotMigratable, NoController, Bound, OtherScheduler, NotRunning, ManyBudgets, BudgetSpent, UnknownDemand, DerivedLink, RackCools,
	WorkloadCools, HourSpent, NoTarget, Unseen, OtherNode,
}

// Pod is a pod on a node.
type Pod struct {
	UID, Namespace, Name string
	// Node and Rack are those of the pod, and Workload is its owner.
	Node, Rack, Workload string
	// Rates are its peak rates in bit/s, out of it and into it, with 0 for those that are unknown.
	Rates    [2]int64
	Unknown  [2]bool
	Requests fit.Resources
	// Constraints are its conditions for a node.
	Constraints fit.Constraints
	// Stays is the reason for which it can never leave, empty if it can.
	Stays Reason
	// Budget is the PodDisruptionBudget that selects it, empty without one.
	Budget string
}

// Request is the state of a cluster at the end of a window.
type Request struct {
	// Now is the time of the decision, and Start the start of the window.
	Now, Start time.Time
	Racks      []Rack
	Nodes      []Node
	Pods       []Pod
	// Records are earlier evictions.
	Records []Record
	// Disruptions are the numbers of disruptions that each PodDisruptionBudget allows now.
	Disruptions map[string]int32
	Settings    Settings
}

// Eviction is a pod that leaves its rack.
type Eviction struct {
	Pod *Pod
	// Link is the hot link, and Before and After are its projected utilizations without and with the eviction. They are 0 for
	// a move of the service, which has its own projection.
	Link          string
	Before, After float64
	// Target is a rack that stays cool with the pod, and Node one of its nodes with room. The scheduler may choose another.
	Target, Node string
	// Move is the move of the service that the eviction carries out, empty for a decision of the evictor.
	Move string
}

// Stay is a pod that stays on a link that is still hot.
type Stay struct {
	Pod    *Pod
	Link   string
	Reason Reason
	// Move is the move of the service that is refused, empty for a decision of the evictor.
	Move string
}

// HotLink is a link that was hot for long enough.
type HotLink struct {
	Rack, Name string
	// Utilization is the mean over the window, and After the projection after all evictions.
	Utilization, After float64
}

// Round is a decision.
type Round struct {
	Hot       []HotLink
	Evictions []Eviction
	Stays     []Stay
}

// Decide decides which pods leave hot racks. It is a pure function, and equal requests have equal rounds.
//
// The hottest link is first. Of a rack's pods, the one with the largest demand in the direction of the link leaves first, so
// that few leave. Pods leave until the projected load is at the threshold, and never after that.
func Decide(request Request) Round {
	d := newDecision(request)
	for _, hot := range d.hotLinks() {
		d.cool(hot)
	}
	for i := range d.round.Hot {
		hot := &d.round.Hot[i]
		link := d.byName[hot.Name]
		hot.After = d.loads.projected(link) / link.Capacity
	}
	// An eviction for one link of a rack may have cooled the other one.
	d.round.Stays = slices.DeleteFunc(d.round.Stays, func(stay Stay) bool { return !d.loads.isHot(d.byName[stay.Link]) })
	return d.round
}

// decision is the state of a round.
type decision struct {
	Request
	loads *loads
	room  *room
	// gone are the pods that leave in this round.
	gone map[string]bool
	// rackCools and cools are the racks and workloads that cool.
	rackCools, cools map[string]bool
	disruptions      map[string]int32
	// left is the budget of the hour.
	left   int
	byName map[string]*Link
	round  Round
}

func newDecision(request Request) *decision {
	d := &decision{
		Request: request, loads: newLoads(&request), room: newRoom(request.Nodes), byName: map[string]*Link{},
		gone: map[string]bool{}, rackCools: map[string]bool{}, cools: map[string]bool{}, disruptions: map[string]int32{},
	}
	d.left = max(request.Settings.HourlyBudget-inHour(request.Records, request.Now), 0)
	for _, record := range request.Records {
		age := request.Now.Sub(record.At)
		if age < request.Settings.cooldown(request.Settings.RackCooldown) {
			d.rackCools[record.Source] = true
		}
		if age < request.Settings.cooldown(request.Settings.WorkloadCooldown) {
			d.cools[record.Workload] = true
		}
	}
	maps.Copy(d.disruptions, request.Disruptions)
	return d
}

// hotSide is a hot link of a rack.
type hotSide struct {
	rack *Rack
	side int
}

// hotLinks returns the hot links, the hottest first.
func (d *decision) hotLinks() []hotSide {
	var hot []hotSide
	for i := range d.Racks {
		rack := &d.Racks[i]
		for side, link := range rack.Links {
			if link != nil && link.Capacity > 0 && d.loads.isHot(link) {
				hot = append(hot, hotSide{rack, side})
				d.byName[link.Name] = link
			}
		}
	}
	fullness := func(h hotSide) float64 {
		link := h.rack.Links[h.side]
		return d.loads.projected(link) / link.Capacity
	}
	slices.SortFunc(hot, func(a, b hotSide) int {
		return cmp.Or(cmp.Compare(fullness(b), fullness(a)), cmp.Compare(a.rack.Links[a.side].Name, b.rack.Links[b.side].Name))
	})
	for _, h := range hot {
		link := h.rack.Links[h.side]
		d.round.Hot = append(d.round.Hot, HotLink{Rack: h.rack.Name, Name: link.Name, Utilization: link.Mean / link.Capacity})
	}
	return hot
}

// cool evicts pods until a link is no longer hot.
func (d *decision) cool(hot hotSide) {
	link := hot.rack.Links[hot.side]
	var pods []*Pod
	for i := range d.Pods {
		pod := &d.Pods[i]
		switch {
		case pod.Rack != hot.rack.Name || d.gone[pod.UID]:
		case pod.Rates[hot.side] > 0:
			pods = append(pods, pod)
		case pod.Unknown[hot.side] && pod.Stays == "":
			d.round.Stays = append(d.round.Stays, Stay{Pod: pod, Link: link.Name, Reason: UnknownDemand})
		}
	}
	slices.SortFunc(pods, func(a, b *Pod) int {
		return cmp.Or(cmp.Compare(b.Rates[hot.side], a.Rates[hot.side]), cmp.Compare(a.UID, b.UID))
	})
	for _, pod := range pods {
		if !d.loads.isHot(link) {
			return
		}
		if reason := d.evict(pod, hot.rack, link); reason != "" {
			d.round.Stays = append(d.round.Stays, Stay{Pod: pod, Link: link.Name, Reason: reason})
		}
	}
}

// limit returns the reason for which a pod may not leave, empty if it may. isDerived is true if the load of the hot link is a sum.
func (d *decision) limit(pod *Pod, isDerived bool) Reason {
	switch {
	case pod.Stays != "":
		return pod.Stays
	case isDerived && !d.Settings.DerivedLinks:
		return DerivedLink
	case d.rackCools[pod.Rack]:
		return RackCools
	case d.cools[pod.Workload]:
		return WorkloadCools
	case d.left == 0:
		return HourSpent
	case pod.Budget != "" && d.disruptions[pod.Budget] <= 0:
		return BudgetSpent
	}
	return ""
}

// spend counts an eviction against the limits and against the room of a node.
func (d *decision) spend(pod *Pod, node *Node) {
	d.room.take(node, pod)
	d.gone[pod.UID], d.cools[pod.Workload] = true, true
	d.left--
	if pod.Budget != "" {
		d.disruptions[pod.Budget]--
	}
}

// evict evicts a pod, or returns the reason for which it stays.
func (d *decision) evict(pod *Pod, rack *Rack, link *Link) Reason {
	if reason := d.limit(pod, link.Derived); reason != "" {
		return reason
	}
	target, node, reason := d.target(pod, rack)
	if reason != "" {
		return reason
	}
	before := d.loads.projected(link) / link.Capacity
	d.loads.leave(rack.Name, pod.Rates)
	d.loads.arrive(rack.Name, target.Name, pod.Rates, false)
	d.spend(pod, node)
	d.round.Evictions = append(d.round.Evictions, Eviction{
		Pod: pod, Link: link.Name, Before: before, After: d.loads.projected(link) / link.Capacity,
		Target: target.Name, Node: node.Name,
	})
	return ""
}

// target returns the coolest other rack with room that stays cool with the pod.
func (d *decision) target(pod *Pod, source *Rack) (*Rack, *Node, Reason) {
	var target *Rack
	var node *Node
	coolest, known := 0.0, false
	for i := range d.Racks {
		rack := &d.Racks[i]
		if rack.Name == source.Name {
			continue
		}
		known = known || d.loads.isKnown(rack)
		fullness, cool := d.loads.fullness(rack, source, pod.Rates)
		if !cool || (target != nil && fullness >= coolest) {
			continue
		}
		if fits := d.room.node(rack.Name, pod); fits != nil {
			target, node, coolest = rack, fits, fullness
		}
	}
	switch {
	case target != nil:
		return target, node, ""
	case !known:
		return nil, nil, Unseen
	}
	return nil, nil, NoTarget
}
