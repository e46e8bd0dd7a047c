package snapshot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// Pauses between failed requests double from firstPause to longestPause.
const (
	firstPause   = 250 * time.Millisecond
	longestPause = 10 * time.Second
	// warningInterval is the time between two warnings.
	warningInterval = time.Minute
)

// Follower publishes the snapshots of a controller in a feed. Nothing that the controller answers ends it, and no fault of
// a reader does.
type Follower struct {
	// get requests a snapshot.
	get      func(ctx context.Context, last *Snapshot, whole bool) (*Snapshot, error)
	address  func() string
	interval time.Duration
	feed     *Feed
	take     func(*Snapshot)
	random   func() float64
	log      *slog.Logger
	last     *Snapshot
	// whole is true if the next snapshot must be whole.
	whole  bool
	pause  time.Duration
	warned time.Time
	// announced is true if the log has the present outage.
	announced bool
}

// NewFollower returns a follower. It calls take with each snapshot before readers of the feed see it. random returns
// numbers from 0 to 1; with it, the pauses of several schedulers differ.
func NewFollower(client *Client, feed *Feed, take func(*Snapshot), random func() float64, log *slog.Logger) *Follower {
	return &Follower{
		get: client.Get, address: client.Address, interval: client.settings.Interval,
		feed: feed, take: take, random: random, log: log, whole: true, pause: firstPause,
	}
}

// Run follows the controller until the context ends.
func (f *Follower) Run(ctx context.Context) {
	for ctx.Err() == nil {
		wait(ctx, f.step(ctx))
	}
}

func wait(ctx context.Context, pause time.Duration) {
	if pause <= 0 {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// step requests and publishes one snapshot, and returns the pause before the next request.
func (f *Follower) step(ctx context.Context) time.Duration {
	started, atOnce := time.Now(), f.whole
	next, err := f.request(ctx)
	if err == nil {
		err = f.publish(next)
	}
	switch {
	case ctx.Err() != nil:
		return 0
	case err != nil:
		return f.fail(asRequestError(err), time.Now())
	}
	f.last, f.whole, f.pause = next, false, firstPause
	if atOnce {
		// The first difference follows the whole snapshot at once.
		return 0
	}
	// A controller that does not wait must not be asked without a pause.
	return f.interval/2 - time.Since(started)
}

func (f *Follower) request(ctx context.Context) (next *Snapshot, err error) {
	defer recovered(&err)
	return f.get(ctx, f.last, f.whole)
}

// publish gives the snapshot to its readers. If one of them fails, the earlier snapshot stays.
func (f *Follower) publish(next *Snapshot) (err error) {
	defer recovered(&err)
	f.take(next)
	f.feed.publish(next)
	if f.announced {
		f.log.Info("Leeward is back", "controller", f.address(), "epoch", next.Epoch(), "links", next.Names().Links())
		f.announced = false
	}
	return nil
}

// recovered turns a panic into an error: the process is a scheduler, which must not end because of a fault here.
func recovered(err *error) {
	if fault := recover(); fault != nil {
		*err = failed(Internal, "fault: %v: %s", fault, firstBytes(debug.Stack(), 2000))
	}
}

func firstBytes(text []byte, most int) []byte { return text[:min(len(text), most)] }

func asRequestError(err error) *RequestError {
	var problem *RequestError
	if errors.As(err, &problem) {
		return problem
	}
	return failed(Internal, "%s", fmt.Sprint(err))
}

func (f *Follower) fail(problem *RequestError, now time.Time) time.Duration {
	f.feed.fail(problem)
	// At most one warning a minute, also if the controller fails and is back again and again.
	if f.warned.IsZero() || now.Sub(f.warned) > warningInterval {
		f.log.Warn("Leeward is unavailable; once the last snapshot is too old, nodes are scored without the network",
			"reason", string(problem.Failure), "problem", problem.Error())
		f.warned, f.announced = now, true
	}
	switch problem.Failure {
	case Invalid, BadStatus, Internal:
		// The next answer must not depend on the last snapshot.
		f.whole = true
	}
	longest := f.pause
	f.pause = min(2*f.pause, longestPause)
	return time.Duration(float64(longest) * (0.5 + 0.5*f.random()))
}
