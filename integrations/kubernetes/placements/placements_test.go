package placements

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"leeward.dev/kubernetes/internal/fake"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/snapshot"
)

const client = "scheduler"

// scene is a network with placements. Its local clock is that of the controller.
type scene struct {
	t          testing.TB
	network    *fake.Network
	placements *Placements
	last       *snapshot.Snapshot
}

func newScene(t testing.TB) *scene {
	t.Helper()
	estimator, err := ledger.NewEstimator(time.Second, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(client, estimator, DefaultLasts)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, network: fake.Tree(2, 2, 3), placements: p}
	s.publish()
	return s
}

func (s *scene) now() time.Time { return s.network.Time }

// publish gives the placements a snapshot of the network as it is.
func (s *scene) publish() {
	s.t.Helper()
	body := s.network.Whole()
	next, err := snapshot.Read(body, s.last, s.now())
	if err != nil {
		s.t.Fatal(err)
	}
	s.last = next
	s.placements.OnSnapshot(next)
}

// tick passes a second in which every link reports.
func (s *scene) tick() {
	s.t.Helper()
	s.network.Advance(time.Second)
	s.publish()
}

func (s *scene) load(link string) float64 {
	view := s.placements.View()
	return view.Load(view.Snapshot().Names().Link(link))
}

func (s *scene) expect(when string, loads map[string]float64) {
	s.t.Helper()
	for link, expected := range loads {
		if load := s.load(link); math.Abs(load-expected) > 1 {
			s.t.Errorf("%s: %s has %v, expected %v", when, link, load, expected)
		}
	}
}

func TestAPlacementCountsOnTheLinksOfItsNodeAtOnce(t *testing.T) {
	s := newScene(t)
	s.placements.Add("a", "r3h1", Rates{Egress: 300, Ingress: 70}, s.now())
	s.expect("after a placement", map[string]float64{
		"r3h1:egress": 300, "r3:uplink": 300, "p1:uplink": 300,
		"r3h1:ingress": 70, "r3:downlink": 70, "p1:downlink": 70,
		"r3h0:egress": 0, "r2:uplink": 0, "p0:uplink": 0,
	})
	s.placements.Remove("a")
	s.expect("after its removal", map[string]float64{"r3h1:egress": 0, "r3:uplink": 0, "p1:downlink": 0})
	if s.placements.Len() != 0 {
		t.Errorf("%d placements", s.placements.Len())
	}
}

func TestASecondPlacementOfAPodMovesIt(t *testing.T) {
	s := newScene(t)
	s.placements.Add("a", "r0h0", Rates{Egress: 300}, s.now())
	s.placements.Add("a", "r1h0", Rates{Egress: 200}, s.now())
	s.expect("after both", map[string]float64{"r0:uplink": 0, "r1:uplink": 200})
	if s.placements.Len() != 1 {
		t.Errorf("%d placements", s.placements.Len())
	}
}

func TestAPlacementLeavesWithTheSnapshotThatCountsIt(t *testing.T) {
	s := newScene(t)
	s.placements.Add("a", "r0h0", Rates{Egress: 300}, s.now())
	s.placements.Add("b", "r0h1", Rates{Egress: 50}, s.now())
	s.placements.Reported("a", 17)
	s.placements.Reported("b", 18)
	s.network.Clients[client] = 16
	s.publish()
	s.expect("counted to 16", map[string]float64{"r0:uplink": 350})
	s.network.Clients[client] = 17
	s.network.Link("r0:uplink").Pending = 300
	s.publish()
	s.expect("counted to 17", map[string]float64{"r0:uplink": 350, "r0h0:egress": 0, "r0h1:egress": 50})
	if s.placements.Len() != 1 {
		t.Errorf("%d placements", s.placements.Len())
	}
}

func TestARejectedReportIsNotTakenAsCountedLater(t *testing.T) {
	s := newScene(t)
	s.placements.Add("a", "r0h0", Rates{Egress: 300}, s.now())
	s.placements.Reported("a", 17)
	s.placements.NotReported("a")
	s.network.Clients[client] = 99
	s.publish()
	s.expect("after a later report", map[string]float64{"r0:uplink": 300})
}

func TestAnUnreportedPlacementFadesAsTelemetryShowsIt(t *testing.T) {
	s := newScene(t)
	s.network.Link("r0:uplink").Measured = 5000
	s.publish()
	s.placements.Add("a", "r0h0", Rates{Egress: 100_000}, s.now())
	for range 5 {
		s.tick()
		s.expect("before the start", map[string]float64{"r0:uplink": 105_000})
	}
	s.placements.Start("a", s.now())
	measured := 5000.0
	for range 60 {
		// The estimator of the controller takes in the real load, window by window.
		measured += 0.2 * (105_000 - measured)
		s.network.Link("r0:uplink").Measured = int64(measured)
		s.tick()
		if load := s.load("r0:uplink"); math.Abs(load-105_000) > 102 {
			t.Fatalf("load %v", load)
		}
	}
	if s.placements.Len() != 0 {
		t.Errorf("%d placements still count", s.placements.Len())
	}
}

func TestSeveralWindowsBetweenTwoSnapshotsFadeAsOneByOne(t *testing.T) {
	s, slow := newScene(t), newScene(t)
	for _, s := range []*scene{s, slow} {
		s.placements.Add("a", "r0h0", Rates{Egress: 1_000_000}, s.now())
		s.network.Advance(300 * time.Millisecond)
		s.publish()
		s.placements.Start("a", s.now().Add(-100*time.Millisecond))
	}
	for range 4 {
		s.tick()
	}
	slow.network.Advance(4 * time.Second)
	slow.publish()
	if a, b := s.load("r0:uplink"), slow.load("r0:uplink"); math.Abs(a-b) > 2 || a > 500_000 {
		t.Errorf("%v and %v", a, b)
	}
}

func TestAPodThatLeavesCountsLessUntilTelemetryShowsIt(t *testing.T) {
	s := newScene(t)
	s.network.Link("r0:uplink").Measured = 900_000
	s.publish()
	s.placements.Leave("a", "r0h0", Rates{Egress: 200_000}, s.now())
	s.expect("at once", map[string]float64{"r0:uplink": 700_000})
	measured := 900_000.0
	for range 60 {
		measured += 0.2 * (700_000 - measured)
		s.network.Link("r0:uplink").Measured = int64(measured)
		s.tick()
		if load := s.load("r0:uplink"); math.Abs(load-700_000) > 202 {
			t.Fatalf("load %v", load)
		}
	}
	if s.placements.Len() != 0 {
		t.Errorf("%d placements still count", s.placements.Len())
	}
}

func TestNoMoreLeavesThanIsMeasured(t *testing.T) {
	s := newScene(t)
	s.network.Link("r0:uplink").Measured = 1000
	s.publish()
	s.placements.Leave("a", "r0h0", Rates{Egress: 5000}, s.now())
	s.placements.Add("b", "r0h1", Rates{Egress: 70}, s.now())
	s.expect("after both", map[string]float64{"r0:uplink": 70})
}

func TestAPodThatNeverStartedLeavesWithoutATrace(t *testing.T) {
	s := newScene(t)
	s.network.Link("r0:uplink").Measured = 1000
	s.publish()
	s.placements.Add("a", "r0h0", Rates{Egress: 500}, s.now())
	s.placements.Leave("a", "r0h0", Rates{Egress: 500}, s.now())
	s.expect("after both", map[string]float64{"r0:uplink": 1000})
}

func TestAPlacementThatNothingShowsEndsByItself(t *testing.T) {
	s := newScene(t)
	s.placements.Add("a", "r0h0", Rates{Egress: 500}, s.now())
	s.network.Time = s.network.Time.Add(DefaultLasts)
	s.publish()
	s.expect("at the end", map[string]float64{"r0:uplink": 500})
	s.network.Time = s.network.Time.Add(time.Second)
	s.publish()
	s.expect("after the end", map[string]float64{"r0:uplink": 0})
}

func TestAClockThatIsSetBackHoldsNoPlacementForEver(t *testing.T) {
	s := newScene(t)
	s.placements.Add("a", "r0h0", Rates{Egress: 500}, s.now())
	s.network.Time = s.network.Time.Add(-24 * time.Hour)
	s.publish()
	if s.placements.Len() != 0 {
		t.Errorf("%d placements", s.placements.Len())
	}
}

func TestPlacementsFollowTheirNodesIntoAnotherCluster(t *testing.T) {
	s := newScene(t)
	s.placements.Add("a", "r0h0", Rates{Egress: 500}, s.now())
	s.placements.Add("b", "r3h0", Rates{Egress: 40}, s.now())
	s.network = fake.Tree(0, 3, 4)
	s.publish()
	s.expect("in a cluster without the rack of b", map[string]float64{"r0:uplink": 500, "r1:uplink": 0, "r2:uplink": 0})
	s.network = fake.Tree(2, 2, 3)
	s.publish()
	s.expect("in the first cluster again", map[string]float64{"r0:uplink": 500, "r3:uplink": 40, "p1:uplink": 40})
}

func TestPlacementsBeforeTheFirstSnapshotCountWithIt(t *testing.T) {
	s := newScene(t)
	estimator, _ := ledger.NewEstimator(time.Second, 0.2)
	s.placements, _ = New(client, estimator, DefaultLasts)
	s.placements.Add("a", "r0h0", Rates{Egress: 500}, s.now())
	s.placements.Add("b", "r0h0", Rates{Egress: 20}, s.now())
	s.placements.Remove("b")
	if s.placements.View() != nil {
		t.Fatal("a view without a snapshot")
	}
	s.publish()
	s.expect("with the first snapshot", map[string]float64{"r0:uplink": 500})
}

func TestANodeThatTheControllerDoesNotKnowCountsNowhere(t *testing.T) {
	s := newScene(t)
	s.placements.Add("a", "elsewhere", Rates{Egress: 500, Ingress: 500}, s.now())
	s.tick()
	for _, link := range s.network.Links {
		s.expect("after the placement", map[string]float64{link.Name: 0})
	}
}

func TestAbsurdRatesAreBounded(t *testing.T) {
	s := newScene(t)
	for pod := range 100 {
		s.placements.Add(fmt.Sprint(pod), "r0h0", Rates{Egress: math.MaxInt64, Ingress: math.MinInt64}, s.now())
	}
	s.expect("after them", map[string]float64{"r0:uplink": 100 * float64(ledger.MaxRate), "r0:downlink": 0})
}

func TestTooManyPlacementsLeaveEarlyTheOldestFirst(t *testing.T) {
	s := newScene(t)
	for pod := range Most + 10 {
		s.placements.Add(fmt.Sprint(pod), "r0h0", Rates{Egress: 1}, s.now())
	}
	s.publish()
	if s.placements.Len() != Most || s.placements.EarlyCount() != 10 {
		t.Errorf("%d placements, %d left early", s.placements.Len(), s.placements.EarlyCount())
	}
	s.expect("after the snapshot", map[string]float64{"r0:uplink": Most})
	s.placements.Remove("3")
	s.expect("after the removal of one that left", map[string]float64{"r0:uplink": Most})
	for pod := range 3 * Most {
		s.placements.Add(fmt.Sprint("x", pod), "r1h0", Rates{Egress: 1}, s.now())
	}
	if length := s.placements.Len(); length > 2*Most {
		t.Errorf("%d placements without a snapshot", length)
	}
}

func TestInvalidLifetimesAreRejected(t *testing.T) {
	estimator, _ := ledger.NewEstimator(time.Second, 0.2)
	for _, lasts := range []time.Duration{0, -1, time.Second, 2 * time.Hour} {
		if _, err := New(client, estimator, lasts); err == nil {
			t.Errorf("%v is accepted", lasts)
		}
	}
}

// TestEveryPlacementCountsExactlyOnce runs random schedulers and controllers. Whatever the order of reports, rejections and
// snapshots, the view has every placed rate once: by the snapshot, or by the placements.
func TestEveryPlacementCountsExactlyOnce(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 0))
		s := newScene(t)
		truth, inFlight, counted := map[string]int64{}, []string{}, int64(0)
		rates, sequences, next := map[string]int64{}, map[string]int64{}, int64(0)
		nodes := map[string]string{}
		for step := range 200 {
			pod := fmt.Sprint(step)
			switch random.IntN(4) {
			case 0:
				nodes[pod] = fmt.Sprintf("r%dh%d", random.IntN(4), random.IntN(3))
				rates[pod] = random.Int64N(1e6)
				truth["r"+nodes[pod][1:2]] += rates[pod]
				s.placements.Add(pod, nodes[pod], Rates{Egress: rates[pod]}, s.now())
				inFlight = append(inFlight, pod)
			case 1:
				if len(inFlight) > 0 {
					// A report: the number is set first, and the controller accepts or rejects it.
					sent := inFlight[0]
					inFlight = inFlight[1:]
					next++
					sequences[sent] = next
					s.placements.Reported(sent, next)
					if random.IntN(3) == 0 {
						s.placements.NotReported(sent)
					} else {
						counted = next
						rack := s.network.Link("r" + nodes[sent][1:2] + ":uplink")
						rack.Pending += rates[sent]
					}
				}
			case 2:
				s.network.Time = s.network.Time.Add(10 * time.Millisecond)
				s.network.Clients[client] = counted
				s.publish()
			case 3:
				if len(inFlight) > 0 {
					gone := inFlight[len(inFlight)-1]
					inFlight = inFlight[:len(inFlight)-1]
					s.placements.Remove(gone)
					truth["r"+nodes[gone][1:2]] -= rates[gone]
				}
			}
		}
		s.network.Clients[client] = counted
		s.publish()
		for rack, rate := range truth {
			s.expect(fmt.Sprint("seed ", seed), map[string]float64{rack + ":uplink": float64(rate)})
		}
	}
}

func TestManyGoroutinesLeaveNothingBehind(t *testing.T) {
	s := newScene(t)
	var work sync.WaitGroup
	for worker := range 8 {
		work.Go(func() {
			for step := range 100 {
				pod := fmt.Sprint(worker, "-", step)
				s.placements.Add(pod, fmt.Sprintf("r%dh%d", step%4, step%3), Rates{Egress: 1000, Ingress: 10}, fake.Start)
				s.placements.View().Load(int32(step % 20))
				switch step % 3 {
				case 0:
					s.placements.Start(pod, fake.Start)
				case 1:
					s.placements.Reported(pod, int64(step))
				}
				s.placements.Remove(pod)
			}
		})
	}
	work.Go(func() {
		for range 30 {
			s.tick()
		}
	})
	work.Wait()
	for _, link := range s.network.Links {
		s.expect("at the end", map[string]float64{link.Name: 0})
	}
}

func TestAReaderNeverSeesAPlacementTwiceOrNotAtAllAsItIsCounted(t *testing.T) {
	s := newScene(t)
	done := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				runtime.Gosched()
				if load := s.load("r0:uplink"); load != 0 && load != 500 {
					t.Errorf("load %v", load)
					return
				}
			}
		}
	})
	for step := range int64(100) {
		s.placements.Add("a", "r0h0", Rates{Egress: 500}, s.now())
		s.placements.Reported("a", step)
		s.network.Clients[client], s.network.Link("r0:uplink").Pending = step, 500
		s.publish()
		// The pod ends, and the controller learns so.
		s.network.Link("r0:uplink").Pending = 0
		s.publish()
	}
	close(done)
	work.Wait()
}

func BenchmarkASnapshotBesideTwoThousandPlacements(b *testing.B) {
	s := newScene(b)
	s.network = fake.Tree(10, 20, 25)
	s.publish()
	for pod := range 2000 {
		s.placements.Add(fmt.Sprint(pod), s.network.Hosts[pod*2].Name, Rates{Egress: 1e9, Ingress: 1e9}, s.now())
		s.placements.Start(fmt.Sprint(pod), s.now())
	}
	for b.Loop() {
		s.placements.OnSnapshot(s.last)
	}
}
