package evictor

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"leeward.dev/kubernetes/internal/fake"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/snapshot"
)

// plant is a network whose service estimates loads as the real one does.
type plant struct {
	t         testing.TB
	network   *fake.Network
	estimator ledger.Estimator
	last      *snapshot.Snapshot
}

// newPlant returns a plant. Links are unknown before their first report. Its snapshots have the last windows of links if those
// of the network do.
func newPlant(t testing.TB, network *fake.Network, interval time.Duration, alpha float64) *plant {
	t.Helper()
	estimator, err := ledger.NewEstimator(interval, alpha)
	if err != nil {
		t.Fatal(err)
	}
	for i := range network.Links {
		network.Links[i].Measured, network.Links[i].Latest, network.Links[i].Until = fake.Unknown, fake.Unknown, time.Time{}
	}
	return &plant{t: t, network: network, estimator: estimator}
}

// report passes time in which links have mean loads in bit/s, and reports them.
func (p *plant) report(by time.Duration, load func(link string) float64) {
	p.network.Time = p.network.Time.Add(by)
	p.network.Epoch++
	for i := range p.network.Links {
		link := &p.network.Links[i]
		value := load(link.Name)
		if math.IsNaN(value) {
			continue
		}
		if link.Measured == fake.Unknown {
			link.Measured = int64(value)
		} else {
			weight := p.estimator.Weight(int64(p.network.Time.Sub(link.Until)))
			link.Measured = int64(math.Round((1-weight)*float64(link.Measured) + weight*value))
		}
		link.Latest, link.From, link.Until = int64(value), p.network.Time.Add(-by), p.network.Time
	}
}

// restart replaces the service by a new process, whose first report of a link is its estimate.
func (p *plant) restart() {
	for i := range p.network.Links {
		p.network.Links[i].Measured = fake.Unknown
	}
	p.last = nil
}

// snapshot returns the state as the service publishes it: whole for the first time, and as a difference from then on.
func (p *plant) snapshot() *snapshot.Snapshot {
	p.t.Helper()
	body := p.network.Whole
	if p.last != nil {
		body = func() []byte { return p.network.Difference(p.last.ID()) }
	}
	next, err := snapshot.Read(body(), p.last, p.network.Time)
	if err != nil {
		p.t.Fatal(err)
	}
	p.last = next
	return next
}

// short are settings of short windows.
func short() Settings {
	s := DefaultSettings()
	s.Window, s.HotWindows, s.Lasts = 10*time.Second, 2, time.Minute
	return s
}

func steady(bps float64) func(string) float64 { return func(string) float64 { return bps } }

// both calls a test for a network whose snapshots have the last windows of links, and for one whose snapshots lack them.
func both(t *testing.T, test func(t *testing.T, tree func(pods, racks, hosts int) *fake.Network)) {
	for _, has := range []bool{true, false} {
		t.Run(map[bool]string{true: "windows", false: "estimates"}[has], func(t *testing.T) {
			test(t, func(pods, racks, hosts int) *fake.Network {
				network := fake.Tree(pods, racks, hosts)
				network.Windows = has
				return network
			})
		})
	}
}

func TestTheMeanOfAWindowIsThatOfItsReports(t *testing.T) { both(t, testMeans) }

func testMeans(t *testing.T, tree func(pods, racks, hosts int) *fake.Network) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		alpha := 0.05 + 0.95*r.Float64()
		p := newPlant(t, tree(1, 2, 1), time.Second, alpha)
		windows := NewWindows(p.estimator, short())
		// The first snapshot is in the middle of a window, which is known by the reports after it.
		p.report(11*time.Second, steady(40e9*r.Float64()))
		windows.TakeIn(p.snapshot())
		loads := map[int64][]float64{}
		for range 200 {
			load := 40e9 * r.Float64()
			p.report(time.Second, steady(load))
			number := (p.network.Time.UnixNano() - 1) / int64(10*time.Second)
			loads[number] = append(loads[number], load)
			if !windows.TakeIn(p.snapshot()) {
				continue
			}
			closed := loads[windows.Start().UnixNano()/int64(10*time.Second)]
			if len(closed) < 10 {
				continue
			}
			expected := 0.0
			for _, load := range closed {
				expected += load / float64(len(closed))
			}
			// A rounding of an estimate by half a bit per second counts 1 / alpha times.
			if mean, _ := windows.Mean("r0:uplink"); math.Abs(mean-expected) > 2/alpha {
				t.Fatalf("alpha %v: window %v: %v, expected %v", alpha, windows.Start(), mean, expected)
			}
		}
	}
}

func TestAWindowFollowsAFallAtOnceAndTheEstimateDoesNot(t *testing.T) { both(t, testFall) }

func testFall(t *testing.T, tree func(pods, racks, hosts int) *fake.Network) {
	p := newPlant(t, tree(0, 2, 1), 10*time.Second, 0.2)
	windows := NewWindows(p.estimator, short())
	windows.TakeIn(p.snapshot())
	for range 20 {
		p.report(10*time.Second, steady(36e9))
		windows.TakeIn(p.snapshot())
	}
	if mean, hot := windows.Mean("r0:uplink"); math.Abs(mean-36e9) > 10 || hot < 10 {
		t.Fatalf("mean %v, %d hot windows", mean, hot)
	}
	for range 3 {
		// The first report of the lower load closes its window two intervals later.
		p.report(10*time.Second, steady(4e9))
		windows.TakeIn(p.snapshot())
	}
	mean, hot := windows.Mean("r0:uplink")
	if math.Abs(mean-4e9) > 10 || hot != 0 {
		t.Errorf("mean %v, %d hot windows", mean, hot)
	}
	if estimate := p.network.Link("r0:uplink").Measured; estimate < 18e9 {
		t.Errorf("the estimate fell to %d", estimate)
	}
}

func TestTheFirstWindowAfterARestartIsNotTheEstimate(t *testing.T) { both(t, testFirstWindow) }

func testFirstWindow(t *testing.T, tree func(pods, racks, hosts int) *fake.Network) {
	p := newPlant(t, tree(0, 2, 1), 10*time.Second, 0.2)
	for range 20 {
		p.report(10*time.Second, steady(40e9))
	}
	p.report(10*time.Second, steady(4e9))
	if estimate := p.network.Link("r0:uplink").Measured; estimate < 30e9 {
		t.Fatalf("the estimate fell to %d", estimate)
	}
	windows := NewWindows(p.estimator, short())
	known := 0
	for range 10 {
		if windows.TakeIn(p.snapshot()) {
			mean, hot := windows.Mean("r0:uplink")
			if hot != 0 || mean > 4e9+10 {
				t.Fatalf("mean %v, %d hot windows", mean, hot)
			}
			if !math.IsNaN(mean) {
				known++
			}
		}
		p.report(10*time.Second, steady(4e9))
	}
	if known < 6 {
		t.Errorf("%d known windows", known)
	}
	if windows.Inverts() == p.network.Windows {
		t.Errorf("inverts: %v", windows.Inverts())
	}
}

func TestTheFirstReportToANewProcessOfTheServiceIsNoChangeOfItsEstimate(t *testing.T) {
	both(t, testNewProcess)
}

func testNewProcess(t *testing.T, tree func(pods, racks, hosts int) *fake.Network) {
	p := newPlant(t, tree(0, 2, 1), 10*time.Second, 0.2)
	windows := NewWindows(p.estimator, short())
	for number := range 40 {
		if number == 20 {
			p.restart()
		}
		load := 4e9
		if number >= 20 {
			load = 12e9
		}
		p.report(10*time.Second, steady(load))
		// The estimate rises by 8 Gb/s at once. By its weight that would be a report of 44 Gb/s.
		if windows.TakeIn(p.snapshot()) {
			if mean, hot := windows.Mean("r0:uplink"); hot != 0 || mean > 12e9+10 {
				t.Fatalf("after %d reports: mean %v, %d hot windows", number, mean, hot)
			}
		}
	}
	if mean, _ := windows.Mean("r0:uplink"); math.Abs(mean-12e9) > 10 {
		t.Errorf("mean %v", mean)
	}
}

func TestReportsThatNoSnapshotShowsCountAsTheNextOne(t *testing.T) {
	network := fake.Tree(0, 2, 1)
	network.Windows = true
	p := newPlant(t, network, time.Second, 0.2)
	windows := NewWindows(p.estimator, short())
	for number := range 20 {
		for range 5 {
			p.report(time.Second, steady(36e9))
		}
		windows.TakeIn(p.snapshot())
		if mean, _ := windows.Mean("r0:uplink"); number > 4 && mean != 36e9 {
			t.Fatalf("snapshot %d: mean %v", number, mean)
		}
	}
	for range 20 {
		// Of a silent link, the snapshots in between show that nothing was reported.
		for range 9 {
			p.report(time.Second, steady(math.NaN()))
			windows.TakeIn(p.snapshot())
		}
		p.report(time.Second, steady(36e9))
		windows.TakeIn(p.snapshot())
	}
	if mean, hot := windows.Mean("r0:uplink"); !math.IsNaN(mean) || hot != 0 {
		t.Errorf("silent for nine of ten reports: mean %v, %d hot windows", mean, hot)
	}
}

func TestSeveralReportsBetweenTwoSnapshotsAreOneMean(t *testing.T) { both(t, testSeveralReports) }

func testSeveralReports(t *testing.T, tree func(pods, racks, hosts int) *fake.Network) {
	p := newPlant(t, tree(0, 2, 1), time.Second, 0.2)
	windows := NewWindows(p.estimator, short())
	windows.TakeIn(p.snapshot())
	for range 60 {
		for range 3 {
			p.report(time.Second, steady(36e9))
		}
		windows.TakeIn(p.snapshot())
	}
	if mean, hot := windows.Mean("r1:downlink"); math.Abs(mean-36e9) > 20 || hot < 10 {
		t.Errorf("mean %v, %d hot windows", mean, hot)
	}
}

func TestAWindowThatReportsCoverByLessThanHalfIsUnknownAndEndsTheStreak(t *testing.T) {
	both(t, testCover)
}

func testCover(t *testing.T, tree func(pods, racks, hosts int) *fake.Network) {
	p := newPlant(t, tree(0, 2, 1), time.Second, 0.2)
	windows := NewWindows(p.estimator, short())
	windows.TakeIn(p.snapshot())
	advance := func(reports int) {
		for i := range 10 {
			load := steady(36e9)
			if i >= reports {
				load = steady(math.NaN())
			}
			p.report(time.Second, load)
			windows.TakeIn(p.snapshot())
		}
	}
	for range 5 {
		advance(10)
	}
	if _, hot := windows.Mean("r0:uplink"); hot < 3 {
		t.Fatalf("%d hot windows", hot)
	}
	advance(3)
	advance(3)
	if mean, hot := windows.Mean("r0:uplink"); !math.IsNaN(mean) || hot != 0 {
		t.Errorf("mean %v, %d hot windows", mean, hot)
	}
}

func TestAServiceThatWasAwayOrSetBackStartsAgain(t *testing.T) {
	for name, by := range map[string]time.Duration{"away": 500 * time.Hour, "set back": -time.Hour} {
		p := newPlant(t, fake.Tree(0, 2, 1), time.Second, 0.2)
		windows := NewWindows(p.estimator, short())
		windows.TakeIn(p.snapshot())
		for range 50 {
			p.report(time.Second, steady(36e9))
			windows.TakeIn(p.snapshot())
		}
		p.network.Time = p.network.Time.Add(by)
		p.network.Epoch++
		windows.TakeIn(p.snapshot())
		if _, hot := windows.Mean("r0:uplink"); hot != 0 {
			t.Errorf("%s: %d hot windows", name, hot)
		}
		if link := windows.links["r0:uplink"]; link != nil && len(link.open) > 4 {
			t.Errorf("%s: %d open windows", name, len(link.open))
		}
	}
}

func TestLinksOfAnotherClusterAreForgotten(t *testing.T) {
	p := newPlant(t, fake.Tree(0, 3, 1), time.Second, 0.2)
	windows := NewWindows(p.estimator, short())
	p.report(time.Second, steady(1))
	windows.TakeIn(p.snapshot())
	other := fake.Tree(0, 1, 1)
	other.Version, other.Time = "2", p.network.Time.Add(time.Second)
	p.network = other
	windows.TakeIn(p.snapshot())
	if mean, _ := windows.Mean("r2:uplink"); !math.IsNaN(mean) || len(windows.links) != 2 {
		t.Errorf("%d links, mean %v", len(windows.links), mean)
	}
}
