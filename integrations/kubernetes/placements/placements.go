package placements

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/snapshot"
)

// Most is the largest number of placements that count at once. Beyond it the oldest leave early. Twice as many of the largest
// rate still fit into 64 bits.
const Most = 16_384

// DefaultLasts is the time for which a placement counts that neither a snapshot nor telemetry shows.
const DefaultLasts = 5 * time.Minute

// key identifies a placement: a pod, and whether it comes or leaves.
type key struct {
	pod    string
	leaves bool
}

// Placements are the own placements that the last snapshot does not include. Methods may be called by several goroutines.
// Readers of a view never wait for them.
type Placements struct {
	client string
	lasts  int64
	view   atomic.Pointer[View]
	early  atomic.Uint64

	// mutex guards the fields below, and changes of the view.
	mutex     sync.Mutex
	estimator ledger.Estimator
	list      []*placement
	byKey     map[key]*placement
}

// Network is a followed network: the view of the last snapshot, and whether it counts.
type Network struct {
	Feed *snapshot.Feed
	*Placements
}

// IsFresh returns true if there is a view, and its snapshot counts at a local time.
func (n *Network) IsFresh(now time.Time) bool {
	view := n.View()
	return view != nil && n.Feed.IsFresh(view.Snapshot(), now)
}

// New returns no placements. client is the name under which the scheduler reports placements to the controller, and
// estimator describes that of the controller. A placement counts for at most lasts, 10 s to 1 h.
func New(client string, estimator ledger.Estimator, lasts time.Duration) (*Placements, error) {
	if lasts < 10*time.Second || lasts > time.Hour {
		return nil, fmt.Errorf("lasts: %v: expected 10s to 1h", lasts)
	}
	return &Placements{client: client, estimator: estimator, lasts: int64(lasts), byKey: map[key]*placement{}}, nil
}

// View returns the last snapshot with the placements beside it, nil before the first.
func (p *Placements) View() *View { return p.view.Load() }

// Estimator returns the description of the controller's estimator.
func (p *Placements) Estimator() ledger.Estimator {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.estimator
}

// SetEstimator replaces the description of the controller's estimator. Later windows count with it.
func (p *Placements) SetEstimator(estimator ledger.Estimator) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.estimator = estimator
}

// Len returns the number of placements that count.
func (p *Placements) Len() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.byKey)
}

// EarlyCount returns the number of placements that left early because too many counted.
func (p *Placements) EarlyCount() uint64 { return p.early.Load() }

// Add counts a pod on its node from now on, in full until it starts. A pod counts once: a second call moves it.
func (p *Placements) Add(pod, node string, rates Rates, now time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.add(newPlacement(key{pod: pod}, node, rates, p.timeAt(now)))
}

// Leave counts a pod that leaves its node from now on: its rates go as telemetry follows. A pod that has not started
// leaves at once.
func (p *Placements) Leave(pod, node string, rates Rates, now time.Time) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if came := p.byKey[key{pod: pod}]; came != nil && !came.started {
		p.remove(came)
		return
	}
	left := newPlacement(key{pod: pod, leaves: true}, node, rates, p.timeAt(now))
	left.start(left.at)
	p.add(left)
}

// Start marks a pod as started at a time: from then on telemetry shows it.
func (p *Placements) Start(pod string, at time.Time) {
	p.change(pod, func(placed *placement) { placed.start(p.timeAt(at)) })
}

// Remove makes a pod count no longer, neither as one that came nor as one that leaves.
func (p *Placements) Remove(pod string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, leaves := range [...]bool{false, true} {
		if placed := p.byKey[key{pod: pod, leaves: leaves}]; placed != nil {
			p.remove(placed)
		}
	}
}

// Reported says that the report of a pod has a sequence. The pod leaves with the first snapshot that counts this sequence,
// which may come before the answer to the report. So the caller says it before it sends the report.
func (p *Placements) Reported(pod string, sequence int64) {
	p.change(pod, func(placed *placement) { placed.sequence = sequence })
}

// NotReported says that the controller has no report of a pod, for example because it rejected it. No snapshot will count
// the pod then, whatever later sequences it counts.
func (p *Placements) NotReported(pod string) {
	p.change(pod, func(placed *placement) { placed.sequence = notReported })
}

func (p *Placements) change(pod string, apply func(*placement)) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if placed := p.byKey[key{pod: pod}]; placed != nil {
		apply(placed)
		if view := p.view.Load(); view != nil {
			placed.count(view)
		}
	}
}

// timeAt returns the time by the controller's clock.
func (p *Placements) timeAt(now time.Time) int64 {
	if view := p.view.Load(); view != nil {
		return view.snapshot.TimeAt(now)
	}
	return now.UnixNano()
}

func (p *Placements) add(placed *placement) {
	if before := p.byKey[placed.key]; before != nil {
		p.remove(before)
	}
	if view := p.view.Load(); view != nil {
		placed.locate(view.snapshot.Names())
		placed.count(view)
	}
	p.byKey[placed.key] = placed
	p.list = append(p.list, placed)
	if len(p.list) >= 2*Most {
		p.compact()
	}
}

func (p *Placements) remove(placed *placement) {
	placed.removed = true
	delete(p.byKey, placed.key)
	if view := p.view.Load(); view != nil {
		placed.uncount(view)
	}
}

// compact drops removed placements from the list, and the oldest of too many.
func (p *Placements) compact() {
	excess := len(p.byKey) - Most
	rest := p.list[:0]
	for _, placed := range p.list {
		if !placed.removed && excess > 0 {
			excess--
			p.early.Add(1)
			p.remove(placed)
		}
		if !placed.removed {
			rest = append(rest, placed)
		}
	}
	clear(p.list[len(rest):])
	p.list = rest
}

// OnSnapshot replaces the view by one of the next snapshot. Placements that it includes, or that telemetry shows, leave.
// The follower calls it.
func (p *Placements) OnSnapshot(next *snapshot.Snapshot) {
	fresh := newView(next)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.compact()
	before := p.view.Load()
	counted := next.Counted(p.client)
	for _, placed := range p.list {
		if before != nil {
			p.fade(placed, before.snapshot, next)
		}
		placed.forget()
		placed.locate(next.Names())
		age := next.Time() - placed.at
		// A time far ahead is by a clock that was set back since.
		late := age > p.lasts || age < -p.lasts
		isCounted := placed.sequence != notReported && placed.sequence <= counted
		if late || isCounted || placed.isShown() {
			placed.removed = true
			delete(p.byKey, placed.key)
			continue
		}
		placed.count(fresh)
	}
	p.view.Store(fresh)
}

// fade applies the windows between two snapshots. If the cluster has changed, links are the same by their names.
func (p *Placements) fade(placed *placement, before, next *snapshot.Snapshot) {
	until := next.Until()
	same := before.Names() == next.Names()
	placed.takeIn(p.estimator, before.Until(), func(link int32) int64 {
		if !same {
			if link = next.Names().Link(before.Names().LinkName(link)); link == snapshot.None {
				return snapshot.Unknown
			}
		}
		return until[link]
	})
}
