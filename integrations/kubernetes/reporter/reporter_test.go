package reporter

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"leeward.dev/kubernetes/internal/fake"
	"leeward.dev/kubernetes/placements"
)

func TestAPlacementCountsOnceWhileTheServiceTakesItOver(t *testing.T) {
	s := newScene(t)
	s.place("a", "r1h2")
	s.expectLoad("before the report", "r1:uplink", 100)
	s.settle()
	s.expectPresent("after the report", "a")
	s.expectLoad("before the next snapshot", "r1:uplink", 100)
	s.publish()
	s.expectLoad("after the next snapshot", "r1:uplink", 100)
	s.expectLoad("after the next snapshot", "r1h2:ingress", 10)
	if s.placements.Len() != 0 {
		t.Error("the placement still counts locally")
	}
	s.end("a")
	s.settle()
	s.publish()
	s.expectLoad("after the release", "r1:uplink", 0)
	if counts := s.reporter.Counts(); counts != (Counts{Accepted: 1, Released: 1}) {
		t.Errorf("%+v", counts)
	}
}

func TestReportsGoOutTogetherInTheirOrder(t *testing.T) {
	s := newScene(t)
	for i := range 250 {
		s.place(fmt.Sprint(i), "r0h0")
	}
	if waiting := s.reporter.Counts().Waiting; waiting != 250 {
		t.Errorf("%d wait", waiting)
	}
	s.settle()
	if requests := s.posts("/v1/commitments/batch"); requests != 3 {
		t.Errorf("%d requests for 250 placements", requests)
	}
	for i, one := range s.service.Commitments() {
		if _, pod := podOf(one.Reference); pod != fmt.Sprint(i) {
			t.Fatalf("commitment %d is that of pod %s", i, pod)
		}
	}
}

func TestAPlacementWithoutAnAnswerIsCommittedOnce(t *testing.T) {
	for _, c := range []struct {
		name     string
		fault    fault
		requests int
	}{{"the report arrived", unanswered, 1}, {"the report was lost", lost, 2}} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			s.settle()
			// The first request lists the commitments of earlier processes.
			s.next = []fault{none, c.fault}
			s.place("a", "r0h0")
			s.place("b", "r0h1")
			if pause := s.step(); pause != firstPause {
				t.Errorf("pause %v after a failure", pause)
			}
			s.publish()
			s.expectLoad("without an answer", "r0:uplink", 200)
			s.settle()
			s.publish()
			s.expectLoad("in the end", "r0:uplink", 200)
			s.expectPresent("in the end", "a", "b")
			if requests := s.posts("/v1/commitments/batch"); requests != c.requests {
				t.Errorf("%d requests, expected %d", requests, c.requests)
			}
			s.end("a")
			s.settle()
			s.expectPresent("after an end", "b")
		})
	}
}

func TestAPlacementThatTheServiceDidNotGetCountsUntilItIsSentAgain(t *testing.T) {
	s := newScene(t)
	s.place("b", "r1h0")
	s.settle()
	s.place("a", "r0h0")
	s.next = []fault{lost}
	s.step()
	s.end("b")
	// The list shows that the report of a did not arrive. The release of b fails, so nothing is sent again yet.
	s.next = []fault{none, lost}
	s.step()
	// Another replica of the scheduler reports under the same name, with later sequences.
	s.network.Clients[client] += 1000
	s.publish()
	s.expectLoad("before the report is sent again", "r0:uplink", 100)
	s.settle()
	s.publish()
	s.expectPresent("in the end", "a")
	s.expectLoad("in the end", "r0:uplink", 100)
}

func TestARejectedPlacementStaysUntilTelemetryShowsIt(t *testing.T) {
	s := newScene(t)
	s.place("a", "r0h0")
	s.next = []fault{none, refused}
	s.step()
	s.place("b", "r0h0")
	s.settle()
	s.publish()
	s.expectPresent("after a rejection", "b")
	s.expectLoad("after a rejection", "r0:uplink", 200)
	if s.placements.Len() != 1 {
		t.Errorf("%d placements count locally", s.placements.Len())
	}
	if s.reporter.Release("a") {
		t.Error("a rejected placement must be ended by the caller")
	}
}

func TestANodeThatTheServiceDoesNotKnowRejectsItsPodAlone(t *testing.T) {
	s := newScene(t)
	s.place("a", "r0h0")
	s.place("b", "elsewhere")
	s.place("c", "r0h1")
	s.settle()
	s.expectPresent("beside a rejected pod", "a", "c")
	if counts := s.reporter.Counts(); counts.Accepted != 2 || counts.Rejected != 1 {
		t.Errorf("%+v", counts)
	}
}

func TestAPodThatEndsWhileItsReportIsOnTheWayIsReleased(t *testing.T) {
	for _, answer := range []fault{none, unanswered} {
		s := newScene(t)
		s.settle()
		s.place("a", "r0h0")
		s.next = []fault{none, answer}
		s.during = func(path string) {
			if path == "/v1/commitments/batch" {
				s.during = nil
				s.end("a")
			}
		}
		s.settle()
		s.expectPresent("in the end")
		if all := len(s.service.Commitments()); all != 1 {
			t.Errorf("%d commitments", all)
		}
	}
}

func TestAPodThatEndsBeforeItsReportIsNeverReported(t *testing.T) {
	s := newScene(t)
	s.place("a", "r0h0")
	s.end("a")
	s.settle()
	if all := len(s.service.Commitments()); all != 0 {
		t.Errorf("%d commitments", all)
	}
}

func TestAPodThatMovesHasOnePlacement(t *testing.T) {
	s := newScene(t)
	s.place("a", "r0h0")
	s.settle()
	s.publish()
	s.place("a", "r1h0")
	s.settle()
	s.publish()
	s.expectPresent("after a move", "a")
	s.expectLoad("after a move", "r0:uplink", 0)
	s.expectLoad("after a move", "r1:uplink", 100)
}

func TestANewProcessTakesOverThePlacementsOfTheLast(t *testing.T) {
	s := newScene(t)
	for _, pod := range []string{"a", "b", "c"} {
		s.place(pod, "r0h0")
	}
	s.settle()
	s.restart()
	s.expectLoad("after the restart", "r0:uplink", 300)
	// One pod ended meanwhile, and one was adopted before the service could be asked.
	delete(s.exists, "b")
	s.placements.Add("c", "r0h0", placements.Rates{Egress: 100, Ingress: 10}, s.now)
	if s.reporter.hasWork() {
		t.Error("a process that places nothing must not send")
	}
	s.now = s.now.Add(time.Second)
	s.place("d", "r0h0")
	s.settle()
	s.publish()
	s.expectPresent("after the takeover", "a", "c", "d")
	s.expectLoad("after the takeover", "r0:uplink", 300)
	// Another one is adopted later, with the first list of peaks.
	s.placements.Add("a", "r0h0", placements.Rates{Egress: 100, Ingress: 10}, s.now)
	s.reporter.Adopted("a")
	s.reporter.Adopted("elsewhere")
	s.publish()
	s.expectLoad("after a late adoption", "r0:uplink", 300)
	s.end("a")
	s.end("c")
	s.settle()
	s.expectPresent("after the end of inherited pods", "d")
}

func TestSequencesRiseAlsoIfTheClockWasSetBack(t *testing.T) {
	s := newScene(t)
	s.place("a", "r0h0")
	s.settle()
	s.now = s.now.Add(-time.Hour)
	s.restart()
	s.place("b", "r0h0")
	s.settle()
	s.expectPresent("with an earlier clock", "a", "b")
}

func TestOldReportsAreNotSent(t *testing.T) {
	s := newScene(t)
	s.place("a", "r0h0")
	s.now = s.now.Add(mostAge + time.Second)
	s.place("b", "r0h0")
	s.settle()
	s.expectPresent("after a long outage", "b")
	if counts := s.reporter.Counts(); counts.Late != 1 {
		t.Errorf("%+v", counts)
	}
}

func TestAFullQueueDropsReportsAndNothingElse(t *testing.T) {
	s := newScene(t)
	for i := range mostWaiting + 3 {
		s.reporter.Report(Report{Pod: fmt.Sprint(i), Node: "r0h0", At: s.now})
	}
	if counts := s.reporter.Counts(); counts.Dropped != 3 || counts.Waiting != mostWaiting {
		t.Errorf("%+v", counts)
	}
	if s.reporter.Release(fmt.Sprint(mostWaiting + 1)) {
		t.Error("a dropped report must be ended by the caller")
	}
	// Reports of pods that have ended make room.
	s.reporter.Release("0")
	s.place("new", "r0h0")
	if counts := s.reporter.Counts(); counts.Dropped != 3 || counts.Waiting != mostWaiting {
		t.Errorf("%+v", counts)
	}
}

func TestPausesAfterFailuresDoubleUpToALimit(t *testing.T) {
	s := newScene(t)
	s.place("a", "r0h0")
	s.next = slices.Repeat([]fault{lost}, 8)
	expected := firstPause
	for range 8 {
		if pause := s.step(); pause != expected {
			t.Errorf("pause %v, expected %v", pause, expected)
		}
		expected = min(2*expected, longestPause)
	}
	if pause := s.step(); pause != gathering {
		t.Errorf("pause %v after a success", pause)
	}
}

func TestLongNamesNeverSpoilABatch(t *testing.T) {
	report := Report{Pod: "u", Namespace: strings.Repeat("n", 63), Name: strings.Repeat("p", 253), Job: strings.Repeat("j", 400)}
	sent := report.commitment(client, 1)
	if sent.Tasks.Job != "" || len(sent.Tasks.Reference) > 512 {
		t.Errorf("job %q, %d characters of ref", sent.Tasks.Job, len(sent.Tasks.Reference))
	}
}

// The steps are those of a scheduler on a bad network. At each snapshot every pod counts at least once, and pods that have
// ended count at most until the service learns of it. In the end the service has each pod that exists once, and no other.
func TestNoPodCountsTwiceOrNotAtAllOnABadNetwork(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 30))
		s := newScene(t)
		var running []string
		started, unreleased := 0, 0
		for range 150 {
			switch random.IntN(6) {
			case 0, 1:
				pod := fmt.Sprint(started)
				started++
				s.place(pod, fmt.Sprintf("r0h%d", random.IntN(3)))
				running = append(running, pod)
			case 2:
				if len(running) > 0 {
					i := random.IntN(len(running))
					s.end(running[i])
					running = slices.Delete(running, i, i+1)
					unreleased++
				}
			case 3:
				s.next = append(s.next, fault(random.IntN(3)))
			case 4:
				s.step()
			default:
				s.publish()
			}
			least, most := float64(100*len(running)), float64(100*(len(running)+unreleased))
			if load := s.load("r0:uplink"); load < least || load > most {
				t.Fatalf("seed %d: the load is %v, expected %v to %v", seed, load, least, most)
			}
		}
		s.next = nil
		s.settle()
		s.publish()
		s.expectLoad(fmt.Sprintf("seed %d", seed), "r0:uplink", float64(100*len(running)))
		present := map[string]int{}
		for _, one := range s.service.Present() {
			_, pod := podOf(one.Reference)
			present[pod]++
		}
		for _, pod := range running {
			if present[pod] != 1 {
				t.Fatalf("seed %d: pod %s has %d commitments", seed, pod, present[pod])
			}
		}
		if len(present) != len(running) {
			t.Fatalf("seed %d: %d pods have commitments, %d run", seed, len(present), len(running))
		}
	}
}

func TestReportsAndReleasesOfManyGoroutinesEndInOrder(t *testing.T) {
	s := newScene(t)
	s.next = slices.Repeat([]fault{none, none, unanswered}, 20)
	var lock sync.Mutex
	s.reporter.options.Call = func(ctx context.Context, method, path string, body []byte) ([]byte, error) {
		lock.Lock()
		defer lock.Unlock()
		return s.call(ctx, method, path, body)
	}
	s.reporter.options.Random = func() float64 { return 0 }
	ctx, cancel := context.WithCancel(t.Context())
	var sender, callers sync.WaitGroup
	sender.Go(func() { s.reporter.Run(ctx) })
	for caller := range 8 {
		callers.Go(func() {
			for i := range 50 {
				pod := fmt.Sprintf("%d-%d", caller, i)
				s.reporter.Report(Report{Pod: pod, Node: "r1h1", Rates: placements.Rates{Egress: 1}, At: fake.Start})
				if i%2 == 0 {
					s.reporter.Release(pod)
				}
			}
		})
	}
	callers.Wait()
	for range 3000 {
		if len(s.service.Present()) == 200 && !s.reporter.hasWork() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	sender.Wait()
	if present := len(s.service.Present()); present != 200 {
		t.Errorf("%d placements are present, expected 200", present)
	}
}
