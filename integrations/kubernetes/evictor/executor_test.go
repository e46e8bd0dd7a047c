package evictor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"

	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/internal/fake"
	"leeward.dev/kubernetes/snapshot"
)

// office is a world whose service advises moves.
type office struct {
	*world
	moves  *fake.Moves
	caller *httpapi.Client
	// fault changes answers of the service, if it is set.
	fault func(http.ResponseWriter, *http.Request) bool
}

// newOffice returns a world in which three pods of rack r0 may leave.
func newOffice(t *testing.T) *office {
	o := &office{world: newWorld(t, 1, 40e9), moves: &fake.Moves{}}
	heat(o.world)
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if o.fault == nil || !o.fault(writer, request) {
			o.moves.ServeHTTP(writer, request)
		}
	}))
	t.Cleanup(server.Close)
	var err error
	if o.caller, err = httpapi.New(snapshot.Settings{Controllers: []string{server.URL}}, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	o.isAdvised = true
	return o
}

// executor returns a runner that carries out the moves of the service.
func (o *office) executor(mode Mode, recorder events.EventRecorder) *Runner {
	o.t.Helper()
	options := o.options(mode, recorder)
	options.Advisor = o.caller
	runner, err := NewRunner(options)
	if err != nil {
		o.t.Fatal(err)
	}
	return runner
}

// round passes one window and lets a runner look at the moves.
func (o *office) round(runner *Runner) {
	o.advance()
	runner.OnSnapshot(o.plant.snapshot())
	runner.Round(context.Background(), o.now())
}

// advise advises a move of a pod of rack r0.
func (o *office) advise(pod string) string {
	return o.moves.Advise("shop/"+pod+"/uid-"+pod, "r0h0", "r4h1", "r0:uplink")
}

// replace starts the replacement of a pod of workload w0 on a node.
func (o *office) replace(node string) {
	clear(o.pending)
	o.next++
	pod := podOn(node, fmt.Sprint("replacement-", o.next), "w0", "1G", "1G")
	pod.CreationTimestamp = metav1.NewTime(o.now())
	o.tenants = append(o.tenants, &tenant{object: pod, workload: 0, rack: o.rack(node)})
}

func TestAnAdvisedMoveIsTakenCarriedOutAndAnsweredByThePlaceOfTheReplacement(t *testing.T) {
	for node, expected := range map[string]string{"r3h1": "done", "r0h2": "failed"} {
		o := newOffice(t)
		recorder := events.NewFakeRecorder(100)
		runner := o.executor(Evict, recorder)
		id := o.advise("hot-a")
		o.round(runner)
		if len(o.left) != 1 || o.left[0].uid != "uid-hot-a" || o.moves.Move(id).State != fake.Taken {
			t.Fatalf("%v, %+v", o.left, o.moves.Move(id))
		}
		records, err := decodeRecords(o.config.Data[recordsKey])
		if err != nil || len(records) != 1 || records[0].Move != id || records[0].Source != "r0" || records[0].Target != "r4" {
			t.Errorf("%v, %+v", err, records)
		}
		if lines := strings.Join(drain(recorder), "\n"); !strings.Contains(lines, "evicted to relieve r0:uplink, by move 0 of the service; rack r4 has room") {
			t.Errorf("events: %s", lines)
		}
		clear(o.pending)
		o.round(runner)
		if state := o.moves.Move(id).State; state != fake.Taken {
			t.Errorf("%s before the replacement has a node", state)
		}
		o.replace(node)
		o.round(runner)
		move := o.moves.Move(id)
		if move.State != expected || (move.Reason != nil) != (expected == "failed") {
			t.Errorf("%s: %+v", node, move)
		}
		o.round(runner)
		if answers := o.moves.Answers(); !slices.Equal(answers, []string{"0 taken", "0 " + expected}) || len(o.left) != 1 {
			t.Errorf("%v, %d evictions", answers, len(o.left))
		}
		if o.service.released+len(o.service.expected) != 0 {
			t.Error("the service counts the move already")
		}
		if value(t, o.metrics.moves.WithLabelValues("taken")) != 1 || value(t, o.metrics.moves.WithLabelValues(expected)) != 1 {
			t.Error("the answers are not counted")
		}
	}
}

func TestAMoveBeyondALimitIsRefusedWithTheReason(t *testing.T) {
	for _, c := range []struct {
		name, reason string
		change       func(*office)
	}{
		{"not migratable", "not_migratable", func(o *office) {
			pod := o.tenants[0].object.DeepCopy()
			pod.Annotations["leeward.dev/migratable"] = "false"
			o.tenants[0].object = pod
		}},
		{"spent budget", "disruption_budget", func(o *office) {
			o.least[0] = 1
			o.budgets = append(o.budgets, budget("w0", "w0", 0))
		}},
		{"cooling rack", "rack_cooldown", func(o *office) { o.remember(Record{UID: "x", Source: "r0", Workload: "other"}) }},
		{"cooling workload", "workload_cooldown", func(o *office) {
			o.remember(Record{UID: "x", Source: "r1", Workload: "StatefulSet/shop/w0"})
		}},
		{"no room in the rack", "no_target", func(o *office) {
			for i, node := range o.nodes {
				if strings.HasPrefix(node.Name, "r4") {
					o.nodes[i] = node.DeepCopy()
					o.nodes[i].Spec.Unschedulable = true
				}
			}
		}},
		{"other node", "other_node", func(o *office) {
			o.tenants[0].object = podOn("r0h1", "hot-a", "w0", "12G", "1G")
		}},
	} {
		o := newOffice(t)
		c.change(o)
		id := o.advise("hot-a")
		runner := o.executor(Evict, silent{})
		o.round(runner)
		move := o.moves.Move(id)
		if move.State != "refused" || move.Reason == nil || *move.Reason != c.reason || len(o.left) != 0 {
			t.Errorf("%s: %+v, %d evictions", c.name, move, len(o.left))
		}
		if value(t, o.metrics.stays.WithLabelValues(c.reason)) != 1 {
			t.Errorf("%s: not counted", c.name)
		}
	}
}

// remember writes a record of an eviction that has just happened into the ConfigMap.
func (o *office) remember(record Record) {
	record.At = o.now()
	text, err := encodeRecords([]Record{record})
	if err != nil {
		o.t.Fatal(err)
	}
	o.config = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "leeward-evictor", ResourceVersion: "0"}, Data: map[string]string{recordsKey: text},
	}
}

func TestTheHourlyBudgetHoldsForAdvisedMoves(t *testing.T) {
	o := newOffice(t)
	runner := o.executor(Evict, silent{})
	runner.options.Settings.HourlyBudget = 2
	for _, pod := range []string{"hot-a", "hot-b", "hot-c"} {
		o.advise(pod)
	}
	o.round(runner)
	if move := o.moves.Move("2"); len(o.left) != 2 || move.State != "refused" || *move.Reason != "hourly_budget" {
		t.Errorf("%d evictions, %+v", len(o.left), move)
	}
}

func TestMovesOfOthersAreLeftToThem(t *testing.T) {
	o := newOffice(t)
	runner := o.executor(Evict, silent{})
	o.moves.Advise("shop/hot-a/uid-of-another-cluster", "r0h0", "r4h1", "r0:uplink")
	o.moves.Advise("other/hot-a/uid-hot-a", "r0h0", "r4h1", "r0:uplink")
	o.moves.Advise("block 7", "r0h0", "r4h1", "r0:uplink")
	o.moves.Advise("", "r0h0", "r4h1", "r0:uplink")
	taken := o.advise("hot-a")
	if err := o.caller.AnswerMigration(t.Context(), taken, httpapi.Taken, "the scheduler"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		o.round(runner)
	}
	if len(o.left) != 0 || !slices.Equal(o.moves.Answers(), []string{taken + " taken"}) {
		t.Errorf("%d evictions, %v", len(o.left), o.moves.Answers())
	}
}

func TestADryRunAnswersNoMoveAndSaysItOnce(t *testing.T) {
	o := newOffice(t)
	recorder := events.NewFakeRecorder(100)
	runner := o.executor(DryRun, recorder)
	o.advise("hot-a")
	for range 4 {
		o.round(runner)
	}
	if len(o.left) != 0 || len(o.moves.Answers()) != 0 || len(o.world.client.Actions()) != 0 {
		t.Errorf("%d evictions, %v, %v", len(o.left), o.moves.Answers(), o.world.client.Actions())
	}
	if lines := drain(recorder); len(lines) != 2 || !strings.Contains(lines[0], "HotRackDryRun would be evicted to relieve r0:uplink, by move 0") {
		t.Errorf("%v", lines)
	}
}

func TestARejectedEvictionAnswersItsMove(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*office)
		state  string
		reason string
	}{
		// The API server knows a budget that the informer does not have yet.
		"budget": {func(o *office) { o.least[0] = 1 }, "refused", budgetSpent},
		// The API server protects itself.
		"overload": {func(o *office) {
			o.world.client.PrependReactor("create", "pods", func(kubetesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewTooManyRequests("too many requests", 0)
			})
		}, "failed", rejected},
		"gone": {func(o *office) {
			seen := o.cluster()
			o.lag, o.seen = 1, seen
			o.tenants = o.tenants[1:]
		}, "failed", podGone},
	} {
		o := newOffice(t)
		runner := o.executor(Evict, silent{})
		c.change(o)
		id := o.advise("hot-a")
		o.round(runner)
		move := o.moves.Move(id)
		if len(o.left) != 0 || move.State != c.state || move.Reason == nil || !strings.HasPrefix(*move.Reason, c.reason) {
			t.Errorf("%s: %+v", name, move)
		}
		if records, err := decodeRecords(o.config.Data[recordsKey]); err != nil || len(records) != 0 {
			t.Errorf("%s: %v, %+v", name, err, records)
		}
	}
}

// away answers requests of a method with an error, after the service has seen them or before.
func (o *office) away(method string, seen bool) {
	o.fault = func(writer http.ResponseWriter, request *http.Request) bool {
		if request.Method != method {
			return false
		}
		if seen {
			o.moves.ServeHTTP(httptest.NewRecorder(), request)
		}
		writer.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
}

func TestAMoveWhoseAnswerIsLostIsCarriedOutOnceTheServiceAnswers(t *testing.T) {
	for _, seen := range []bool{false, true} {
		o := newOffice(t)
		runner := o.executor(Evict, silent{})
		id := o.advise("hot-a")
		o.away(http.MethodPost, seen)
		o.round(runner)
		if len(o.left) != 0 {
			t.Fatal("evicted before the move was taken")
		}
		o.away(http.MethodGet, false)
		o.round(runner)
		if rounds(t, runner, roundUnadvised) != 1 {
			t.Error("a service that is away counts as one without moves")
		}
		o.fault = nil
		// The next leader continues.
		o.round(o.executor(Evict, silent{}))
		if len(o.left) != 1 || o.moves.Move(id).State != fake.Taken {
			t.Errorf("%d evictions, %+v", len(o.left), o.moves.Move(id))
		}
	}
}

func TestAMoveThatHasExpiredIsForgotten(t *testing.T) {
	o := newOffice(t)
	runner := o.executor(Evict, silent{})
	id := o.advise("hot-a")
	o.round(runner)
	o.moves.Expire(id)
	o.replace("r3h1")
	o.round(runner)
	records, err := decodeRecords(o.config.Data[recordsKey])
	if err != nil || len(records) != 1 || records[0].Move != "" || value(t, o.metrics.moves.WithLabelValues(moveClosed)) != 1 {
		t.Errorf("%v, %+v", err, records)
	}
}

func TestTheAnnotationStopsAdvisedMovesWithoutAnAnswer(t *testing.T) {
	o := newOffice(t)
	o.config = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "leeward-evictor", ResourceVersion: "0", Annotations: map[string]string{StopAnnotation: StopValue},
	}}
	runner := o.executor(Evict, silent{})
	o.advise("hot-a")
	o.round(runner)
	if len(o.left) != 0 || len(o.moves.Answers()) != 0 || rounds(t, runner, roundStopped) != 1 {
		t.Errorf("%d evictions, %v", len(o.left), o.moves.Answers())
	}
}

func TestAnAnswerWhileEvictionsAreStoppedIsNotRepeated(t *testing.T) {
	o := newOffice(t)
	runner := o.executor(Evict, silent{})
	id := o.advise("hot-a")
	o.round(runner)
	o.config.Annotations = map[string]string{StopAnnotation: StopValue}
	o.replace("r3h1")
	for range 3 {
		o.round(runner)
	}
	if answers := o.moves.Answers(); !slices.Equal(answers, []string{id + " taken", id + " done"}) || rounds(t, runner, roundStopped) == 0 {
		t.Errorf("%v", answers)
	}
	if value(t, o.metrics.moves.WithLabelValues("done")) != 1 || value(t, o.metrics.moves.WithLabelValues(moveClosed)) != 0 {
		t.Error("the move was answered again")
	}
}

func TestNoAdvisedMoveBreaksALimitOrIsCarriedOutTwice(t *testing.T) {
	o := newOffice(t)
	o.world = newWorld(t, 11, 24e9)
	o.isAdvised = true
	o.configFaults, o.evictionFaults, o.lag, o.rollouts = 0.02, 0.1, 0.5, 0.5
	o.fault = func(writer http.ResponseWriter, request *http.Request) bool {
		if o.r.Float64() > 0.1 {
			return false
		}
		if o.r.IntN(2) == 0 {
			o.moves.ServeHTTP(httptest.NewRecorder(), request)
		}
		writer.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	runners := []*Runner{o.executor(Evict, silent{}), o.executor(Evict, silent{})}
	var open []string
	moveOf := map[string]string{}
	for step := range 1_500 {
		o.vary()
		// The service advises no second move of a pod.
		tenant := o.tenants[o.r.IntN(len(o.tenants))]
		last, isKnown := moveOf[string(tenant.object.UID)]
		isOpen := isKnown && slices.Contains([]string{fake.Advised, fake.Taken}, o.moves.Move(last).State)
		if step < 1_400 && tenant.gone == 0 && !isOpen {
			pod, to := tenant.object, o.nodes[o.r.IntN(len(o.nodes))].Name
			id := o.moves.Advise(referenceOf(pod.Namespace, pod.Name, string(pod.UID)), pod.Spec.NodeName, to, tenant.rack+":uplink")
			open = append(open, id)
			moveOf[string(pod.UID)] = id
		}
		if len(open) > 30 {
			o.moves.Expire(open[0])
			open = open[1:]
		}
		before := len(o.left)
		runner := runners[o.r.IntN(2)]
		o.round(runner)
		for _, left := range o.left[before:] {
			if move := o.moves.Move(moveOf[string(left.uid)]); move.State == fake.Advised || move.State == "refused" {
				t.Fatalf("step %d: evicted by a move that is %s", step, move.State)
			}
		}
		if o.r.IntN(50) == 0 {
			runners[o.r.IntN(2)] = o.executor(Evict, silent{})
		}
		o.world.client.ClearActions()
	}
	for range 200 {
		o.round(runners[0])
	}
	states := map[string]int{}
	for _, id := range moveOf {
		states[o.moves.Move(id).State]++
	}
	if states["done"] < 20 || states["refused"] < 20 {
		t.Errorf("%v", states)
	}
	t.Logf("%d evictions, %v", len(o.left), states)
}

func TestSourcesOfMovesAreReadByName(t *testing.T) {
	for _, moves := range []Moves{Own, Advised} {
		if parsed, err := ParseMoves(string(moves)); err != nil || parsed != moves {
			t.Errorf("%s: %s, %v", moves, parsed, err)
		}
	}
	if _, err := ParseMoves("both"); err == nil || !strings.Contains(err.Error(), `"both"`) {
		t.Errorf("%v", err)
	}
}

func TestRunLooksAtMovesWithoutWaitingForAWindow(t *testing.T) {
	o := newOffice(t)
	runner := o.executor(Evict, silent{})
	ctx, cancel := context.WithCancelCause(t.Context())
	o.fault = func(http.ResponseWriter, *http.Request) bool {
		cancel(errors.New("asked"))
		return false
	}
	o.advance()
	runner.OnSnapshot(o.plant.snapshot())
	runner.options.MaxAge = 100 * 365 * 24 * time.Hour
	runner.Run(ctx)
	if context.Cause(ctx).Error() != "asked" {
		t.Error("the service was not asked")
	}
}
