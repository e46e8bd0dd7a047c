package placements

import (
	"math"

	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/snapshot"
)

// Rates are the rates of a placement in bit/s: out of its node, and into it.
type Rates struct {
	Egress, Ingress int64
}

// notReported is the sequence of a placement that no report has.
const notReported = -1

// windowsAtOnce is the largest number of windows between two snapshots that count one by one.
const windowsAtOnce = 64

// placement is a pod that came to a node, or that leaves it.
type placement struct {
	key   key
	node  string
	parts [6]part
	// at is the time of the placement, or that of its start, by the controller's clock.
	at       int64
	started  bool
	sequence int64
	// removed is true for a placement that no longer counts and waits for its removal from the list.
	removed bool
}

// part is a placement on one of its links.
type part struct {
	link int32
	work ledger.Work
	rate int64
	// held and settling are the rates that the view has of it.
	held, settling int64
}

func newPlacement(key key, node string, rates Rates, at int64) *placement {
	p := &placement{key: key, node: node, at: at, sequence: notReported}
	for i := range p.parts {
		rate := rates.Egress
		if i >= 3 {
			rate = rates.Ingress
		}
		rate = min(max(rate, 0), ledger.MaxRate)
		if key.leaves {
			rate = -rate
		}
		p.parts[i] = part{link: snapshot.None, rate: rate, work: ledger.NewWork(rate)}
	}
	return p
}

// locate finds the links of the node. A node that the controller does not know has none.
func (p *placement) locate(names *snapshot.Names) {
	links := [6]int32{}
	for i := range links {
		links[i] = snapshot.None
	}
	if host := names.Host(p.node); host != snapshot.None {
		of := &names.HostLinks()[host]
		links = [6]int32{of.Egress, of.Uplink, of.PodUplink, of.Ingress, of.Downlink, of.PodDownlink}
	}
	for i := range p.parts {
		p.parts[i].link = links[i]
	}
}

// start starts the work of the placement.
func (p *placement) start(at int64) {
	if p.started {
		return
	}
	p.started, p.at = true, at
	for i := range p.parts {
		p.parts[i].work.Start(at)
	}
}

// count brings the view up to date with the placement.
func (p *placement) count(view *View) {
	for i := range p.parts {
		part := &p.parts[i]
		part.set(view, part.work.Held(), int64(math.Round(part.work.Settling())))
	}
}

// uncount takes the placement out of the view.
func (p *placement) uncount(view *View) {
	for i := range p.parts {
		p.parts[i].set(view, 0, 0)
	}
}

// forget makes the placement count nowhere, for a view that has not counted it.
func (p *placement) forget() {
	for i := range p.parts {
		p.parts[i].held, p.parts[i].settling = 0, 0
	}
}

func (part *part) set(view *View, held, settling int64) {
	if part.link == snapshot.None {
		return
	}
	// A reader between the two sees the rate twice rather than not at all.
	local := &view.local[part.link]
	if change := settling - part.settling; change != 0 {
		local.settling.Add(change)
	}
	if change := held - part.held; change != 0 {
		local.held.Add(change)
	}
	part.held, part.settling = held, settling
}

// takeIn fades the placement by the windows between two snapshots. The links are those of the earlier one; after holds the
// ends of the same links' windows in the later one.
func (p *placement) takeIn(estimator ledger.Estimator, before []int64, after func(link int32) int64) {
	for i := range p.parts {
		part := &p.parts[i]
		if part.link == snapshot.None || part.rate == 0 {
			continue
		}
		from, until := before[part.link], after(part.link)
		if until == snapshot.Unknown || (from != snapshot.Unknown && until <= from) {
			continue
		}
		if from == snapshot.Unknown {
			from = until - int64(estimator.Interval())
		}
		// Several windows may have passed. They are as long as the interval, as far as the times tell.
		windows := (until - from + int64(estimator.Interval())/2) / int64(estimator.Interval())
		windows = max(1, min(windows, windowsAtOnce))
		length := (until - from) / windows
		weight := estimator.Weight(length)
		for number := range windows {
			end := from + length*(number+1)
			part.work.TakeIn(ledger.Window{From: end - length, Until: end}, weight)
		}
	}
}

// isShown returns true if telemetry shows the placement on all its links.
func (p *placement) isShown() bool {
	for i := range p.parts {
		part := &p.parts[i]
		if part.link == snapshot.None {
			continue
		}
		if part.work.Held() != 0 || math.Abs(part.work.Settling()) > ledger.ShownShare*math.Abs(float64(part.rate)) {
			return false
		}
	}
	return p.started
}
