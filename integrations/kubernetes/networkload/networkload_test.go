package networkload

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/legacyregistry"

	"leeward.dev/kubernetes/arguments"
	"leeward.dev/kubernetes/demand"
	network "leeward.dev/kubernetes/internal/fake"
	"leeward.dev/kubernetes/ledger"
)

// metric returns the value of a metric of this process whose labels have a value, or the only one if it is empty.
func metric(t testing.TB, name, label string) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, each := range family.GetMetric() {
			if label == "" || each.GetLabel()[0].GetValue() == label {
				return each.GetCounter().GetValue() + each.GetGauge().GetValue()
			}
		}
	}
	return 0
}

func TestNodesOfHotRacksHaveLowScores(t *testing.T) {
	s := newScene(t, nil)
	s.service.Change(func(n *network.Network) {
		n.Link("r1:uplink").Measured = 36e9
		n.Link("r2:downlink").Measured = 20e9
		n.Link("r3h0:egress").Measured = 5e9
	})
	s.eventually("no load", func() bool {
		return s.plugin.tracker.placements.View() != nil && s.load("r3h0:egress") == 5e9
	})
	scores, status := s.scores(podOf("a", "1G"), "r0h0", "r1h0", "r2h0", "r3h0", "r3h1")
	if status != nil {
		t.Fatal(status)
	}
	// The pod takes 10 % of its node's link, and 2.5 % of that of its rack.
	expected := map[string]int64{"r0h0": 90, "r1h0": 7, "r2h0": 50, "r3h0": 40, "r3h1": 90}
	if fmt.Sprint(scores) != fmt.Sprint(expected) {
		t.Errorf("%v, expected %v", scores, expected)
	}
	if s.plugin.ScoreExtensions() != nil {
		t.Error("scores are absolute")
	}
}

func TestEveryReservedPodChangesTheNextScores(t *testing.T) {
	s := newScene(t, nil)
	s.ready()
	for i := range 8 {
		s.reserve(podOf(fmt.Sprint(i), "2G"), fmt.Sprintf("r0h%d", i%2))
	}
	scores, _ := s.scores(podOf("next", "2G"), "r0h0", "r1h0")
	if scores["r0h0"] != 0 || scores["r1h0"] != 80 {
		t.Errorf("%v", scores)
	}
	for i := range 8 {
		s.plugin.Unreserve(t.Context(), newState(), podOf(fmt.Sprint(i), "2G"), fmt.Sprintf("r0h%d", i%2))
	}
	s.eventually("the pods still count", func() bool { return s.load("r0:uplink") == 0 })
	// A second Unreserve, and one without Reserve, change nothing.
	s.plugin.Unreserve(t.Context(), newState(), podOf("0", "2G"), "r0h0")
	if load := s.load("r0:uplink"); load != 0 {
		t.Errorf("load %v", load)
	}
}

func TestTheServiceTakesOverReservedPodsWithoutAJump(t *testing.T) {
	s := newScene(t, nil)
	s.ready()
	s.reserve(podOf("a", "2G"), "r0h0")
	for s.plugin.tracker.placements.Len() > 0 {
		if load := s.load("r0:uplink"); load != 2e9 {
			t.Fatalf("load %v", load)
		}
		time.Sleep(time.Millisecond)
	}
	present := s.service.Present()
	if len(present) != 1 || present[0].Host != "r0h0" || present[0].Egress != 2e9 || present[0].Client != DefaultClient {
		t.Fatalf("%+v", present)
	}
	s.plugin.tracker.onEnd(bound(podOf("a", "2G"), "r0h0"))
	s.eventually("the service was not told", func() bool { return len(s.service.Present()) == 0 })
}

func TestAPodWithoutDemandIsPlacedWithoutTheNetwork(t *testing.T) {
	s := newScene(t, nil)
	s.ready()
	before := metric(t, "leeward_pods_total", "unknown_demand")
	if _, status := s.scores(podOf("a", ""), "r0h0", "r1h0"); !status.IsSkip() {
		t.Errorf("%v", status)
	}
	s.reserve(podOf("a", ""), "r0h0")
	if metric(t, "leeward_pods_total", "unknown_demand") != before+1 {
		t.Error("the metric does not count the pod")
	}
	if s.plugin.tracker.placements.Len() != 0 || len(s.events()) != 0 {
		t.Error("a pod without demand has no placement and no event")
	}
}

func TestWithoutAFreshSnapshotNodesHaveNoScores(t *testing.T) {
	s := newScene(t, func(args *Args) { args.Controllers = []string{"http://127.0.0.1:1"} })
	before := metric(t, "leeward_pods_total", "no_snapshot")
	for i := range 3 {
		if _, status := s.scores(podOf(fmt.Sprint(i), "1G"), "r0h0", "r1h0"); !status.IsSkip() {
			t.Errorf("%v", status)
		}
		s.reserve(podOf(fmt.Sprint(i), "1G"), "r0h0")
	}
	if metric(t, "leeward_pods_total", "no_snapshot") != before+3 {
		t.Error("the metric does not count the pods")
	}
	if events := s.events(); len(events) != 1 || !strings.Contains(events[0], "NetworkUnavailable") ||
		!strings.Contains(events[0], "(no_snapshot): no snapshot of the service has come: check ") {
		t.Errorf("%q: expected one event a minute", events)
	}
}

func TestAStaleSnapshotDoesNotCount(t *testing.T) {
	s := newScene(t, nil)
	s.ready()
	s.service.Intercept(func(writer http.ResponseWriter, _ *http.Request) bool {
		http.Error(writer, "{}", http.StatusServiceUnavailable)
		return true
	})
	s.clock = func() time.Time { return time.Now().Add(time.Minute) }
	if _, status := s.scores(podOf("a", "1G"), "r0h0", "r1h0"); !status.IsSkip() {
		t.Errorf("%v", status)
	}
	s.clock = time.Now
	if _, status := s.scores(podOf("b", "1G"), "r0h0", "r1h0"); status != nil {
		t.Errorf("%v", status)
	}
}

func TestAnInvalidAnnotationHasOneEventAndDoesNotCount(t *testing.T) {
	s := newScene(t, nil)
	s.ready()
	before := metric(t, "leeward_invalid_annotations_total", demand.PeakEgress)
	pod := podOf("a", "fast")
	pod.Annotations[demand.PeakIngress] = "1G"
	for range 3 {
		scores, status := s.scores(pod, "r0h0", "r1h0")
		if status != nil || scores["r0h0"] != 90 {
			t.Errorf("%v, %v", scores, status)
		}
	}
	events := s.events()
	if len(events) != 1 || !strings.Contains(events[0], `leeward.dev/peak-egress: "fast"`) {
		t.Errorf("%q", events)
	}
	if metric(t, "leeward_invalid_annotations_total", demand.PeakEgress) != before+1 {
		t.Error("the metric does not count the annotation")
	}
}

func TestANodeThatTheServiceDoesNotKnowHasAnAverageScoreAndOneEvent(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere", UID: "elsewhere"}}
	known := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "r0h0", UID: "r0h0"}}
	s := newScene(t, nil, node, known)
	s.ready()
	s.reserve(podOf("a", "5G"), "r1h0")
	scores, _ := s.scores(podOf("b", "1G"), "r0h0", "r1h0", "elsewhere")
	if scores["elsewhere"] != (scores["r0h0"]+scores["r1h0"])/2 {
		t.Errorf("%v", scores)
	}
	for range 3 {
		s.plugin.tracker.checkNodesOnce(s.handle.informers.Core().V1().Nodes().Lister(), s.handle.recorder)
	}
	if events := s.events(); len(events) != 1 || !strings.Contains(events[0], "no host elsewhere") {
		t.Errorf("%q", events)
	}
	if count := s.plugin.tracker.unknown.Load(); count != 1 {
		t.Errorf("%d unknown nodes", count)
	}
}

func TestAfterARestartPodsCountAsFarAsTelemetryDoesNotShowThem(t *testing.T) {
	now := time.Now()
	waiting := bound(podOf("waiting", "1G"), "r0h0")
	running := started(bound(podOf("running", "1G"), "r1h0"), now.Add(-3*time.Second))
	shown := started(bound(podOf("shown", "1G"), "r2h0"), now.Add(-2*time.Minute))
	old := bound(podOf("old", "1G"), "r3h0")
	old.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	s := newScene(t, func(args *Args) { args.Report = new(bool) }, waiting, running, shown, old)
	s.ready()
	s.eventually("the waiting pod does not count", func() bool { return s.load("r0:uplink") == 1e9 })
	if load := s.load("r1:uplink"); load <= 0 || load > 1e9*math.Pow(0.8, 2.9) {
		t.Errorf("a pod that runs for 3 s counts with %v", load)
	}
	if shown, old := s.load("r2:uplink"), s.load("r3:uplink"); shown != 0 || old != 0 {
		t.Errorf("old pods count with %v and %v", shown, old)
	}
}

func TestAfterARestartPodsWithAMeasuredPeakCountOnceThePeaksAreKnown(t *testing.T) {
	waiting, annotated := bound(podOf("waiting", ""), "r0h0"), bound(podOf("annotated", "2G"), "r1h0")
	s := &scene{t: t, service: network.NewController(network.Tree(0, 4, 2)), clock: time.Now}
	list := make(chan struct{})
	s.service.Intercept(func(_ http.ResponseWriter, request *http.Request) bool {
		if request.URL.Path == "/v1/peaks" {
			<-list
		}
		return false
	})
	s.service.SetPeaks(
		network.Peak{Job: demand.WorkloadOf(waiting).String(), Egress: 1e9, Observations: 100},
		network.Peak{Job: demand.WorkloadOf(annotated).String(), Egress: 1e9, Observations: 100},
	)
	address, err := s.service.Serve(t.Context(), 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	s.start(Args{Report: new(bool), Service: arguments.Service{
		Controllers: []string{address}, Deadline: metav1.Duration{Duration: 2 * time.Second},
	}}, waiting, annotated)
	s.ready()
	s.eventually("the annotated pod does not count", func() bool { return s.load("r1:uplink") == 2e9 })
	if load := s.load("r0:uplink"); load != 0 {
		t.Errorf("load %v before the list of peaks", load)
	}
	close(list)
	s.eventually("the pod with a measured peak does not count", func() bool { return s.load("r0:uplink") == 1e9 })
	if load := s.load("r1:uplink"); load != 2e9 {
		t.Errorf("the annotated pod counts with %v", load)
	}
}

func TestPeaksAreReadBeforeTheSchedulerKnowsPods(t *testing.T) {
	pod := podOf("web-0", "")
	s := &scene{t: t, service: network.NewController(network.Tree(0, 4, 2)), clock: time.Now}
	s.service.SetPeaks(network.Peak{Job: demand.WorkloadOf(pod).String(), Egress: 1e9, Observations: 100})
	address, err := s.service.Serve(t.Context(), 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	// The informers of a replica that waits for leadership do not run.
	s.handle = newHandle()
	s.plugin = s.another(Args{Service: arguments.Service{
		Controllers: []string{address}, Deadline: metav1.Duration{Duration: 2 * time.Second},
	}})
	s.eventually("no peak", func() bool { return s.plugin.tracker.measured.Counts().Workloads == 1 })
}

func TestTheEstimatesOfTheServiceCountUnlessAnArgumentIsGiven(t *testing.T) {
	estimator := func(interval time.Duration, alpha float64) ledger.Estimator {
		result, err := ledger.NewEstimator(interval, alpha)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	half := 0.5
	for name, c := range map[string]struct {
		args     Args
		expected ledger.Estimator
	}{
		"no argument": {Args{}, estimator(10*time.Second, 0.3)},
		"alpha":       {Args{Alpha: &half}, estimator(10*time.Second, 0.5)},
		"interval":    {Args{ReportInterval: metav1.Duration{Duration: 2 * time.Second}}, estimator(2*time.Second, 0.3)},
		"both":        {Args{Alpha: &half, ReportInterval: metav1.Duration{Duration: 2 * time.Second}}, estimator(2*time.Second, 0.5)},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scene{t: t, service: network.NewController(network.Tree(0, 2, 2)), clock: time.Now}
			s.service.Alpha, s.service.ReportInterval = 0.3, 10
			address, err := s.service.Serve(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			c.args.Controllers, c.args.Deadline = []string{address}, metav1.Duration{Duration: 2 * time.Second}
			s.start(c.args)
			s.eventually("the settings do not count", func() bool { return s.plugin.tracker.placements.Estimator() == c.expected })
		})
	}
}

func TestInvalidSettingsOfAServiceChangeNothing(t *testing.T) {
	answer := ""
	e := &estimates{
		call: func(context.Context, string, string, []byte) ([]byte, error) { return []byte(answer), nil },
		set:  func(of ledger.Estimator) { t.Errorf("%s: %+v", answer, of) }, log: slog.New(slog.DiscardHandler),
	}
	for _, answer = range []string{
		`{}`, `{"interval_s": -1}`, `{"interval_s": 1e9}`, `{"interval_s": "1"}`, `{"interval_s": 1, "ledger": {"alpha": 2}}`,
		`{"interval_s": 1, "ledger": {"alpha": -1}}`, `{`,
	} {
		if pause := e.step(t.Context()); pause != settingsPause {
			t.Errorf("%s: %v", answer, pause)
		}
	}
	if !strings.HasPrefix(e.problem, "GET /v1/status: ") {
		t.Errorf("%s", e.problem)
	}
}

func TestPodsOfOtherSchedulersCountUntilTheyEnd(t *testing.T) {
	s := newScene(t, func(args *Args) { args.Report = new(bool) })
	s.ready()
	pods := s.plugin.tracker
	pods.onPod(podOf("a", "1G"), bound(podOf("a", "1G"), "r0h0"))
	if load := s.load("r0:uplink"); load != 1e9 {
		t.Errorf("load %v", load)
	}
	// The binding of an own pod must not count it again.
	s.reserve(podOf("b", "1G"), "r1h0")
	pods.onPod(podOf("b", "1G"), bound(podOf("b", "1G"), "r1h0"))
	if load := s.load("r1:uplink"); load != 1e9 {
		t.Errorf("load %v", load)
	}
	pods.onEnd(bound(podOf("a", "1G"), "r0h0"))
	if load := s.load("r0:uplink"); load != 0 {
		t.Errorf("load %v after the end of a pod that never started", load)
	}
}

func TestTheBindingOfAPodThatTheServiceCountsDoesNotCountItAgain(t *testing.T) {
	s := newScene(t, nil)
	s.ready()
	pod := podOf("a", "1G")
	s.reserve(pod, "r0h0")
	s.eventually("the service does not count the pod", func() bool { return s.plugin.tracker.placements.Len() == 0 })
	s.plugin.tracker.onPod(pod, bound(pod, "r0h0"))
	if load := s.load("r0:uplink"); load != 1e9 {
		t.Errorf("load %v", load)
	}
}

func TestAPodThatWasBoundLongAgoNeverCounts(t *testing.T) {
	s := newScene(t, func(args *Args) { args.Report = new(bool) })
	s.ready()
	old := bound(podOf("old", "1G"), "r0h0")
	old.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	// The next snapshot would drop it, and decisions before it must not see it.
	s.plugin.tracker.onPod(nil, old)
	if count := s.plugin.tracker.placements.Len(); count != 0 {
		t.Errorf("%d placements", count)
	}
}

func TestAStartedPodFadesWithTelemetry(t *testing.T) {
	s := newScene(t, func(args *Args) { args.Report = new(bool) })
	s.ready()
	pod := podOf("a", "1G")
	s.reserve(pod, "r0h0")
	time.Sleep(300 * time.Millisecond)
	if load := s.load("r0:uplink"); load != 1e9 {
		t.Errorf("load %v before the start", load)
	}
	s.plugin.tracker.onPod(bound(pod, "r0h0"), started(bound(pod, "r0h0"), time.Now()))
	s.eventually("the pod does not fade", func() bool { return s.load("r0:uplink") < 0.9e9 })
}

func TestAnUnreportedPodThatEndsLeavesItsLinksAtOnce(t *testing.T) {
	s := newScene(t, func(args *Args) { args.Report = new(bool) })
	s.ready()
	s.service.Change(func(n *network.Network) { n.Link("r0:uplink").Measured = 5e9 })
	s.eventually("no load", func() bool { return s.load("r0:uplink") == 5e9 })
	s.holdSnapshots()
	s.plugin.tracker.onEnd(started(bound(podOf("a", "2G"), "r0h0"), time.Now().Add(-time.Hour)))
	// Telemetry would bring 44 Mb/s back with each window.
	if load := s.load("r0:uplink"); load < 3e9 || load > 3.5e9 {
		t.Errorf("load %v", load)
	}
}

func TestProfilesOfASchedulerShareTheirPlacements(t *testing.T) {
	s := newScene(t, nil)
	args := Args{Service: arguments.Service{Controllers: []string{"http://127.0.0.1:1"}}}
	first, second := s.another(args), s.another(args)
	if first.tracker == s.plugin.tracker {
		t.Error("plugins with other arguments share nothing")
	}
	if first.tracker != second.tracker {
		t.Error("plugins with the same arguments have one tracker")
	}
}

func TestAnotherPluginWithTheSameConnectionSeesReservedPods(t *testing.T) {
	var connection arguments.Service
	s := newScene(t, func(args *Args) { args.Client, connection = "other", args.Service })
	s.ready()
	shared := NetworkOf(s.handle.informers, connection)
	if shared == nil || !shared.IsFresh(time.Now()) || shared.IsFresh(time.Now().Add(time.Hour)) {
		t.Fatalf("%+v", shared)
	}
	s.reserve(podOf("a", "2G"), "r0h0")
	if view := shared.View(); view.Load(view.Snapshot().Names().Link("r0:uplink")) != 2e9 {
		t.Error("the pod does not count")
	}
	if other := NetworkOf(newHandle().informers, connection); other != nil {
		t.Error("schedulers share nothing")
	}
	connection.Controllers = []string{"http://127.0.0.1:1"}
	if other := NetworkOf(s.handle.informers, connection); other != nil {
		t.Error("plugins with other connections share nothing")
	}
}

func TestOnlyPodsWithoutDemandShareResults(t *testing.T) {
	s := newScene(t, nil)
	if _, status := s.plugin.SignPod(t.Context(), podOf("a", "")); !status.IsSuccess() {
		t.Errorf("%v", status)
	}
	if _, status := s.plugin.SignPod(t.Context(), podOf("a", "1G")); !status.IsRejected() {
		t.Errorf("%v", status)
	}
}

func TestAPodWithoutAnnotationsHasTheMeasuredPeakOfItsWorkload(t *testing.T) {
	pod := podOf("web-0", "")
	workload := demand.WorkloadOf(pod)
	s := &scene{t: t, service: network.NewController(network.Tree(0, 4, 2)), clock: time.Now}
	s.service.SetPeaks(network.Peak{Job: workload.String(), Egress: 1e9, Observations: 100})
	s.service.ReportPods(network.Pod{UID: string(pod.UID), Host: "r0h0"})
	address, err := s.service.Serve(t.Context(), 100*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	args := Args{Service: arguments.Service{Controllers: []string{address}, Deadline: metav1.Duration{Duration: 2 * time.Second}}}
	s.start(args, bound(pod, "r0h0"))
	s.ready()
	s.eventually("no peak", func() bool { return s.plugin.tracker.measured.Counts().Workloads == 1 })
	scores, status := s.scores(pod, "r1h0")
	if status != nil || scores["r1h0"] != 90 {
		t.Errorf("%v, %v", scores, status)
	}
	if _, status := s.plugin.SignPod(t.Context(), pod); !status.IsRejected() {
		t.Errorf("%v", status)
	}
	annotated, _ := s.scores(podOf("web-1", "2G"), "r1h0")
	if annotated["r1h0"] != 80 {
		t.Errorf("an annotation counts first: %v", annotated)
	}
	no := false
	args.Peaks = &no
	if without := s.another(args); without.tracker.measured != nil {
		t.Error("peaks count although the argument is false")
	}
}

func TestEventsOfManyObjectsDoNotFillTheMemory(t *testing.T) {
	var a announcer
	for i := range 3 * mostObjects {
		a.isNew(types.UID(fmt.Sprint(i)))
	}
	if len(a.seen) > mostObjects {
		t.Errorf("%d objects", len(a.seen))
	}
}

// BenchmarkPreScoreAndScore measures one pod over 5,000 nodes in 200 racks.
func BenchmarkPreScoreAndScore(b *testing.B) {
	s := &scene{t: b, service: network.NewController(network.Tree(10, 20, 25)), clock: time.Now}
	address, err := s.service.Serve(b.Context(), 100*time.Millisecond)
	if err != nil {
		b.Fatal(err)
	}
	s.start(Args{Service: arguments.Service{
		Controllers: []string{address}, MaxAge: metav1.Duration{Duration: time.Hour},
		Deadline: metav1.Duration{Duration: 10 * time.Second},
	}})
	s.ready()
	var names []string
	for rack := range 200 {
		for host := range 25 {
			names = append(names, fmt.Sprintf("r%dh%d", rack, host))
		}
	}
	nodes, pod := nodesOf(names...), podOf("a", "1G")
	for b.Loop() {
		cycle := newState()
		if status := s.plugin.PreScore(b.Context(), cycle, pod, nodes); !status.IsSuccess() {
			b.Fatal(status)
		}
		for _, node := range nodes {
			if _, status := s.plugin.Score(b.Context(), cycle, pod, node); !status.IsSuccess() {
				b.Fatal(status)
			}
		}
	}
}
