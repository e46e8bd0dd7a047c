package reporter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"leeward.dev/kubernetes/snapshot"
)

// Limits of requests.
const (
	// mostCommitments and mostDecisions are the largest numbers of items of a request of the API.
	mostCommitments = 100
	mostDecisions   = 1000
	// pageSize is the number of commitments on a page, and mostPages the number of pages that are read.
	pageSize  = 1000
	mostPages = 500
)

// Pauses between requests.
const (
	// gathering is the pause after a request, in which reports come together for the next one.
	gathering = 20 * time.Millisecond
	// Pauses after failures double from firstPause to longestPause.
	firstPause   = 250 * time.Millisecond
	longestPause = 10 * time.Second
	// warningInterval is the time between two warnings.
	warningInterval = time.Minute
)

// sender is the state of the goroutine that sends.
type sender struct {
	// listed is true once the commitments of earlier processes are known.
	listed bool
	// unsure are reports that were sent, and may have been committed without an answer.
	unsure []*entry
	pause  time.Duration
	warned time.Time
}

// Run sends reports and releases until the context ends.
func (r *Reporter) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if !r.hasWork() && len(r.sender.unsure) == 0 {
			select {
			case <-ctx.Done():
			case <-r.wake:
			}
			continue
		}
		timer := time.NewTimer(r.step(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

// step sends one request of each kind that is needed, and returns the pause before the next step.
func (r *Reporter) step(ctx context.Context) time.Duration {
	var err error
	if !r.sender.listed || len(r.sender.unsure) > 0 {
		err = r.list(ctx)
	}
	if err == nil {
		err = r.sendReleases(ctx)
	}
	if err == nil {
		err = r.sendReports(ctx)
	}
	if err == nil {
		r.sender.pause = firstPause
		return gathering
	}
	pause := r.sender.pause
	r.sender.pause = min(2*pause, longestPause)
	if now := r.options.Now(); ctx.Err() == nil && (r.sender.warned.IsZero() || now.Sub(r.sender.warned) > warningInterval) {
		r.sender.warned = now
		r.options.Log.Warn("placements are not reported to Leeward; they count in this scheduler alone", "problem", err.Error())
	}
	return time.Duration(float64(pause) * (0.5 + 0.5*r.options.Random()))
}

// isRejected returns true if the service has refused a request for good, so that a retry is in vain.
func isRejected(err error) bool {
	var problem *snapshot.RequestError
	if !errors.As(err, &problem) {
		return false
	}
	switch problem.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

func encode(body any) []byte {
	text, err := json.Marshal(body)
	if err != nil {
		// No field of a body can fail.
		panic(err)
	}
	return text
}

// sendReports commits the next placements of the queue.
func (r *Reporter) sendReports(ctx context.Context) error {
	batch := r.take()
	if len(batch) == 0 {
		return nil
	}
	commitments := make([]commitment, 0, len(batch))
	for _, e := range batch {
		commitments = append(commitments, e.report.commitment(r.options.Client, e.sequence))
	}
	body := encode(map[string]any{"commitments": commitments})
	answer, err := r.options.Call(ctx, http.MethodPost, "/v1/commitments/batch", body)
	if isRejected(err) {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		for _, e := range batch {
			r.reject(e)
		}
		return err
	}
	var results []result
	if err == nil {
		results, err = readResults(answer, len(batch))
	}
	if err != nil {
		r.sender.unsure = batch
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	rejected := ""
	for i, e := range batch {
		if results[i].isAccepted() {
			r.accept(e, results[i].Decision.ID)
			continue
		}
		r.reject(e)
		if problem := results[i].Problem; problem != nil {
			rejected = fmt.Sprintf("pod %s/%s: %.200s", e.report.Namespace, e.report.Name, problem.Detail)
		}
	}
	if rejected != "" {
		r.options.Log.Debug("Leeward rejected placements", "example", rejected)
	}
	return nil
}

// take takes placements from the queue and gives them sequences. Each is above all that the service has counted, also if
// the clock was set back since an earlier process.
func (r *Reporter) take() []*entry {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if view := r.options.Placements.View(); view != nil {
		r.sequence = max(r.sequence, view.Snapshot().Counted(r.options.Client)+1)
	}
	now := r.options.Now()
	var batch []*entry
	for len(r.queue) > 0 && len(batch) < mostCommitments {
		next := r.queue[0]
		r.queue[0] = nil
		r.queue = r.queue[1:]
		switch {
		case next.state == gone:
		case now.Sub(next.report.At) > mostAge:
			r.counts.Late++
			delete(r.entries, next.report.Pod)
		default:
			next.state, next.sequence = sent, r.sequence
			r.sequence++
			r.options.Placements.Reported(next.report.Pod, next.sequence)
			batch = append(batch, next)
		}
	}
	return batch
}

// accept notes the decision of a placement. The caller holds the mutex.
func (r *Reporter) accept(e *entry, decision string) {
	r.counts.Accepted++
	if e.ended {
		r.release(decision)
		return
	}
	// Nothing reads the report any more, and there may be as many as pods.
	e.state, e.decision, e.report = committed, decision, Report{}
}

// reject notes that the service has no decision of a placement, and never will. The caller holds the mutex.
func (r *Reporter) reject(e *entry) {
	r.counts.Rejected++
	if !e.ended {
		delete(r.entries, e.report.Pod)
		r.options.Placements.NotReported(e.report.Pod)
	}
}

// sendReleases releases the decisions of pods that have ended. A second release of a decision changes nothing.
func (r *Reporter) sendReleases(ctx context.Context) error {
	r.mutex.Lock()
	batch := r.releases[:min(len(r.releases), mostDecisions)]
	r.mutex.Unlock()
	if len(batch) == 0 {
		return nil
	}
	_, err := r.options.Call(ctx, http.MethodPost, "/v1/release", encode(map[string]any{"decisions": batch}))
	if err != nil && !isRejected(err) {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.releases = r.releases[len(batch):]
	if err == nil {
		r.counts.Released += uint64(len(batch))
	}
	return err
}

// list reads the commitments of this client. At first they are those of earlier processes; later it settles the reports
// without an answer.
func (r *Reporter) list(ctx context.Context) error {
	oldest := int64(0)
	if r.sender.listed {
		oldest = r.sender.unsure[0].sequence
	}
	own, surplus, err := r.commitments(ctx, oldest)
	if err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.sender.listed {
		for _, one := range own {
			r.inherit(one)
		}
		r.sender.listed = true
	}
	for _, decision := range surplus {
		r.release(decision)
	}
	r.settle(own)
	return nil
}

// commitments returns those of this client from a sequence on, the latest first, and the decisions of pods that have a
// later one.
func (r *Reporter) commitments(ctx context.Context, oldest int64) (own []listed, surplus []string, err error) {
	seen := map[string]bool{}
	after := ""
	for range mostPages {
		body, err := r.options.Call(ctx, http.MethodGet, fmt.Sprintf("/v1/commitments?limit=%d%s", pageSize, after), nil)
		if err != nil {
			return nil, nil, err
		}
		var part page
		if err := json.Unmarshal(body, &part); err != nil {
			return nil, nil, fmt.Errorf("commitments: %w", err)
		}
		for _, item := range part.Items {
			if item.Client == nil || *item.Client != r.options.Client || item.Sequence == nil || item.Reference == nil {
				continue
			}
			if *item.Sequence < oldest {
				return own, surplus, nil
			}
			key, pod := podOf(*item.Reference)
			if seen[pod] {
				surplus = append(surplus, item.ID)
				continue
			}
			seen[pod] = true
			own = append(own, listed{decision: item.ID, key: key, pod: pod, sequence: *item.Sequence})
		}
		if part.Next == nil {
			break
		}
		after = "&after=" + url.QueryEscape(*part.Next)
	}
	return own, surplus, nil
}

// inherit takes over a commitment of an earlier process: it is released unless its pod exists and has no newer report.
func (r *Reporter) inherit(one listed) {
	if r.entries[one.pod] != nil || !r.options.Exists(one.key, one.pod) {
		r.release(one.decision)
		return
	}
	r.entries[one.pod] = &entry{state: committed, sequence: one.sequence, decision: one.decision}
	r.options.Placements.Reported(one.pod, one.sequence)
}

// settle finds the results of reports without an answer. Those that the service does not have are sent again, with
// new sequences.
func (r *Reporter) settle(own []listed) {
	decisions := map[int64]string{}
	for _, one := range own {
		decisions[one.sequence] = one.decision
	}
	var again []*entry
	for _, e := range r.sender.unsure {
		decision, ok := decisions[e.sequence]
		switch {
		case ok:
			r.accept(e, decision)
		case !e.ended:
			e.state = waiting
			r.options.Placements.NotReported(e.report.Pod)
			again = append(again, e)
		}
	}
	r.queue = append(again, r.queue...)
	r.sender.unsure = nil
}
