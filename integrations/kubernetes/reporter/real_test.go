package reporter

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"leeward.dev/kubernetes/internal/service"
	"leeward.dev/kubernetes/placements"
	"leeward.dev/kubernetes/snapshot"
)

// realScene is a scene with the service itself instead of a fake.
type realScene struct {
	*scene
	client *snapshot.Client
}

func newRealScene(t *testing.T) *realScene {
	t.Helper()
	s := &realScene{scene: &scene{t: t, exists: map[string]bool{}, now: time.Now()}}
	settings := snapshot.Settings{Controllers: []string{service.Start(t, service.Small)}, Deadline: time.Second}
	var err error
	if s.client, err = snapshot.NewClient(settings); err != nil {
		t.Fatal(err)
	}
	s.restartReal()
	return s
}

func (s *realScene) restartReal() {
	s.t.Helper()
	s.renew()
	s.reporter.options.Call = s.client.Call
	s.publishReal()
}

// publishReal gives the placements the state of the service.
func (s *realScene) publishReal() {
	s.t.Helper()
	next, err := s.client.Get(s.t.Context(), nil, true)
	if err != nil {
		s.t.Fatal(err)
	}
	s.placements.OnSnapshot(next)
}

// present returns the names of the pods whose placements the service has and did not release.
func (s *realScene) present() []string {
	s.t.Helper()
	body, err := s.client.Call(s.t.Context(), http.MethodGet, "/v1/commitments?limit=1000", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	var list page
	if err := json.Unmarshal(body, &list); err != nil {
		s.t.Fatal(err)
	}
	var pods []string
	for _, item := range list.Items {
		_, pod := podOf(*item.Reference)
		pods = append(pods, pod)
	}
	slices.Sort(pods)
	return pods
}

func (s *realScene) expectPods(when string, pods ...string) {
	s.t.Helper()
	if present := s.present(); fmt.Sprint(present) != fmt.Sprint(pods) {
		s.t.Errorf("%s: the service has %v, expected %v", when, present, pods)
	}
}

func TestTheRealServiceTakesOverReleasesAndHandsDown(t *testing.T) {
	s := newRealScene(t)
	for _, pod := range []string{"a", "b", "c"} {
		s.place(pod, "r1h2")
	}
	s.place("elsewhere", "unknown")
	s.settle()
	s.expectPods("after the reports", "a", "b", "c")
	if counts := s.reporter.Counts(); counts.Accepted != 3 || counts.Rejected != 1 {
		t.Errorf("%+v", counts)
	}
	s.publishReal()
	if local := s.placements.Len(); local != 1 {
		t.Errorf("%d placements count locally, expected that of the unknown node", local)
	}
	s.end("a")
	s.settle()
	s.expectPods("after an end", "b", "c")

	// The next process releases a pod that ended meanwhile, and keeps the other.
	delete(s.exists, "b")
	s.now = s.now.Add(time.Second)
	s.restartReal()
	s.placements.Add("c", "r1h2", placements.Rates{Egress: 100}, s.now)
	s.place("d", "r2h0")
	s.settle()
	s.expectPods("after a restart", "c", "d")
	s.publishReal()
	if local := s.placements.Len(); local != 0 {
		t.Errorf("%d placements count locally after the takeover", local)
	}
	s.end("c")
	s.settle()
	s.expectPods("after the end of an inherited pod", "d")
}

func TestTheRealServiceCommitsABatchWithoutAnAnswerOnce(t *testing.T) {
	s := newRealScene(t)
	batches := 0
	call := s.client.Call
	s.reporter.options.Call = func(ctx context.Context, method, path string, body []byte) ([]byte, error) {
		answer, err := call(ctx, method, path, body)
		if path == "/v1/commitments/batch" {
			if batches++; batches == 1 {
				return nil, &snapshot.RequestError{Failure: snapshot.Timeout}
			}
		}
		return answer, err
	}
	for i := range 150 {
		s.place(fmt.Sprintf("%03d", i), "r0h0")
	}
	s.settle()
	if present := s.present(); len(present) != 150 || len(slices.Compact(present)) != 150 {
		t.Errorf("the service has %d placements", len(present))
	}
	if batches != 2 {
		t.Errorf("%d batches, expected 2", batches)
	}
}
