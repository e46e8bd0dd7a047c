package evictor

import (
	"maps"
	"math"
	"time"

	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/snapshot"
)

// Windows has the mean load of links over windows of equal length, from snapshots.
//
// A snapshot has the mean load of each link over its last report alone. Earlier versions of the service send only their
// estimate, which follows reports slowly: it stays above a threshold long after the load has fallen. But a report of weight a
// changes the estimate from M to (1 - a) M + a w, so two estimates give w, the mean load over the report. If several reports
// lie between two snapshots, w is their mean, in which later ones weigh more. One estimate alone says nothing about a report.
//
// A report belongs to the window that contains its end. A window is known if reports cover at least half of it.
type Windows struct {
	estimator ledger.Estimator
	settings  Settings
	links     map[string]*linkWindows
	// names and watched are the rows of racks' and pods' links in the last snapshot.
	names   *snapshot.Names
	watched []int32
	// seen is the time of the last snapshot, and inverts is true if it had estimates only.
	seen    int64
	inverts bool
	// current is the number of the first window that is open, since 1970; 0 before the first snapshot.
	current int64
}

// linkWindows are the windows of a link.
type linkWindows struct {
	// measured and until are the last known estimate, and the end of its last report.
	measured, until int64
	open            map[int64]sum
	// mean is that of the last closed window in bit/s, NaN if it is unknown. hot counts hot windows in a row.
	mean float64
	hot  int
}

// sum is a sum of loads, weighted by the time that reports cover.
type sum struct {
	load, covered float64
}

// NewWindows returns no windows. The estimator must be that of the service.
func NewWindows(estimator ledger.Estimator, settings Settings) *Windows {
	return &Windows{estimator: estimator, settings: settings, links: map[string]*linkWindows{}}
}

// TakeIn takes in the next snapshot. It returns true if windows have closed.
func (w *Windows) TakeIn(next *snapshot.Snapshot) bool {
	w.watch(next.Names())
	w.inverts = !next.HasWindows()
	if w.inverts && !next.IsDifference() {
		// It may be of another run of the service, whose first report replaces its estimate instead of changing it.
		for _, link := range w.links {
			link.until = snapshot.Unknown
		}
	}
	for _, row := range w.watched {
		if next.Until()[row] == snapshot.Unknown {
			continue
		}
		link := w.link(next.Names().LinkName(row))
		if w.inverts {
			w.invert(link, next.Measured()[row], next.Until()[row])
		} else {
			w.show(link, next.Latest()[row], next.From()[row], next.Until()[row])
		}
	}
	closed := w.close(next)
	w.seen = next.Time()
	return closed
}

// Inverts returns true if the last snapshot had estimates only, from which the loads of windows are recovered.
func (w *Windows) Inverts() bool { return w.inverts }

// watch finds the links of racks and pods.
func (w *Windows) watch(names *snapshot.Names) {
	if names == w.names {
		return
	}
	w.names, w.watched = names, nil
	seen := map[int32]bool{snapshot.None: true}
	present := map[string]bool{}
	for _, host := range names.HostLinks() {
		for _, row := range [...]int32{host.Uplink, host.Downlink, host.PodUplink, host.PodDownlink} {
			if !seen[row] {
				seen[row] = true
				w.watched = append(w.watched, row)
				present[names.LinkName(row)] = true
			}
		}
	}
	for name := range w.links {
		if !present[name] {
			delete(w.links, name)
		}
	}
}

func (w *Windows) link(name string) *linkWindows {
	link := w.links[name]
	if link == nil {
		link = &linkWindows{open: map[int64]sum{}, mean: math.NaN(), until: snapshot.Unknown}
		w.links[name] = link
	}
	return link
}

// show takes in the load over the last report of a link. Reports that ended after the last snapshot and before the start of
// this one were in no snapshot; they count as this one.
func (w *Windows) show(link *linkWindows, load, from, until int64) {
	if load == snapshot.Unknown || from == snapshot.Unknown || until <= link.until {
		return
	}
	if link.until != snapshot.Unknown {
		from = max(link.until, min(from, w.seen))
	}
	link.until = until
	w.add(link, float64(load), from, until)
}

// invert takes in the estimate of a link after its last report.
func (w *Windows) invert(link *linkWindows, measured, until int64) {
	if measured == snapshot.Unknown || until <= link.until {
		return
	}
	before, from := link.measured, link.until
	link.measured, link.until = measured, until
	if from == snapshot.Unknown {
		return
	}
	weight := w.estimator.Weight(until - from)
	w.add(link, max((float64(measured)-(1-weight)*float64(before))/weight, 0), from, until)
}

// add adds the mean load between two times to the window of the second one.
func (w *Windows) add(link *linkWindows, load float64, from, until int64) {
	// A report covers no more than a window: a longer one says little about its parts.
	covered := float64(min(until-from, int64(w.settings.Window)))
	// The report ends at the last moment before its end.
	if number := (until - 1) / int64(w.settings.Window); number >= w.current && covered > 0 {
		open := link.open[number]
		link.open[number] = sum{load: open.load + load*covered, covered: open.covered + covered}
	}
}

// close closes the windows whose reports have had two intervals to arrive.
func (w *Windows) close(next *snapshot.Snapshot) bool {
	first := (next.Time() - 2*int64(w.estimator.Interval())) / int64(w.settings.Window)
	if w.current != 0 && first < w.current-1 {
		// The clock of the service was set back.
		w.current = 0
		clear(w.links)
	}
	if w.current == 0 {
		w.current = first
		for _, link := range w.links {
			maps.DeleteFunc(link.open, func(number int64, _ sum) bool { return number < first })
		}
		return false
	}
	if first <= w.current {
		return false
	}
	for name, link := range w.links {
		row := w.names.Link(name)
		// Without reports for very long, the last windows are unknown as well.
		for number := max(w.current, first-mostWindows); number < first; number++ {
			link.close(number, w.settings, float64(next.Capacities()[row]))
		}
		maps.DeleteFunc(link.open, func(number int64, _ sum) bool { return number < first })
	}
	w.current = first
	return true
}

func (l *linkWindows) close(number int64, settings Settings, capacity float64) {
	window := l.open[number]
	if window.covered < float64(settings.Window)/2 {
		l.mean, l.hot = math.NaN(), 0
		return
	}
	l.mean = window.load / window.covered
	if l.mean > settings.Threshold*capacity {
		l.hot++
	} else {
		l.hot = 0
	}
}

// Mean returns the mean load of a link over the last closed window in bit/s, NaN if it is unknown, and the number of hot
// windows in a row up to this one.
func (w *Windows) Mean(link string) (float64, int) {
	if known := w.links[link]; known != nil {
		return known.mean, known.hot
	}
	return math.NaN(), 0
}

// Start returns the start of the last closed window by the service's clock.
func (w *Windows) Start() time.Time {
	return time.Unix(0, (w.current-1)*int64(w.settings.Window)).UTC()
}
