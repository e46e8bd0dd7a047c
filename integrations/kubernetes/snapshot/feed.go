package snapshot

import (
	"sync/atomic"
	"time"
)

// Feed has the last snapshot for any number of readers, and counts of how snapshots came.
type Feed struct {
	maxAge      time.Duration
	last        atomic.Pointer[Snapshot]
	whole       atomic.Uint64
	differences atomic.Uint64
	failures    [len(Failures)]atomic.Uint64
}

// NewFeed returns an empty feed. A snapshot of at least maxAge no longer counts.
func NewFeed(maxAge time.Duration) *Feed { return &Feed{maxAge: maxAge} }

// Last returns the last snapshot, nil before the first.
func (f *Feed) Last() *Snapshot { return f.last.Load() }

// IsFresh returns true if a snapshot counts at a local time. A missing one does not.
func (f *Feed) IsFresh(snapshot *Snapshot, now time.Time) bool {
	return snapshot != nil && snapshot.Age(now) < f.maxAge
}

// Counts returns the numbers of whole snapshots and of differences.
func (f *Feed) Counts() (whole, differences uint64) { return f.whole.Load(), f.differences.Load() }

// FailureCount returns the number of requests that failed for a reason.
func (f *Feed) FailureCount(failure Failure) uint64 {
	for i, known := range Failures {
		if known == failure {
			return f.failures[i].Load()
		}
	}
	return 0
}

func (f *Feed) publish(next *Snapshot) {
	f.last.Store(next)
	if next.IsDifference() {
		f.differences.Add(1)
	} else {
		f.whole.Add(1)
	}
}

func (f *Feed) fail(problem *RequestError) {
	for i, known := range Failures {
		if known == problem.Failure {
			f.failures[i].Add(1)
		}
	}
}
