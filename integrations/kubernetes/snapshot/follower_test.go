package snapshot

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"leeward.dev/kubernetes/internal/fake"
)

// source answers a follower without a network. Times in its tests are those of a bubble.
type source struct {
	network *fake.Network
	asked   []time.Time
	wholes  []bool
	problem *RequestError
	// until is the end of the problem, never by default.
	until time.Time
	waits bool
}

func (s *source) get(ctx context.Context, last *Snapshot, whole bool) (*Snapshot, error) {
	s.asked, s.wholes = append(s.asked, time.Now()), append(s.wholes, whole)
	if s.waits && !whole {
		if wait(ctx, time.Second); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if s.problem != nil && (s.until.IsZero() || time.Now().Before(s.until)) {
		return nil, s.problem
	}
	if whole {
		return Read(s.network.Whole(), nil, time.Now())
	}
	return Read(s.network.Difference(last.ID()), last, time.Now())
}

// follow runs a follower of a source for a time.
func follow(t *testing.T, s *source, duration time.Duration, take func(*Snapshot)) (*Feed, string) {
	t.Helper()
	var text bytes.Buffer
	feed := NewFeed(5 * time.Second)
	follower := &Follower{
		get: s.get, address: func() string { return "http://leeward" }, interval: time.Second, feed: feed, take: take,
		random: func() float64 { return 1 }, log: slog.New(slog.NewTextHandler(&text, nil)), whole: true, pause: firstPause,
	}
	ctx, cancel := context.WithTimeout(t.Context(), duration)
	defer cancel()
	follower.Run(ctx)
	return feed, text.String()
}

func ignore(*Snapshot) {}

func TestAFollowerGetsOneSnapshotEachInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{network: fake.Tree(0, 1, 1), waits: true}
		feed, _ := follow(t, s, 10500*time.Millisecond, ignore)
		if whole, differences := feed.Counts(); whole != 1 || differences != 10 {
			t.Errorf("%d whole and %d differences", whole, differences)
		}
	})
}

func TestAControllerThatDoesNotWaitIsAskedTwiceAnInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{network: fake.Tree(0, 1, 1)}
		follow(t, s, 10100*time.Millisecond, ignore)
		if len(s.asked) > 23 {
			t.Errorf("%d requests in 10 s", len(s.asked))
		}
	})
}

func TestPausesDoubleUpToTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{problem: failed(Unreachable, "no connection")}
		feed, text := follow(t, s, time.Hour, ignore)
		for i, expected := range []time.Duration{250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000} {
			if pause := s.asked[i+1].Sub(s.asked[i]); pause != expected*time.Millisecond {
				t.Errorf("pause %d: %v", i, pause)
			}
		}
		if feed.FailureCount(Unreachable) != uint64(len(s.asked)) {
			t.Errorf("%d failures of %d", feed.FailureCount(Unreachable), len(s.asked))
		}
		if warnings := strings.Count(text, "level=WARN"); warnings < 50 || warnings > 61 {
			t.Errorf("%d warnings in an hour", warnings)
		}
	})
}

func TestPausesOfTwoSchedulersDiffer(t *testing.T) {
	for _, random := range []float64{0, 0.5, 1} {
		f := &Follower{feed: NewFeed(time.Second), random: func() float64 { return random }, pause: time.Second, warned: now}
		if pause := f.fail(failed(Timeout, "late"), now); pause != time.Duration((0.5+0.5*random)*1e9) {
			t.Errorf("%v: %v", random, pause)
		}
	}
}

func TestTheFirstSuccessEndsThePausesAndTheOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{network: fake.Tree(0, 1, 1), waits: true, problem: failed(Timeout, "late")}
		s.until = time.Now().Add(30 * time.Second)
		feed, text := follow(t, s, 60*time.Second, ignore)
		if whole, differences := feed.Counts(); whole != 1 || differences < 15 || failureCount(feed) != feed.FailureCount(Timeout) {
			t.Errorf("%d whole snapshots, %d differences, %d failures", whole, differences, failureCount(feed))
		}
		if !strings.Contains(text, "Leeward is back") {
			t.Errorf("log: %s", text)
		}
	})
}

func TestOnlyAnAnswerThatDoesNotFitMakesTheNextOneWhole(t *testing.T) {
	for failure, whole := range map[Failure]bool{
		Unreachable: false, Timeout: false, Unauthorized: false, BadTLS: false, Invalid: true, BadStatus: true, Internal: true,
	} {
		f := &Follower{feed: NewFeed(time.Second), random: func() float64 { return 0 }, warned: now}
		f.fail(failed(failure, "problem"), now)
		if f.whole != whole {
			t.Errorf("%s: %v", failure, f.whole)
		}
	}
}

func TestAFaultOfAReaderEndsNothingAndLeavesTheEarlierSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, taken := &source{network: fake.Tree(0, 1, 1), waits: true}, 0
		feed, _ := follow(t, s, 20*time.Second, func(*Snapshot) {
			if taken++; taken == 3 {
				panic("fault")
			}
		})
		if feed.FailureCount(Internal) != 1 || failureCount(feed) != 1 {
			t.Errorf("%d faults, %d failures", feed.FailureCount(Internal), failureCount(feed))
		}
		if whole, differences := feed.Counts(); whole != 2 || differences < 10 {
			t.Errorf("%d whole and %d differences", whole, differences)
		}
	})
}

func TestAReaderSeesASnapshotBeforeTheFeedHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feed := NewFeed(time.Second)
		f := &Follower{feed: feed, take: func(next *Snapshot) {
			if feed.Last() == next {
				t.Error("the feed has the snapshot")
			}
		}}
		if err := f.publish(read(t, []byte(small), nil)); err != nil || feed.Last() == nil {
			t.Errorf("%v, %v", feed.Last(), err)
		}
	})
}

func TestTheSameStateAgainAndAgainBecomesStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{network: fake.Tree(0, 1, 1), waits: true}
		feed, _ := follow(t, s, 3500*time.Millisecond, ignore)
		if !feed.IsFresh(feed.Last(), time.Now()) {
			t.Error("stale after 3.5 s")
		}
		feed, _ = follow(t, s, 5500*time.Millisecond, ignore)
		if feed.IsFresh(feed.Last(), time.Now()) {
			t.Error("fresh after 5.5 s without a new state")
		}
		if feed.IsFresh(nil, time.Now()) {
			t.Error("no snapshot is fresh")
		}
	})
}

// failureCount returns the number of failed requests, and snapshotCount that of snapshots.
func failureCount(feed *Feed) uint64 {
	sum := uint64(0)
	for _, failure := range Failures {
		sum += feed.FailureCount(failure)
	}
	return sum
}

func snapshotCount(feed *Feed) uint64 {
	whole, differences := feed.Counts()
	return whole + differences
}

// eventually fails unless a condition holds within a minute.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 6000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("after a minute: %s", what)
}

// start follows a controller over HTTP until the test ends.
func start(t *testing.T, handler http.Handler) *Feed {
	t.Helper()
	c := client(t, patient(serve(t, handler).URL))
	feed := NewFeed(time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		NewFollower(c, feed, ignore, func() float64 { return 0 }, slog.New(slog.DiscardHandler)).Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return feed
}

func TestARestartedControllerIsFollowedFromAWholeSnapshot(t *testing.T) {
	controller := fake.NewController(fake.Tree(0, 2, 2))
	feed := start(t, controller)
	eventually(t, "no difference", func() bool { _, differences := feed.Counts(); return differences > 2 })
	names := feed.Last().Names()
	restarted := fake.Tree(0, 2, 2)
	restarted.Run = "beef"
	restarted.Link("r0:uplink").Measured = 77
	controller.Replace(restarted)
	eventually(t, "no snapshot of the new run", func() bool { return strings.HasPrefix(feed.Last().ID(), "beef-") })
	if whole, _ := feed.Counts(); whole != 2 || feed.Last().Names() != names {
		t.Errorf("%d whole snapshots, the same names: %v", whole, feed.Last().Names() == names)
	}
	if count := failureCount(feed); count != 0 {
		t.Errorf("%d failures", count)
	}
}

func TestAnotherClusterReplacesTheNames(t *testing.T) {
	controller := fake.NewController(fake.Tree(0, 2, 2))
	feed := start(t, controller)
	eventually(t, "no snapshot", func() bool { return feed.Last() != nil })
	other := fake.Tree(0, 3, 1)
	other.Version = "2"
	controller.Replace(other)
	eventually(t, "no snapshot of the other cluster", func() bool { return feed.Last().Names().Racks() == 3 })
}

func TestAfterGarbageAndLiesTheFollowerIsBack(t *testing.T) {
	controller := fake.NewController(fake.Tree(0, 2, 2))
	feed := start(t, controller)
	eventually(t, "no snapshot", func() bool { return feed.Last() != nil })
	for _, body := range []string{
		"garbage", `{}`, `[]`, difference, strings.Replace(small, `"1"`, `"\ud8"`, 1), strings.Repeat("[", 1<<20),
	} {
		before := feed.FailureCount(Invalid)
		controller.Intercept(func(writer http.ResponseWriter, _ *http.Request) bool {
			_, _ = writer.Write([]byte(body))
			return true
		})
		eventually(t, "no failure", func() bool { return feed.FailureCount(Invalid) > before })
		before = snapshotCount(feed)
		controller.Intercept(nil)
		eventually(t, "not back", func() bool { return snapshotCount(feed) > before })
	}
	if feed.Last().Names().Racks() != 2 {
		t.Error("a lie was believed")
	}
}

func TestASlowControllerTimesOutAndIsBack(t *testing.T) {
	controller := fake.NewController(fake.Tree(0, 2, 2))
	feed := start(t, controller)
	eventually(t, "no snapshot", func() bool { return feed.Last() != nil })
	controller.Intercept(func(_ http.ResponseWriter, request *http.Request) bool {
		<-request.Context().Done()
		return true
	})
	eventually(t, "no timeout", func() bool { return feed.FailureCount(Timeout) > 0 })
	before := snapshotCount(feed)
	controller.Intercept(nil)
	eventually(t, "not back", func() bool { return snapshotCount(feed) > before })
}
