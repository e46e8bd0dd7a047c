package ledger

import (
	"math"
	"slices"
)

const bitsPerByte = 8

// rateOf rounds a rate to whole bits per second within [MaxRate].
func rateOf(rate float64) int64 {
	rate = max(-float64(MaxRate), min(float64(MaxRate), rate))
	return int64(rate + math.Copysign(0.5, rate))
}

// rates are the rates of an entry in bytes per second: the whole, and the part that lasts until release.
func (w *whole) rates(e entry, share func(link int, flows int64) float64) (face, lasting float64) {
	switch {
	case e.Demand.Stream != nil:
		face = float64(e.Demand.Stream.Peak) / bitsPerByte
		if w.settings.HoldPeak {
			lasting = float64(max(e.Demand.Stream.Peak-e.Demand.Stream.Mean, 0)) / bitsPerByte
		}
	case e.Demand.Envelope != nil:
		face = float64(e.Demand.Envelope.Mean) / bitsPerByte
	default:
		face = math.Inf(1)
		if e.Demand.Elastic.Cap != nil {
			face = float64(*e.Demand.Elastic.Cap) / bitsPerByte
		}
		for _, hop := range e.Hops {
			face = min(face, share(hop.Resource, e.Demand.Elastic.Flows)/hop.Work)
		}
	}
	if e.relieves() {
		return -face, 0
	}
	return face, lasting
}

// sumsOf returns what an entry adds to a link until its release.
func sumsOf(e entry, face, work float64) sums {
	switch {
	case e.relieves():
		return sums{}
	case e.Demand.Elastic != nil:
		return sums{flows: e.Demand.Elastic.Flows}
	case e.Demand.Envelope != nil:
		reserved := rateOf(float64(e.Demand.Envelope.Rate) / bitsPerByte * work)
		return sums{inelastic: rateOf(face * work), reservedMean: rateOf(face * work), reservedRate: reserved}
	default:
		return sums{inelastic: rateOf(face * work)}
	}
}

// pressureOf returns the bits of an entry on a link over the time to the next report (Sinbad, pseudocode 2, line 23).
func pressureOf(e entry, work float64, dt int64) int64 {
	if e.Demand.Elastic == nil || e.relieves() {
		return 0
	}
	return rateOf(float64(e.Demand.Elastic.Bytes) * work / max(float64(dt)*1e-9, 1e-9))
}

func partOf(e entry, face, lasting, work float64) *placed {
	p := &placed{lasting: rateOf(lasting * work), kind: e.kind()}
	p.fading = rateOf(face*work) - p.lasting
	started := NewWork(p.fading)
	p.work = &started
	return p
}

func (w *whole) commit(add []entry, release []int, now int64) []int {
	w.advance(now)
	for _, id := range release {
		w.remove(id, now)
	}
	var ids []int
	for _, e := range add {
		ids = append(ids, w.insert(e, now))
	}
	return ids
}

func (w *whole) insert(e entry, now int64) int {
	w.next++
	s := &stored{entry: e, id: w.next}
	w.entries[s.id] = s
	face, lasting := w.rates(e, func(link int, flows int64) float64 { return w.numbers(link, now).share(flows) })
	s.face = face
	for _, hop := range e.Hops {
		g, part := w.gauges[hop.Resource], partOf(e, face, lasting, hop.Work)
		s.parts = append(s.parts, part)
		s.sums = append(s.sums, sumsOf(e, face, hop.Work))
		g.sums.add(s.sums[len(s.sums)-1], 1)
		g.place(part)
		w.await(s, hop, part, now)
	}
	switch {
	case e.fades() && e.Starts != nil:
		w.start(s, *e.Starts, now)
	case e.Fade.After != nil:
		w.setDeadline(s, now+e.Fade.After.TTL)
	}
	return s.id
}

// await records what the report of the next window removes.
func (w *whole) await(s *stored, hop hop, part *placed, now int64) {
	g := w.gauges[hop.Resource]
	awaited := w.nextWindow(hop.Resource, now)
	item := waiting{
		entry: s.id, committed: now, awaited: awaited, placed: part,
		pressure: pressureOf(s.entry, hop.Work, awaited-now), leavesWithTheReport: s.entry.Fade.Name == "at_next_window",
	}
	if item.pressure == 0 && !item.leavesWithTheReport {
		return
	}
	g.pressure += item.pressure
	g.waiting = append(g.waiting, item)
	if !w.strict() {
		w.agenda[due{at: awaited + w.settings.Grace, kind: windowDue, id: hop.Resource}] = true
	}
}

// start starts the work of an entry. Reports that count as missing by now are in the estimate already.
func (w *whole) start(s *stored, at, now int64) {
	for i, hop := range s.entry.Hops {
		s.parts[i].work.Start(w.countsFrom(hop.Resource, at, now))
	}
	s.stage, s.started = running, at
	w.setTransferEnd(s, at)
}

func (w *whole) countsFrom(link int, at, now int64) int64 {
	if missing := w.missing(w.gauges[link], now); missing != nil {
		return max(at, missing.window(missing.count-1).Until)
	}
	return at
}

func (w *whole) markStarted(id int, at, now int64) {
	w.advance(now)
	s := w.entries[id]
	if s == nil || s.stage != held || !s.entry.fades() || (s.deadline != nil && at >= *s.deadline) {
		return
	}
	w.start(s, at, at)
}

func (w *whole) setTransferEnd(s *stored, at int64) {
	w.clearDeadline(s)
	if s.entry.Demand.Elastic != nil && s.face > 0 {
		w.setDeadline(s, at+int64(math.Round(float64(s.entry.Demand.Elastic.Bytes)/s.face*1e9)))
	}
}

func (w *whole) setDeadline(s *stored, at int64) {
	w.clearDeadline(s)
	s.deadline = &at
	w.agenda[due{at: at, kind: entryDue, id: s.id}] = true
}

func (w *whole) clearDeadline(s *stored) {
	if s.deadline != nil {
		delete(w.agenda, due{at: *s.deadline, kind: entryDue, id: s.id})
		s.deadline = nil
	}
}

func (w *whole) expire(id int, at int64) {
	s := w.entries[id]
	if s == nil {
		return
	}
	if s.stage != running {
		w.remove(id, at)
		return
	}
	w.retire(s, at)
	s.stage, s.deadline = gone, nil
}

func (w *whole) remove(id int, now int64) {
	s := w.entries[id]
	if s == nil {
		return
	}
	w.clearDeadline(s)
	delete(w.entries, id)
	for i, hop := range s.entry.Hops {
		g := w.gauges[hop.Resource]
		g.sums.add(s.sums[i], -1)
		g.dropWaiting(func(item waiting) bool { return item.entry == id })
	}
	w.retire(s, now)
}

// retire ends the rate of an entry. The end of running work is a start of the opposite rate.
func (w *whole) retire(s *stored, at int64) {
	for i, hop := range s.entry.Hops {
		g, part := w.gauges[hop.Resource], s.parts[i]
		switch {
		case s.stage == held && s.entry.Fade.Name != "at_next_window":
			g.remove(part)
		case s.stage == running:
			end := NewWork(-part.fading)
			// Work that ends before its start never shows.
			end.Start(w.countsFrom(hop.Resource, max(at, s.started), at))
			g.works[part.kind] = append(g.works[part.kind], &end)
			g.lasting[part.kind] -= part.lasting
		}
	}
}

// numbers are all sums of a link at one time.
type numbers struct {
	capacity, measured, measuredGuaranteed float64
	// held and settling have a part for best effort and one for promised work.
	held, settling [2]float64
	sums           sums
}

func (w *whole) numbers(link int, now int64) numbers {
	g, missing := w.gauges[link], w.missing(w.gauges[link], now)
	n := numbers{
		capacity: float64(g.capacity), measured: w.measured(link, now), measuredGuaranteed: g.measuredGuaranteed,
		sums: g.sums,
	}
	for kind := range g.works {
		n.held[kind] = float64(g.lasting[kind])
		for _, work := range g.works[kind] {
			copied := *work
			if missing != nil {
				missing.takeIn(&copied)
			}
			n.held[kind] += float64(copied.Held())
			n.settling[kind] += copied.Settling()
		}
	}
	return n
}

// load returns L; NaN if M is unknown.
func (n numbers) load() float64 {
	if math.IsNaN(n.measuredGuaranteed) {
		return Load(n.measured, n.held[0]+n.held[1], n.settling[0]+n.settling[1])
	}
	guaranteed := min(n.measuredGuaranteed, n.measured)
	promised := max(Load(guaranteed, n.held[1], n.settling[1]), float64(n.sums.reservedMean))
	return Load(n.measured-guaranteed, n.held[0], n.settling[0]) + promised
}

func (n numbers) residual() float64 {
	if load := n.load(); !math.IsNaN(load) {
		return max(n.capacity-load, 0)
	}
	return 0
}

func (n numbers) share(flows int64) float64 {
	fresh := float64(max(flows, 1))
	elastic := max(n.capacity-float64(n.sums.inelastic), 0)
	return max(n.residual(), fresh/(float64(max(n.sums.flows, 0))+fresh)*elastic)
}

// whatIf is the ledger at one time with entries that come and owners that are away.
type whatIf struct {
	ledger   *whole
	now      int64
	changed  map[int]*numbers
	pressure map[int]int64
}

func (w *whole) view(now int64) *whatIf {
	return &whatIf{ledger: w, now: now, changed: map[int]*numbers{}, pressure: map[int]int64{}}
}

func (v *whatIf) numbers(link int) *numbers {
	if v.changed[link] == nil {
		n := v.ledger.numbers(link, v.now)
		v.changed[link] = &n
	}
	return v.changed[link]
}

func (v *whatIf) add(e entry) {
	face, lasting := v.ledger.rates(e, func(link int, flows int64) float64 { return v.numbers(link).share(flows) })
	for _, hop := range e.Hops {
		n, part := v.numbers(hop.Resource), partOf(e, face, lasting, hop.Work)
		n.sums.add(sumsOf(e, face, hop.Work), 1)
		if e.fades() && e.Starts != nil {
			part.work.Start(*e.Starts)
		}
		n.held[part.kind] += float64(part.work.Held() + part.lasting)
		n.settling[part.kind] += part.work.Settling()
		v.pressure[hop.Resource] += pressureOf(e, hop.Work, v.ledger.nextWindow(hop.Resource, v.now)-v.now)
	}
}

// without takes out all load of an owner, also the part that telemetry shows.
func (v *whatIf) without(o owner) {
	for _, s := range v.ledger.entries {
		if s.entry.Owner != o {
			continue
		}
		for i, hop := range s.entry.Hops {
			n, part := v.numbers(hop.Resource), s.parts[i]
			n.sums.add(s.sums[i], -1)
			switch {
			case s.stage == running:
				n.settling[part.kind] -= float64(part.fading)
				n.held[part.kind] -= float64(part.lasting)
			case s.stage == held && slices.Contains(v.ledger.gauges[hop.Resource].works[part.kind], part.work):
				n.held[part.kind] -= float64(part.work.Held() + part.lasting)
				n.settling[part.kind] -= part.work.Settling()
			}
			for _, item := range v.ledger.gauges[hop.Resource].waiting {
				if item.entry == s.id {
					v.pressure[hop.Resource] -= item.pressure
				}
			}
		}
	}
}
