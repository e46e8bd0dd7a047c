package ledger

import (
	"math"
	"slices"
)

// report takes in samples; invalid and old ones change nothing.
func (w *whole) report(samples []sample, now int64) {
	w.advance(now)
	ordered := slices.Clone(samples)
	slices.SortStableFunc(ordered, func(a, b sample) int { return int(a.Until - b.Until) })
	for _, s := range ordered {
		if w.isNews(s, now) {
			w.touch(s, now)
			w.update(s)
		}
	}
	for number, touched := range w.touched {
		if touched {
			w.derive(number, now)
		}
	}
}

func (w *whole) isNews(s sample, now int64) bool {
	g := w.gauges[s.Resource]
	ahead := s.Until > now+w.interval()
	if s.From < 0 || s.From >= s.Until || ahead || s.Load < 0 || (s.Guaranteed != nil && *s.Guaranteed < 0) {
		return false
	}
	return g.source != hostDown && (g.source == sumBelow || s.Until > g.until)
}

// touch completes a sum's window before a sample begins its next one.
func (w *whole) touch(s sample, now int64) {
	for number, sum := range w.cluster.Sums {
		if !slices.Contains(sum.Of, s.Resource) {
			continue
		}
		if w.touched[number] && w.firstTouch[number] <= s.From {
			w.derive(number, now)
		}
		if !w.touched[number] {
			w.touched[number], w.firstTouch[number] = true, s.Until
		}
	}
}

func (w *whole) update(s sample) {
	g := w.gauges[s.Resource]
	first := g.source != ownCounter
	if g.source == sumBelow || (first && w.strict()) {
		g.until = s.From
	} else if !w.strict() {
		w.countGapAsFull(g, s.From)
	}
	weight := w.estimator.Weight(s.Until - g.until)
	if first && w.settings.Initial == "first" {
		weight = 1
	}
	g.measured = (1-weight)*g.measured + weight*float64(s.Load)
	g.until, g.source = s.Until, ownCounter
	w.updateGuaranteed(g, s, weight)
	w.windowPassed(g, Window{From: s.From, Until: s.Until}, weight, s.Load)
}

func (w *whole) countGapAsFull(g *gauge, from int64) {
	gap := max(from-g.until, 0)
	count := int64(math.Round(float64(gap) / float64(w.interval())))
	if count < 1 {
		return
	}
	missing := w.missingOf(g.until, count, 0)
	missing.length = gap / int64(missing.count)
	g.measured = missing.afterFull(g.measured, float64(g.capacity))
	for kind := range g.works {
		for _, work := range g.works[kind] {
			missing.takeIn(work)
		}
	}
	g.until = from
}

func (w *whole) updateGuaranteed(g *gauge, s sample, weight float64) {
	if s.Guaranteed == nil {
		g.measuredGuaranteed = math.NaN()
		return
	}
	load, before := float64(min(*s.Guaranteed, s.Load)), g.measuredGuaranteed
	switch {
	case !math.IsNaN(before):
	case w.settings.Initial == "first":
		before = load
	default:
		before = 0
	}
	g.measuredGuaranteed = (1-weight)*before + weight*load
}

func (w *whole) windowPassed(g *gauge, window Window, weight float64, latest int64) {
	g.takeIn(window, weight)
	g.dropWaiting(func(item waiting) bool { return item.committed < window.Until })
	hot := float64(latest) > hotShare*float64(g.capacity)
	switch joins := window.From <= g.hotUntil+w.interval()/2; {
	case !hot:
		g.hotSince = nil
	case !joins || g.hotSince == nil:
		g.hotSince = &window.From
	}
	g.hotUntil, g.from, g.latest = window.Until, window.From, latest
}

// below is the sum of the links below a link.
type below struct {
	load        float64
	latest      int64
	from, until int64
	seen        bool
	// next is the time of the next change without a report.
	next int64
}

func (w *whole) derive(number int, now int64) {
	w.touched[number] = false
	sum := w.cluster.Sums[number]
	g := w.gauges[sum.Resource]
	if at := w.dues[number]; at != nil {
		delete(w.agenda, due{at: *at, kind: sumDue, id: number})
		w.dues[number] = nil
	}
	if g.source == ownCounter {
		return
	}
	parts := w.sumBelow(sum.Of, now)
	w.apply(g, parts)
	if parts.next < math.MaxInt64 {
		w.dues[number] = &parts.next
		w.agenda[due{at: parts.next, kind: sumDue, id: number}] = true
	}
}

func (w *whole) apply(g *gauge, parts below) {
	if !parts.seen {
		g.source, g.measured = notReported, 0
		return
	}
	g.source = sumBelow
	g.measured = min(parts.load, float64(g.capacity))
	if parts.until <= g.until {
		return
	}
	before := g.until
	g.until = parts.until
	from := before
	if parts.from < parts.until {
		from = parts.from
	}
	weight := w.estimator.Weight(parts.until - before)
	if before == 0 && w.strict() {
		weight = 1
		if w.settings.Initial != "first" {
			weight = w.estimator.Weight(parts.until - from)
		}
	}
	w.windowPassed(g, Window{From: from, Until: parts.until}, weight, parts.latest)
}

func (w *whole) sumBelow(links []int, now int64) below {
	sum := below{until: -1, next: math.MaxInt64}
	for _, link := range links {
		g := w.gauges[link]
		if g.source == hostDown {
			sum.seen = true
			continue
		}
		most := float64(max(g.capacity, g.full))
		sum.next = min(sum.next, w.changesAt(g, now))
		measured := w.measured(link, now)
		if math.IsNaN(measured) {
			// A silent host may be busy.
			sum.load += most
			continue
		}
		window := Window{From: g.from, Until: g.until}
		if missing := w.missing(g, now); missing != nil {
			measured = missing.afterFull(g.measured, most)
			window = missing.window(missing.count - 1)
		}
		sum.load += measured
		sum.latest += g.latest
		if sum.until < 0 {
			sum.from, sum.until = window.From, window.Until
		}
		sum.from, sum.until = max(sum.from, window.From), min(sum.until, window.Until)
		sum.seen = sum.seen || g.source == ownCounter || !w.strict()
	}
	return sum
}

// changesAt returns the time at which an estimate changes next without a report.
func (w *whole) changesAt(g *gauge, now int64) int64 {
	switch {
	case g.source == sumBelow || (g.source == notReported && w.strict()):
		return math.MaxInt64
	case w.strict():
		if knownUntil := g.until + w.knownFor(); now <= knownUntil {
			return knownUntil + 1
		}
		return math.MaxInt64
	}
	count := int64(0)
	if missing := w.missing(g, now); missing != nil {
		count = int64(missing.count)
	}
	if count >= mostMissing {
		return math.MaxInt64
	}
	return g.until + w.settings.Grace + w.interval()*(count+1)
}

func (w *whole) believe(link int, capacity, now int64) {
	w.advance(now)
	w.gauges[link].capacity = max(capacity, 0)
	w.deriveAround(link, now)
}

func (w *whole) setHealth(host int, up bool, now int64) {
	w.advance(now)
	for _, link := range w.cluster.Hosts[host] {
		g := w.gauges[link]
		switch {
		case up && g.source == hostDown:
			g.source, g.until = notReported, now
		case !up:
			g.source, g.measured, g.measuredGuaranteed, g.hotSince = hostDown, 0, math.NaN(), nil
			for kind := range g.works {
				// The estimate starts again at zero and has none of the work that runs.
				g.works[kind] = slices.DeleteFunc(g.works[kind], func(work *Work) bool {
					return work.started && work.start <= now
				})
			}
		}
	}
	for _, link := range w.cluster.Hosts[host] {
		w.deriveAround(link, now)
	}
}

func (w *whole) deriveAround(link int, now int64) {
	for number, sum := range w.cluster.Sums {
		if sum.Resource == link || slices.Contains(sum.Of, link) {
			w.derive(number, now)
		}
	}
}
