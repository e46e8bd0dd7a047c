// Package ledger has the rules by which placed work counts on a link until telemetry shows it.
//
// The controller's ledger is written in Rust. A scheduler decides with the controller's snapshot and its own placements
// since then, so it needs the same numbers. This package has the rules that decisions use: how a placement fades as
// reports come in, and how measured and pending rates make a load. The tests build a whole ledger on these rules and pass
// the conformance vectors (docs/reference/ledger-vectors.md).
//
// All functions are pure. Rates are bits per second. Times are nanoseconds on one clock, that of the controller.
package ledger

import (
	"fmt"
	"math"
	"time"
)

// MaxRate is the largest counted rate in bit/s, 140 Tb/s. No link carries more, and sums of such rates stay within 64 bits.
const MaxRate int64 = 1 << 47

// DefaultInterval and DefaultAlpha describe the controller's estimator by default (Sinbad, section 6.2).
const (
	DefaultInterval = time.Second
	DefaultAlpha    = 0.2
)

// negligible is the pending rate in bit/s below which work that telemetry covers counts as shown.
const negligible = 1e-6

// ShownShare is the share of the rate of a placement below which telemetry shows all of it.
const ShownShare = 0.001

// Estimator describes how the controller turns the reports of a link into an estimate of its load.
type Estimator struct {
	interval time.Duration
	alpha    float64
}

// NewEstimator returns an estimator. The interval is the time between two reports of a link, and alpha the weight of a
// report that covers one interval. It returns an error if the interval is not positive, or alpha is not a share above 0.
func NewEstimator(interval time.Duration, alpha float64) (Estimator, error) {
	if interval <= 0 {
		return Estimator{}, fmt.Errorf("interval: %v: expected a positive time", interval)
	}
	if !(alpha > 0 && alpha <= 1) {
		return Estimator{}, fmt.Errorf("alpha: %v: expected a share above 0, at most 1", alpha)
	}
	return Estimator{interval: interval, alpha: alpha}, nil
}

// Interval returns the time between two reports of a link.
func (e Estimator) Interval() time.Duration { return e.interval }

// Weight returns the weight of a report whose window ends dt nanoseconds after the last one: 1 - (1 - alpha)^(dt /
// interval). So gaps do not slow the estimate.
func (e Estimator) Weight(dt int64) float64 {
	if dt == int64(e.interval) {
		return e.alpha
	}
	return 1 - math.Pow(1-e.alpha, float64(max(dt, 0))/float64(e.interval))
}

// Window is the time that a report covers.
type Window struct {
	From, Until int64
}

// Work is the part of one piece of work on one link that telemetry does not show.
//
// Work of rate x starts on a link whose other load is v. A report of weight a covers a window, and a share phi of the
// window lies after the start. The report moves the estimate M to (1 - a) M + a (v + phi x), and the pending rate p to
// (1 - a) p + a (1 - phi) x. So M + p = v + x at every step. Work that leaves has a negative rate.
type Work struct {
	rate    int64
	pending float64
	start   int64
	started bool
	// covered is true once a window has covered the start from its beginning. A later window that reaches farther back
	// does not change this.
	covered bool
}

// NewWork returns work of a rate in bit/s, negative for work that leaves. It counts in full until it starts. Rates beyond
// [MaxRate] count as MaxRate.
func NewWork(rate int64) Work {
	rate = max(-MaxRate, min(MaxRate, rate))
	return Work{rate: rate, pending: float64(rate)}
}

// Start marks the work as started at a time. Windows that are taken in later fade it. A second start changes nothing.
func (w *Work) Start(at int64) {
	if !w.started {
		w.start, w.started = at, true
	}
}

// TakeIn applies a report of a weight over a window that ends after its start.
func (w *Work) TakeIn(window Window, weight float64) {
	if !w.started || window.Until <= window.From {
		return
	}
	hidden := 0.0
	if !w.covered && w.start > window.From {
		// The part of the window before the start could not show the work.
		before := min(w.start, window.Until) - window.From
		hidden = float64(before) / float64(window.Until-window.From)
	}
	w.pending = (1-weight)*w.pending + weight*hidden*float64(w.rate)
	w.covered = w.covered || w.start <= window.From
	if w.covered && math.Abs(w.pending) < negligible {
		w.pending = 0
	}
}

// Held returns the rate that no report can contain yet: that of work that will come.
func (w *Work) Held() int64 {
	if w.started || w.rate < 0 {
		return 0
	}
	return w.rate
}

// Settling returns the correction of the measured load for work that telemetry takes in, and for work that leaves.
func (w *Work) Settling() float64 {
	if w.started || w.rate < 0 {
		return w.pending
	}
	return 0
}

// Load returns the load of a link in bit/s, now or soon. No more can leave than is measured, and work that will come is not
// set off against work that leaves. The load is NaN if the measured load is NaN, which stands for unknown.
func Load(measured, held, settling float64) float64 {
	return max(measured+settling, 0) + held
}

// Utilization returns the share of a capacity that a load takes with an extra rate. It is NaN if the load is unknown, and
// infinite for a link without capacity.
func Utilization(load, extra, capacity float64) float64 {
	switch {
	case math.IsNaN(load):
		return math.NaN()
	case capacity > 0:
		return max(load+extra, 0) / capacity
	default:
		return math.Inf(1)
	}
}
