// Package reporter reports own placements to the service, so that other schedulers and the service itself count them.
//
// Reports wait in a bounded queue and go out in the background, many in one request. The scheduler never waits for them. A
// report has the next sequence of this client; the placements learn it before it is sent, and drop the pod with the first
// snapshot that counts the sequence. Without an answer, the reporter lists its commitments to see which the service has, and
// reports the others again. So no placement counts twice, or not at all.
//
// A new process also lists the commitments of its predecessors, and releases those of pods that no longer exist. It does so
// before its first report, since a process that waits for leadership must not change what the leader reports.
package reporter

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"leeward.dev/kubernetes/placements"
)

// Limits of the reporter.
const (
	// mostWaiting is the largest number of reports that wait.
	mostWaiting = placements.Most
	// mostReleases is the largest number of releases that wait.
	mostReleases = 4 * placements.Most
	// mostAge is the age from which a report is no longer sent: telemetry shows the pod, and would count it again.
	mostAge = 30 * time.Second
)

// Options are those of [New].
type Options struct {
	// Client is the name of this client at the service. Placements must have the same.
	Client string
	// Call sends a request to the service and returns the body of its answer.
	Call func(ctx context.Context, method, path string, body []byte) ([]byte, error)
	// Placements are those that the reports are about.
	Placements *placements.Placements
	// Exists returns true if there is a pod with a key, its namespace and name, and a UID.
	Exists func(key, uid string) bool
	// Now returns the time, and Random numbers from 0 to 1, with which the pauses of several schedulers differ.
	Now    func() time.Time
	Random func() float64
	Log    *slog.Logger
}

// Counts are the numbers of placements by the result of their reports.
type Counts struct {
	// Accepted and Rejected have an answer of the service. Dropped found the queue full, and Late waited too long.
	Accepted, Rejected, Dropped, Late uint64
	// Released have ended, and the service knows.
	Released uint64
	// Waiting are in the queue.
	Waiting int
}

// state is how far a report is.
type state int

const (
	// waiting is in the queue.
	waiting state = iota
	// sent was sent and has no answer.
	sent
	// committed has a decision of the service.
	committed
	// gone was released before it was sent.
	gone
)

// entry is the report of a pod.
type entry struct {
	report   Report
	state    state
	sequence int64
	decision string
	// ended is true if the pod has ended since its report was sent.
	ended bool
}

// Reporter reports placements. All methods but Run return at once.
type Reporter struct {
	options Options
	wake    chan struct{}
	sender  sender

	// mutex guards the fields below. Its holder may call methods of the placements.
	mutex    sync.Mutex
	entries  map[string]*entry
	queue    []*entry
	releases []string
	sequence int64
	counts   Counts
}

// New returns a reporter that sends nothing before Run.
func New(options Options) *Reporter {
	return &Reporter{
		options: options,
		wake:    make(chan struct{}, 1),
		sender:  sender{pause: firstPause},
		entries: map[string]*entry{},
		// Microseconds since 1970 exceed the sequences of all earlier processes, and stay exact in JSON until 2255.
		sequence: options.Now().UnixMicro(),
	}
}

// Counts returns the counts up to now.
func (r *Reporter) Counts() Counts {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	counts := r.counts
	for _, e := range r.queue {
		if e.state == waiting {
			counts.Waiting++
		}
	}
	return counts
}

// Report queues the report of a placement. The report of a pod replaces an earlier one.
func (r *Reporter) Report(report Report) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.end(report.Pod)
	if len(r.queue) >= mostWaiting {
		r.compact()
	}
	if len(r.queue) >= mostWaiting {
		r.counts.Dropped++
		return
	}
	added := &entry{report: report}
	r.entries[report.Pod] = added
	r.queue = append(r.queue, added)
	r.signal()
}

// Release says that a pod has ended, or that its placement failed. It returns true if the service has the placement or may
// get it: snapshots then show its end. Otherwise the caller must count the end itself.
func (r *Reporter) Release(pod string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.end(pod)
}

// Adopted says that the placements count a pod of an earlier process from now on. If the service has its commitment, the pod
// leaves them with the next snapshot.
func (r *Reporter) Adopted(pod string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if known := r.entries[pod]; known != nil && known.state == committed {
		r.options.Placements.Reported(pod, known.sequence)
	}
}

func (r *Reporter) end(pod string) bool {
	ended := r.entries[pod]
	if ended == nil {
		return false
	}
	delete(r.entries, pod)
	switch ended.state {
	case waiting:
		ended.state = gone
		return false
	case sent:
		ended.ended = true
	default:
		r.release(ended.decision)
	}
	return true
}

// release queues the release of a decision. Beyond the limit it is dropped; a later process then releases it.
func (r *Reporter) release(decision string) {
	if len(r.releases) >= mostReleases {
		r.counts.Dropped++
		return
	}
	r.releases = append(r.releases, decision)
	r.signal()
}

// compact removes reports from the queue whose pods have ended.
func (r *Reporter) compact() {
	rest := r.queue[:0]
	for _, e := range r.queue {
		if e.state == waiting {
			rest = append(rest, e)
		}
	}
	clear(r.queue[len(rest):])
	r.queue = rest
}

func (r *Reporter) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Reporter) hasWork() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.queue)+len(r.releases) > 0
}
