package peaks

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"leeward.dev/kubernetes/demand"
)

const (
	// DefaultInterval is the time between two requests of all peaks. A pod counts once in five minutes.
	DefaultInterval = time.Minute
	// maxAge is the age from which the last list no longer counts.
	maxAge = time.Hour
	// jitter is the share of the interval by which the requests of several followers differ.
	jitter = 0.2
)

// Options are those of [New].
type Options struct {
	Call Call
	// Pods are those that this follower names; nil if it names none.
	Pods Pods
	// First is called with the first list, before it counts; nil for nothing.
	First func(*Table)
	// Interval is the time between two requests; [DefaultInterval] by default.
	Interval time.Duration
	// Now returns the time, and Random numbers from 0 to 1.
	Now    func() time.Time
	Random func() float64
	Log    *slog.Logger
}

// Counts are the numbers of a follower.
type Counts struct {
	// Workloads are those with a peak that counts.
	Workloads int
	// Age is that of the last list, 0 before the first.
	Age time.Duration
	// Named are the pods that this follower has named.
	Named uint64
	// NameFailures and ReadFailures are failed requests.
	NameFailures, ReadFailures uint64
}

// list is a table with the time of its request.
type list struct {
	table *Table
	at    time.Time
}

// Follower follows the peaks of workloads. All methods but Run return at once.
type Follower struct {
	options Options
	last    atomic.Pointer[list]
	wake    chan struct{}

	// mutex guards the fields below.
	mutex  sync.Mutex
	counts Counts
	// problem is the last one in the log, so that a service that stays away is one line.
	problem string
}

// New returns a follower that requests nothing before Run.
func New(options Options) *Follower {
	if options.Interval <= 0 {
		options.Interval = DefaultInterval
	}
	return &Follower{options: options, wake: make(chan struct{}, 1)}
}

// Peaks returns the measured peaks of a workload from memory; see [demand.Peaks].
func (f *Follower) Peaks(workload demand.Workload) (egressBps, ingressBps int64, ok bool) {
	last := f.last.Load()
	if last == nil || f.options.Now().Sub(last.at) > maxAge {
		return 0, 0, false
	}
	return last.table.Peaks(workload)
}

// Counts returns the counts up to now.
func (f *Follower) Counts() Counts {
	f.mutex.Lock()
	counts := f.counts
	f.mutex.Unlock()
	if last := f.last.Load(); last != nil {
		if counts.Age = max(f.options.Now().Sub(last.at), 0); counts.Age <= maxAge {
			counts.Workloads = last.table.Len()
		}
	}
	return counts
}

// Run names pods and requests peaks until the context ends.
func (f *Follower) Run(ctx context.Context) {
	for ctx.Err() == nil {
		f.step(ctx)
		pause := time.Duration(float64(f.options.Interval) * (1 + jitter*(f.options.Random()-0.5)))
		select {
		case <-ctx.Done():
		case <-f.wake:
		case <-time.After(pause):
		}
	}
}

// Wake makes Run name pods and request peaks now.
func (f *Follower) Wake() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// step names pods, and replaces the list. After a failure the last list stays.
func (f *Follower) step(ctx context.Context) {
	var problems []string
	if f.options.Pods != nil {
		named, err := namePods(ctx, f.options.Call, f.options.Pods)
		f.mutex.Lock()
		f.counts.Named += uint64(named)
		if err != nil {
			f.counts.NameFailures++
			problems = append(problems, "pods are not named: "+err.Error())
		}
		f.mutex.Unlock()
	}
	at := f.options.Now()
	table, err := Fetch(ctx, f.options.Call)
	if err == nil {
		if f.last.Load() == nil && f.options.First != nil {
			f.options.First(table)
		}
		f.last.Store(&list{table: table, at: at})
	} else {
		f.mutex.Lock()
		f.counts.ReadFailures++
		f.mutex.Unlock()
		problems = append(problems, "peaks are not read: "+err.Error())
	}
	if ctx.Err() == nil {
		f.report(problems)
	}
}

// report logs a problem once, and its end.
func (f *Follower) report(problems []string) {
	problem := ""
	if len(problems) > 0 {
		problem = problems[0]
	}
	f.mutex.Lock()
	before := f.problem
	f.problem = problem
	f.mutex.Unlock()
	switch {
	case problem == before:
	case problem == "":
		f.options.Log.Info("measured peaks are read again")
	default:
		f.options.Log.Warn("measured peaks", "problem", problem)
	}
}
