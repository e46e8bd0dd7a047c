package ledger

import (
	"math"
	"slices"
)

// The tests replay the vectors on a whole ledger. Its pending work, loads and utilizations are those of the package; the
// rest of it (sums of hosts, missing reports, Sinbad's pressure, reservations) is the controller's alone.

// mostMissing is the number of missing reports in a row after which another one changes nothing.
const mostMissing = 1 << 12

// hotShare is the utilization above which a link is hot (Hotspots, section 3.1).
const hotShare = 0.75

// source says where an estimate comes from.
type source int

const (
	notReported source = iota
	ownCounter
	sumBelow
	hostDown
)

// waiting is pressure and work that the report of the next window removes.
type waiting struct {
	entry               int
	committed, awaited  int64
	pressure            int64
	placed              *placed
	leavesWithTheReport bool
}

// placed is the part of one entry on one link.
type placed struct {
	work            *Work
	fading, lasting int64
	kind            int
}

// gauge is the state of one link.
type gauge struct {
	full, capacity     int64
	measured           float64
	measuredGuaranteed float64
	from, until        int64
	latest             int64
	source             source
	hotSince           *int64
	hotUntil           int64
	pressure           int64
	// works and lasting have a part for best effort and one for promised work.
	works   [2][]*Work
	lasting [2]int64
	waiting []waiting
	sums    sums
}

// sums are the parts of entries that stay until release.
type sums struct {
	flows, inelastic, reservedMean, reservedRate int64
}

func (s *sums) add(other sums, times int64) {
	s.flows += other.flows * times
	s.inelastic += other.inelastic * times
	s.reservedMean += other.reservedMean * times
	s.reservedRate += other.reservedRate * times
}

func (g *gauge) place(p *placed) {
	g.works[p.kind] = append(g.works[p.kind], p.work)
	g.lasting[p.kind] += p.lasting
}

func (g *gauge) remove(p *placed) {
	g.works[p.kind] = slices.DeleteFunc(g.works[p.kind], func(w *Work) bool { return w == p.work })
	g.lasting[p.kind] -= p.lasting
}

// takeIn applies a window to all work.
func (g *gauge) takeIn(window Window, weight float64) {
	for kind := range g.works {
		for _, work := range g.works[kind] {
			work.TakeIn(window, weight)
		}
		g.works[kind] = slices.DeleteFunc(g.works[kind], isShown)
	}
}

// isShown returns true if telemetry shows all of the work.
func isShown(w *Work) bool { return w.pending == 0 }

func (g *gauge) dropWaiting(leaves func(waiting) bool) {
	g.waiting = slices.DeleteFunc(g.waiting, func(item waiting) bool {
		if !leaves(item) {
			return false
		}
		g.pressure -= item.pressure
		if item.leavesWithTheReport {
			g.remove(item.placed)
		}
		return true
	})
}

// missing is a row of windows without a report, each of which counts as a report of a full link.
type missing struct {
	since, length int64
	count         int
	alpha         float64
}

func (m *missing) window(number int) Window {
	return Window{From: m.since + int64(number)*m.length, Until: m.since + int64(number+1)*m.length}
}

func (m *missing) afterFull(measured, full float64) float64 {
	return full - (full-measured)*math.Pow(1-m.alpha, float64(m.count))
}

func (m *missing) takeIn(work *Work) {
	for number := range m.count {
		work.TakeIn(m.window(number), m.alpha)
	}
}

// dueKind orders changes of one time.
type dueKind int

const (
	entryDue dueKind = iota
	windowDue
	sumDue
)

// due is a change that happens without a report.
type due struct {
	at   int64
	kind dueKind
	id   int
}

// stage is the progress of an entry towards telemetry.
type stage int

const (
	held stage = iota
	running
	gone
)

type stored struct {
	entry    entry
	id       int
	stage    stage
	started  int64
	deadline *int64
	parts    []*placed
	sums     []sums
	face     float64
}

// whole is a whole ledger.
type whole struct {
	cluster   cluster
	settings  settings
	estimator Estimator
	gauges    []*gauge
	entries   map[int]*stored
	agenda    map[due]bool
	next      int
	// touched has, for each sum, whether samples are not yet in it, and firstTouch the end of the first one's window.
	// dues has the time at which a sum changes without a report.
	touched    []bool
	firstTouch []int64
	dues       []*int64
}

func newWhole(cluster cluster, settings settings, estimator Estimator) *whole {
	w := &whole{
		cluster: cluster, settings: settings, estimator: estimator,
		entries: map[int]*stored{}, agenda: map[due]bool{},
		touched: make([]bool, len(cluster.Sums)), firstTouch: make([]int64, len(cluster.Sums)),
		dues: make([]*int64, len(cluster.Sums)),
	}
	for _, capacity := range cluster.Capacities {
		w.gauges = append(w.gauges, &gauge{full: capacity, capacity: capacity, measuredGuaranteed: math.NaN()})
	}
	for number := range cluster.Sums {
		w.derive(number, 0)
	}
	return w
}

func (w *whole) strict() bool    { return w.settings.Missing == "strict" }
func (w *whole) interval() int64 { return int64(w.estimator.Interval()) }

func (w *whole) advance(now int64) {
	for {
		first, any := due{}, false
		for d := range w.agenda {
			before := d.at < first.at || d.at == first.at && (d.kind < first.kind || d.kind == first.kind && d.id < first.id)
			if d.at <= now && (!any || before) {
				first, any = d, true
			}
		}
		if !any {
			return
		}
		delete(w.agenda, first)
		switch first.kind {
		case entryDue:
			w.expire(first.id, first.at)
		case windowDue:
			w.gauges[first.id].dropWaiting(func(item waiting) bool { return item.awaited+w.settings.Grace <= first.at })
		case sumDue:
			w.derive(first.id, first.at)
		}
	}
}

func (w *whole) missing(g *gauge, now int64) *missing {
	if w.strict() || g.source == sumBelow || g.source == hostDown {
		return nil
	}
	return w.missingOf(g.until, max(now-g.until-w.settings.Grace, 0)/w.interval(), w.interval())
}

func (w *whole) missingOf(since, count, length int64) *missing {
	if count <= 0 {
		return nil
	}
	return &missing{since: since, length: length, count: int(min(count, mostMissing)), alpha: w.settings.Alpha}
}

func (w *whole) knownFor() int64 { return int64(w.settings.UnknownAfter * float64(w.interval())) }

// measured returns M of a link; NaN if it is unknown.
func (w *whole) measured(link int, now int64) float64 {
	g := w.gauges[link]
	switch {
	case g.source == hostDown || g.source == sumBelow:
		return g.measured
	case w.strict() && (g.source != ownCounter || now > g.until+w.knownFor()):
		return math.NaN()
	}
	if missing := w.missing(g, now); missing != nil {
		return missing.afterFull(g.measured, float64(g.capacity))
	}
	return g.measured
}

// nextWindow returns the end of the window whose report removes pressure.
func (w *whole) nextWindow(link int, now int64) int64 {
	until := w.gauges[link].until
	return until + w.interval()*(max(now-until, 0)/w.interval()+1)
}
