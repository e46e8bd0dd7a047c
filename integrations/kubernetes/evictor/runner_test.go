package evictor

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

// silent drops events.
type silent struct{}

func (silent) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}

func TestTenThousandRandomStepsBreakNoBudgetAndMoveNoPodTwice(t *testing.T) {
	w := randomSteps(t, true, 10_000)
	// Each rule was the limit at some time.
	stays := map[Reason]float64{}
	for _, reason := range []Reason{NotMigratable, BudgetSpent, RackCools, WorkloadCools, HourSpent, NoTarget} {
		stays[reason] = value(t, w.metrics.stays.WithLabelValues(string(reason)))
		if stays[reason] == 0 {
			t.Errorf("no pod stayed for the reason %s", reason)
		}
	}
	for _, cause := range []string{"fault", "lost answer", "gone"} {
		if w.rejected[cause] == 0 {
			t.Errorf("no request was rejected for the cause %q", cause)
		}
	}
	t.Logf("%d evictions, rejected: %v, %d releases, stays: %v", len(w.left), w.rejected, w.service.released, stays)
}

func TestTheSameHoldsForAServiceWithoutLastWindows(t *testing.T) { randomSteps(t, false, 2_000) }

// randomSteps passes steps in a world whose snapshots have the last windows of links, or lack them.
func randomSteps(t *testing.T, windows bool, steps int) *world {
	t.Helper()
	w := newWorld(t, 7, 24e9)
	w.plant.network.Windows = windows
	w.configFaults, w.evictionFaults, w.serviceFaults, w.lag, w.rollouts = 0.02, 0.1, 0.1, 0.5, 0.5
	runners := []*Runner{w.runner(Evict, silent{}), w.runner(Evict, silent{})}
	leader := 0
	for range steps {
		w.vary()
		w.advance()
		if w.r.IntN(200) == 0 {
			w.loseReports(1 + w.r.IntN(4))
		}
		if w.r.IntN(100) == 0 {
			// A process restarts, and forgets all but the ConfigMap.
			runners[w.r.IntN(2)] = w.runner(Evict, silent{})
		}
		if w.r.IntN(50) == 0 {
			leader = 1 - leader
		}
		seen := w.plant.snapshot()
		for number, runner := range runners {
			runner.OnSnapshot(seen)
			// A former leader may decide once more.
			if number == leader || w.r.IntN(20) == 0 {
				w.decide(runner)
			}
		}
		w.client.ClearActions()
	}
	if len(w.left) < 3*steps/100 {
		t.Errorf("only %d evictions", len(w.left))
	}
	return w
}

// heat makes the uplink of rack r0 hot by three pods of 12 Gb/s that may leave.
func heat(w *world) {
	w.tenants = nil
	for workload := range 3 {
		w.least[workload] = -1
		pod := podOn("r0h0", "hot-"+string(rune('a'+workload)), "w"+string(rune('0'+workload)), "12G", "1G")
		w.tenants = append(w.tenants, &tenant{
			object: pod, workload: workload, rack: "r0", declared: [2]float64{12e9, 1e9}, share: 1,
		})
	}
	w.budgets = nil
}

// run lets a runner observe some windows.
func run(w *world, runner *Runner, steps int) {
	for range steps {
		for _, tenant := range w.tenants {
			tenant.share = 1
		}
		w.advance()
		w.observe(runner)
	}
}

func value(t *testing.T, counter metrics.CounterMetric) float64 {
	t.Helper()
	value, err := testutil.GetCounterMetricValue(counter)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func gauge(t *testing.T, of metrics.GaugeMetric) float64 {
	t.Helper()
	value, err := testutil.GetGaugeMetricValue(of)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func count(t *testing.T, runner *Runner, outcome string) float64 {
	t.Helper()
	return value(t, runner.options.Metrics.evictions.WithLabelValues(outcome))
}

func rounds(t *testing.T, runner *Runner, outcome string) float64 {
	t.Helper()
	return value(t, runner.options.Metrics.rounds.WithLabelValues(outcome))
}

func drain(recorder *events.FakeRecorder) []string {
	var lines []string
	for {
		select {
		case line := <-recorder.Events:
			lines = append(lines, line)
		default:
			return lines
		}
	}
}

func TestAHotRackLosesOnePodAndTheServiceLearnsOfIt(t *testing.T) {
	w := newWorld(t, 1, 40e9)
	heat(w)
	recorder := events.NewFakeRecorder(100)
	runner := w.runner(Evict, recorder)
	for len(w.left) == 0 && w.step < 10 {
		run(w, runner, 1)
	}
	if len(w.left) != 1 || count(t, runner, evicted) != 1 {
		t.Fatalf("%d evictions", len(w.left))
	}
	if left := gauge(t, w.metrics.left); left != float64(worldSettings().HourlyBudget-1) {
		t.Errorf("%v evictions are left after the first one", left)
	}
	lines := strings.Join(drain(recorder), "\n")
	if !strings.Contains(lines, "HotRack evicted to relieve r0:uplink, from 90 % to 60 %") ||
		!strings.Contains(lines, "HotRack pod shop/hot-") {
		t.Errorf("events: %s", lines)
	}
	if w.service.released != 1 || len(w.service.expected) != 1 {
		t.Errorf("%d releases, expected %v", w.service.released, w.service.expected)
	}
	// A replacement may wait for its node.
	run(w, runner, 96)
	if len(w.service.expected) != 0 {
		t.Errorf("the replacement has landed, and the service still expects it: %v", w.service.expected)
	}
}

func TestADryRunSaysTheSameAndChangesNothing(t *testing.T) {
	w := newWorld(t, 1, 40e9)
	heat(w)
	recorder := events.NewFakeRecorder(100)
	runner := w.runner(DryRun, recorder)
	run(w, runner, 8)
	if len(w.client.Actions()) != 0 || len(w.service.expected) != 0 || w.service.released != 0 {
		t.Errorf("requests: %v", w.client.Actions())
	}
	if count(t, runner, wouldEvict) != 1 || count(t, runner, evicted) != 0 {
		t.Errorf("%v would leave", count(t, runner, wouldEvict))
	}
	if lines := strings.Join(drain(recorder), "\n"); !strings.Contains(lines, "HotRackDryRun would be evicted to relieve r0:uplink") {
		t.Errorf("events: %s", lines)
	}
}

func TestTheModeStopDecidesNothing(t *testing.T) {
	w := newWorld(t, 1, 40e9)
	heat(w)
	runner := w.runner(Stop, silent{})
	run(w, runner, 8)
	if len(w.client.Actions()) != 0 || rounds(t, runner, roundStopped) == 0 {
		t.Errorf("%v", w.client.Actions())
	}
}

func TestTheAnnotationStopsEvictionsAndItsRemovalContinuesThem(t *testing.T) {
	w := newWorld(t, 1, 40e9)
	heat(w)
	w.config = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "leeward-evictor", ResourceVersion: "0", Annotations: map[string]string{StopAnnotation: StopValue},
	}}
	runner := w.runner(Evict, silent{})
	run(w, runner, 8)
	if len(w.left) != 0 || rounds(t, runner, roundStopped) == 0 {
		t.Fatalf("%d evictions", len(w.left))
	}
	delete(w.config.Annotations, StopAnnotation)
	run(w, runner, 2)
	if len(w.left) != 1 {
		t.Errorf("%d evictions", len(w.left))
	}
}

func TestAnAnnotationBetweenReadAndWriteStopsTheEviction(t *testing.T) {
	w := newWorld(t, 1, 40e9)
	heat(w)
	w.config = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "leeward-evictor", ResourceVersion: "0"}}
	w.client.PrependReactor("get", "configmaps", func(kubetesting.Action) (bool, runtime.Object, error) {
		read := w.config.DeepCopy()
		w.config.Annotations = map[string]string{StopAnnotation: StopValue}
		w.config.ResourceVersion = "changed"
		read.Annotations = nil
		read.ResourceVersion = "before"
		return true, read, nil
	})
	runner := w.runner(Evict, silent{})
	run(w, runner, 8)
	if len(w.left) != 0 || rounds(t, runner, roundConflict) == 0 {
		t.Errorf("%d evictions", len(w.left))
	}
}

func TestABudgetThatIsSpentMeanwhileLeavesThePodAndNoRecord(t *testing.T) {
	w := newWorld(t, 1, 40e9)
	heat(w)
	for workload := range 3 {
		// The API server knows budgets that the informer does not have yet.
		w.least[workload] = 1
	}
	recorder := events.NewFakeRecorder(100)
	runner := w.runner(Evict, recorder)
	run(w, runner, 6)
	if len(w.left) != 0 || count(t, runner, budgetSpent) == 0 || w.rejected["budget"] == 0 {
		t.Fatalf("%d evictions, rejected %v", len(w.left), w.rejected)
	}
	if records, err := decodeRecords(w.config.Data[recordsKey]); err != nil || len(records) != 0 {
		t.Errorf("%v, %+v", err, records)
	}
	if left := gauge(t, w.metrics.left); left != float64(worldSettings().HourlyBudget) {
		t.Errorf("%v evictions are left, though none counts", left)
	}
	if lines := strings.Join(drain(recorder), "\n"); !strings.Contains(lines, "HotRackBudgetSpent") {
		t.Errorf("events: %s", lines)
	}
}

func TestAnEvictionWithoutAnAnswerCountsAndARejectedOneDoesNot(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		outcome string
		records int
	}{
		"server error": {away(), unanswered, 1},
		"lost answer":  {context.DeadlineExceeded, unanswered, 1},
		"overload":     {apierrors.NewTooManyRequests("too many requests", 0), rejected, 0},
		"forbidden":    {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "hot-a", nil), rejected, 0},
	} {
		w := newWorld(t, 1, 40e9)
		heat(w)
		w.client.PrependReactor("create", "pods", func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, c.err })
		runner := w.runner(Evict, silent{})
		for count(t, runner, c.outcome) == 0 && w.step < 10 {
			run(w, runner, 1)
		}
		records, err := decodeRecords(w.config.Data[recordsKey])
		if err != nil || len(records) != c.records || count(t, runner, c.outcome) != 1 {
			t.Errorf("%s: %v, %v, %+v", name, err, count(t, runner, c.outcome), records)
		}
	}
}

func TestAnotherPodOfTheSameNameIsNotEvicted(t *testing.T) {
	w := newWorld(t, 1, 40e9)
	heat(w)
	runner := w.runner(Evict, silent{})
	runner.options.Cluster = func() *Cluster {
		cluster := w.cluster()
		for i, pod := range cluster.Pods {
			stale := pod.DeepCopy()
			stale.UID += "-before"
			cluster.Pods[i] = stale
		}
		return cluster
	}
	run(w, runner, 6)
	if len(w.left) != 0 || w.rejected["uid"] == 0 || count(t, runner, podGone) == 0 {
		t.Errorf("%d evictions, rejected %v", len(w.left), w.rejected)
	}
}

func TestStaleSnapshotsAndUnsyncedInformersMakeNoRound(t *testing.T) {
	w := newWorld(t, 1, 40e9)
	heat(w)
	runner := w.runner(Evict, silent{})
	run(w, runner, 1)
	runner.Round(context.Background(), w.now().Add(time.Minute))
	if rounds(t, runner, roundStale) != 1 {
		t.Error("a stale snapshot counts")
	}
	runner.options.Cluster = func() *Cluster { return nil }
	runner.Round(context.Background(), w.now())
	if rounds(t, runner, roundUnsynced) != 1 {
		t.Error("informers that are not in step count")
	}
	foreign := readyNode("elsewhere")
	runner.options.Cluster = func() *Cluster { return &Cluster{Nodes: []*corev1.Node{foreign}} }
	runner.Round(context.Background(), w.now())
	if rounds(t, runner, roundOtherCluster) != 1 {
		t.Error("a service of another cluster counts")
	}
}

func TestRecordsThatAreNotReadableStopEvictions(t *testing.T) {
	w := newWorld(t, 1, 40e9)
	heat(w)
	w.config = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "leeward-evictor", ResourceVersion: "0"}, Data: map[string]string{recordsKey: "{"},
	}
	runner := w.runner(Evict, silent{})
	run(w, runner, 8)
	if len(w.left) != 0 || rounds(t, runner, roundConflict) == 0 {
		t.Errorf("%d evictions", len(w.left))
	}
}

func TestModesAreReadByName(t *testing.T) {
	for _, mode := range []Mode{DryRun, Evict, Stop} {
		if parsed, err := ParseMode(string(mode)); err != nil || parsed != mode {
			t.Errorf("%s: %s, %v", mode, parsed, err)
		}
	}
	if _, err := ParseMode("on"); err == nil {
		t.Error("on is a mode")
	}
}
