package reporter

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"leeward.dev/kubernetes/internal/fake"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/placements"
	"leeward.dev/kubernetes/snapshot"
)

const client = "scheduler"

// fault is the failure of a request.
type fault int

const (
	none fault = iota
	// lost never arrives; unanswered arrives, and its answer is lost; refused has the status 422.
	lost
	unanswered
	refused
)

// scene is a service, the placements of a scheduler and their reporter, without a network in between.
type scene struct {
	t          testing.TB
	service    *fake.Controller
	network    *fake.Network
	placements *placements.Placements
	reporter   *Reporter
	exists     map[string]bool
	last       *snapshot.Snapshot
	now        time.Time
	// next are the faults of the next requests. during is called when a request has arrived.
	next   []fault
	during func(path string)
	paths  []string
}

func newScene(t testing.TB) *scene {
	t.Helper()
	s := &scene{t: t, network: fake.Tree(0, 2, 3), exists: map[string]bool{}}
	s.now, s.service = s.network.Time, fake.NewController(s.network)
	s.restart()
	return s
}

// restart replaces the process of the scheduler.
func (s *scene) restart() {
	s.t.Helper()
	s.renew()
	s.publish()
}

// renew replaces the placements and the reporter.
func (s *scene) renew() {
	s.t.Helper()
	estimator, err := ledger.NewEstimator(time.Second, 0.2)
	if err != nil {
		s.t.Fatal(err)
	}
	s.placements, err = placements.New(client, estimator, placements.DefaultLasts)
	if err != nil {
		s.t.Fatal(err)
	}
	s.reporter = New(Options{
		Client: client, Call: s.call, Placements: s.placements,
		Exists: func(_, uid string) bool { return s.exists[uid] },
		Now:    func() time.Time { return s.now }, Random: func() float64 { return 1 },
		Log: slog.New(slog.DiscardHandler),
	})
	s.last = nil
}

func (s *scene) call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	s.paths = append(s.paths, method+" "+path)
	happens := none
	if len(s.next) > 0 {
		happens, s.next = s.next[0], s.next[1:]
	}
	switch happens {
	case lost:
		return nil, &snapshot.RequestError{Failure: snapshot.Unreachable}
	case refused:
		return nil, &snapshot.RequestError{Failure: snapshot.BadStatus, Status: http.StatusUnprocessableEntity}
	}
	request := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(string(body)))
	answer := httptest.NewRecorder()
	s.service.ServeHTTP(answer, request)
	if s.during != nil {
		s.during(path)
	}
	if happens == unanswered {
		return nil, &snapshot.RequestError{Failure: snapshot.Timeout}
	}
	if answer.Code != http.StatusOK {
		s.t.Errorf("%s %s: %d: %s", method, path, answer.Code, answer.Body)
	}
	return answer.Body.Bytes(), nil
}

// publish gives the placements a snapshot of the network as it is.
func (s *scene) publish() {
	s.t.Helper()
	next, err := snapshot.Read(s.network.Whole(), s.last, s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	s.last = next
	s.placements.OnSnapshot(next)
}

// place places a pod of 100 bit/s out and 10 bit/s in, and queues its report.
func (s *scene) place(pod, node string) {
	rates := placements.Rates{Egress: 100, Ingress: 10}
	s.exists[pod] = true
	s.placements.Add(pod, node, rates, s.now)
	s.reporter.Report(Report{
		Pod: pod, Namespace: "default", Name: "n" + pod, Node: node, Rates: rates, Job: "default/Job/j", At: s.now,
	})
}

// end ends a pod.
func (s *scene) end(pod string) {
	delete(s.exists, pod)
	s.placements.Remove(pod)
	s.reporter.Release(pod)
}

func (s *scene) step() time.Duration { return s.reporter.step(s.t.Context()) }

// settle takes steps until nothing waits.
func (s *scene) settle() {
	s.t.Helper()
	for range 1000 {
		if !s.reporter.hasWork() && len(s.reporter.sender.unsure) == 0 {
			return
		}
		s.step()
	}
	s.t.Fatal("after 1,000 steps reports still wait")
}

// load returns the load of a link for decisions.
func (s *scene) load(link string) float64 {
	view := s.placements.View()
	return view.Load(view.Snapshot().Names().Link(link))
}

func (s *scene) expectLoad(when, link string, expected float64) {
	s.t.Helper()
	if load := s.load(link); math.Abs(load-expected) > 1e-6 {
		s.t.Errorf("%s: %s has %v, expected %v", when, link, load, expected)
	}
}

// expectPresent checks the pods whose placements the service has and did not release.
func (s *scene) expectPresent(when string, pods ...string) {
	s.t.Helper()
	var present []string
	for _, one := range s.service.Present() {
		_, pod := podOf(one.Reference)
		present = append(present, pod)
	}
	if fmt.Sprint(present) != fmt.Sprint(pods) {
		s.t.Errorf("%s: the service has %v, expected %v", when, present, pods)
	}
}

// posts returns the number of requests of a kind.
func (s *scene) posts(path string) int {
	count := 0
	for _, each := range s.paths {
		if strings.HasPrefix(each, "POST "+path) {
			count++
		}
	}
	return count
}
