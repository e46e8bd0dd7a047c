package integration

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"leeward.dev/kubernetes/internal/fake"
)

// interval is the time between two reports of all links.
const interval = 100 * time.Millisecond

// hot makes the uplinks of the first racks 90 % full.
func hot(count int) func(*fake.Network) {
	return func(network *fake.Network) {
		for rack := range count {
			network.Link(fmt.Sprintf("r%d:uplink", rack)).Measured = 36e9
		}
	}
}

// expectCold checks that no pod is in a hot rack, and that no rack has more than twice the average of the cold ones.
func (s *scene) expectCold(hotRacks int) {
	s.t.Helper()
	count := s.inRacks()
	average := float64(s.pods) / float64(racks-hotRacks)
	for rack := range racks {
		name := fmt.Sprintf("r%d", rack)
		switch {
		case rack < hotRacks && count[name] > 0:
			s.t.Errorf("hot rack %s has %d pods", name, count[name])
		case float64(count[name]) > 2*average:
			s.t.Errorf("rack %s has %d pods, the average is %.0f", name, count[name], average)
		}
	}
}

func TestHotRacksAreAvoidedAndNoColdOneIsHerdedTo(t *testing.T) {
	s := newScene(t, interval, hot(5))
	stop := s.start(nil)
	s.place("stock", many(1000), "100M")
	stop()
	inHot := 0
	for rack := range 5 {
		inHot += s.inRacks()[fmt.Sprintf("r%d", rack)]
	}
	if inHot < many(50) {
		t.Fatalf("the scheduler as it is puts %d of %d pods into hot racks: the test shows nothing", inHot, many(1000))
	}
	if err := plane.DeletePods(t.Context()); err != nil {
		t.Fatal(err)
	}
	ours := newScene(t, interval, hot(5))
	ours.start(ours.args)
	ours.place("ours", many(1000), "100M")
	ours.expectCold(5)
	eventually(t, "the service does not have all placements", func() bool { return len(ours.service.Present()) == many(1000) })
}

// All pods come between two snapshots, so only their own placements can keep them from the one rack that looks best.
func TestTheColdestRackGetsNoMoreThanItsShare(t *testing.T) {
	beyondShort(t)
	s := newScene(t, interval, func(network *fake.Network) {
		for rack := range racks - 1 {
			network.Link(fmt.Sprintf("r%d:uplink", rack)).Measured = 12e9
		}
	})
	s.nodesToScore = 100
	s.args.Interval, s.args.MaxAge = metav1.Duration{Duration: time.Minute}, metav1.Duration{Duration: 10 * time.Minute}
	s.start(s.args)
	s.place("burst", 400, "100M")
	// With 120 pods of 100 Mb/s, its uplink is as full as the others.
	if coldest := s.inRacks()["r24"]; coldest < 60 || coldest > 180 {
		t.Errorf("the coldest rack has %d pods, expected about 120", coldest)
	}
}

func TestSchedulingContinuesWithoutTheService(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request) bool
	}{
		{"slow", hangs},
		{"unavailable", says(http.StatusServiceUnavailable, `{"type": "unavailable"}`)},
		{"lying", says(http.StatusOK, `{"id": "x", "links": {"link": ["r0:uplink"], "capacity_bps": [-5]}}`)},
		{"endless", says(http.StatusOK, strings.Repeat("[", 1<<20))},
		{"results", says(http.StatusOK, `{"results": [], "items": [{"id": 7}]}`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			onlyWithShort(t, c.name, "lying")
			s := newScene(t, interval, hot(0))
			s.args.Deadline, s.args.MaxAge = metav1.Duration{Duration: 200 * time.Millisecond}, metav1.Duration{Duration: 3 * time.Second}
			s.service.Intercept(c.answer)
			before := metric(t, "leeward_pods_total", "no_snapshot")
			s.start(s.args)
			s.place(c.name, 200, "100M")
			if skipped := metric(t, "leeward_pods_total", "no_snapshot") - before; skipped < 200 {
				t.Errorf("%v pods were placed without the network", skipped)
			}
			s.service.Intercept(nil)
			eventually(t, "the scheduler does not return to the service", func() bool {
				return metric(t, "leeward_snapshots_total", "whole") > 0
			})
			ranked := metric(t, "leeward_pods_total", "ranked")
			s.place(c.name+"-later", 50, "100M")
			if ranked := metric(t, "leeward_pods_total", "ranked") - ranked; ranked < 50 {
				t.Errorf("%v pods were ranked after the service came back", ranked)
			}
		})
	}
}

func TestAServiceThatGoesAwayStopsCountingAndNothingElse(t *testing.T) {
	beyondShort(t)
	s := newScene(t, interval, hot(5))
	s.args.Deadline, s.args.MaxAge = metav1.Duration{Duration: 200 * time.Millisecond}, metav1.Duration{Duration: 3 * time.Second}
	s.start(s.args)
	s.place("before", 100, "100M")
	s.expectCold(5)
	s.service.Intercept(func(writer http.ResponseWriter, _ *http.Request) bool {
		panic(http.ErrAbortHandler)
	})
	time.Sleep(4 * time.Second)
	before := metric(t, "leeward_pods_total", "stale")
	s.place("after", 200, "100M")
	if stale := metric(t, "leeward_pods_total", "stale") - before; stale < 200 {
		t.Errorf("%v pods were placed without the network", stale)
	}
	eventually(t, "not one event says that the network does not count", func() bool {
		return len(s.events("NetworkUnavailable", "after-")) == 1
	})
}

func TestAfterARestartTheSchedulerCountsItsPods(t *testing.T) {
	s := newScene(t, interval, func(network *fake.Network) {
		for rack := range racks - 1 {
			network.Link(fmt.Sprintf("r%d:uplink", rack)).Measured = 12e9
		}
	})
	s.nodesToScore = 100
	// Nobody else knows of the placements: they are not reported, and no kubelet starts the pods.
	s.args.Report = new(bool)
	stop := s.start(s.args)
	s.place("before", 200, "100M")
	coldest := s.inRacks()["r24"]
	if coldest < 60 {
		t.Fatalf("the coldest rack has %d pods: the test shows nothing", coldest)
	}
	stop()
	s.start(s.args)
	eventually(t, "the pods do not count", func() bool { return metric(t, "leeward_placements", "") == 200 })
	s.place("after", 200, "100M")
	// A scheduler that had forgotten its pods would fill the coldest rack with all of them.
	if coldest := s.inRacks()["r24"]; coldest > 190 {
		t.Errorf("the coldest rack has %d of 400 pods, expected about 120", coldest)
	}
}

func TestPodsThatEndWhileNoSchedulerRunsAreReleased(t *testing.T) {
	s := newScene(t, interval, hot(0))
	stop := s.start(s.args)
	s.place("gone", 40, "100M")
	s.place("stays", 20, "100M")
	eventually(t, "the service does not have all placements", func() bool { return len(s.service.Present()) == 60 })
	stop()
	for i := range 40 {
		name := fmt.Sprintf("gone-%d", i)
		if err := plane.Client.CoreV1().Pods(metav1.NamespaceDefault).Delete(
			t.Context(), name, *metav1.NewDeleteOptions(0)); err != nil {
			t.Fatal(err)
		}
	}
	s.start(s.args)
	s.place("new", 1, "100M")
	eventually(t, "the ended pods were not released", func() bool { return len(s.service.Present()) == 21 })
}

func TestStartedPodsFadeAndDeletedOnesAreReleased(t *testing.T) {
	s := newScene(t, interval, hot(0))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := plane.StartKubelet(ctx); err != nil {
		t.Fatal(err)
	}
	s.start(s.args)
	s.place("work", 100, "100M")
	eventually(t, "the service does not have all placements", func() bool { return len(s.service.Present()) == 100 })
	eventually(t, "placements count beside those of the service", func() bool { return metric(t, "leeward_placements", "") == 0 })
	if err := plane.Client.CoreV1().Pods(metav1.NamespaceDefault).DeleteCollection(
		t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the placements of deleted pods remain", func() bool { return len(s.service.Present()) == 0 })
}
