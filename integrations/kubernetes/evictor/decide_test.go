package evictor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"leeward.dev/kubernetes/fit"
)

var now = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// direction returns a link of 10 Gb/s with a utilization that has lasted for enough windows.
func direction(name string, utilization float64) *Link {
	link := &Link{Name: name, Capacity: 10e9, Mean: utilization * 10e9, Load: utilization * 10e9}
	if utilization > 0.75 {
		link.Hot = 5
	}
	return link
}

func rackOf(name string, out, in float64) Rack {
	return Rack{Name: name, Links: [2]*Link{direction(name+":uplink", out), direction(name+":downlink", in)}}
}

func nodeOf(name, rack string) Node {
	return Node{Name: name, Rack: rack, Free: fit.Resources{"cpu": 8000, "pods": 100}, Accepts: true}
}

// migratable returns a pod in a rack that may leave.
func migratable(uid, rack string, egress, ingress int64) Pod {
	return Pod{
		UID: uid, Namespace: "shop", Name: "pod-" + uid, Node: rack + "h0", Rack: rack, Workload: "Deployment/shop/" + uid,
		Rates: [2]int64{egress, ingress}, Requests: fit.Resources{"cpu": 1000, "pods": 1},
	}
}

// scene is a request with a hot rack, and two cool ones.
func scene(pods ...Pod) Request {
	return Request{
		Now: now, Start: now.Add(-time.Minute),
		Racks:    []Rack{rackOf("hot", 0.9, 0.2), rackOf("cool", 0.3, 0.3), rackOf("cooler", 0.1, 0.1)},
		Nodes:    []Node{nodeOf("cool-h0", "cool"), nodeOf("cooler-h0", "cooler"), nodeOf("hot-h1", "hot")},
		Pods:     pods,
		Settings: DefaultSettings(),
	}
}

func uids(round Round) []string {
	var result []string
	for _, eviction := range round.Evictions {
		result = append(result, eviction.Pod.UID)
	}
	return result
}

func reasons(round Round) map[string]Reason {
	result := map[string]Reason{}
	for _, stay := range round.Stays {
		result[stay.Pod.UID] = stay.Reason
	}
	return result
}

func TestTheLargestPodLeavesFirstUntilTheProjectionIsAtTheThreshold(t *testing.T) {
	round := Decide(scene(
		migratable("small", "hot", 500e6, 0), migratable("large", "hot", 1e9, 0), migratable("middle", "hot", 800e6, 0),
		migratable("other", "cool", 3e9, 0), migratable("receiver", "hot", 0, 5e9),
	))
	if got := uids(round); !slices.Equal(got, []string{"large", "middle"}) {
		t.Fatalf("%v", got)
	}
	last := round.Evictions[1]
	if last.Before != 0.8 || last.After != 0.72 || last.Link != "hot:uplink" || last.Target != "cooler" || last.Node != "cooler-h0" {
		t.Errorf("%+v", last)
	}
	if len(round.Stays) != 0 || len(round.Hot) != 1 || round.Hot[0].After != 0.72 || round.Hot[0].Utilization != 0.9 {
		t.Errorf("%+v", round)
	}
}

func TestAPodThatStaysHasAReason(t *testing.T) {
	change := func(of func(*Pod)) Pod {
		pod := migratable("a", "hot", 1e9, 1e9)
		of(&pod)
		return pod
	}
	same := func(*Pod) {}
	for _, c := range []struct {
		name    string
		pod     func(*Pod)
		request func(*Request)
		reason  Reason
	}{
		{"not migratable", func(p *Pod) { p.Stays = NotMigratable }, func(*Request) {}, NotMigratable},
		{"budget of the pod", func(p *Pod) { p.Budget = "shop/web" },
			func(r *Request) { r.Disruptions = map[string]int32{"shop/web": 0} }, BudgetSpent},
		{"unknown budget", func(p *Pod) { p.Budget = "shop/new" }, func(*Request) {}, BudgetSpent},
		{"unknown demand", func(p *Pod) { p.Rates, p.Unknown = [2]int64{0, 1e9}, [2]bool{true, false} }, func(*Request) {}, UnknownDemand},
		{"sum of the nodes", same, func(r *Request) { r.Racks[0].Links[out].Derived = true }, DerivedLink},
		{"rack cools", same, func(r *Request) {
			r.Records = []Record{{UID: "b", At: now.Add(-9 * time.Minute), Source: "hot", Workload: "x"}}
		}, RackCools},
		{"workload cools", same, func(r *Request) {
			r.Records = []Record{{UID: "b", At: now.Add(-9 * time.Minute), Source: "cool", Workload: "Deployment/shop/a"}}
		}, WorkloadCools},
		{"hour", same, func(r *Request) { r.Settings.HourlyBudget = 0 }, HourSpent},
		{"all other racks are full", same, func(r *Request) {
			r.Racks[1], r.Racks[2] = rackOf("cool", 0.65, 0), rackOf("cooler", 0, 0.61)
		}, NoTarget},
		{"no room", same, func(r *Request) { r.Nodes[0].Free["cpu"], r.Nodes[1].Free["cpu"] = 999, 999 }, NoTarget},
		{"cordoned", same, func(r *Request) { r.Nodes[0].Accepts, r.Nodes[1].Accepts = false, false }, NoTarget},
		{"node selector", func(p *Pod) {
			p.Constraints = fit.ConstraintsOf(&corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd"}}})
		}, func(*Request) {}, NoTarget},
		{"only tainted nodes", same, func(r *Request) {
			r.Nodes[0].Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
			r.Nodes[1].Taints = r.Nodes[0].Taints
		}, NoTarget},
		{"resource that no node has", func(p *Pod) { p.Requests["gpu"] = 1 }, func(*Request) {}, NoTarget},
		{"loads unknown", same, func(r *Request) {
			for _, rack := range r.Racks[1:] {
				rack.Links[in].Mean = math.NaN()
			}
		}, Unseen},
	} {
		request := scene(change(c.pod))
		c.request(&request)
		round := Decide(request)
		if len(round.Evictions) != 0 || reasons(round)["a"] != c.reason {
			t.Errorf("%s: %v, %v", c.name, uids(round), reasons(round))
		}
	}
}

func TestAPodWithoutTrafficOverTheLinkOrThatMustStayIsNoPodOfUnknownDemand(t *testing.T) {
	receiver, daemon := migratable("receiver", "hot", 0, 1e9), migratable("daemon", "hot", 0, 0)
	receiver.Unknown = [2]bool{false, true}
	daemon.Unknown, daemon.Stays = [2]bool{true, true}, Bound
	if round := Decide(scene(receiver, daemon)); len(round.Hot) != 1 || len(round.Stays) != 0 {
		t.Errorf("%+v", round)
	}
}

func TestPodsLeaveALinkWhoseLoadIsASumOnlyByTheSetting(t *testing.T) {
	request := scene(migratable("a", "hot", 2e9, 0))
	request.Racks[0].Links[out].Derived = true
	advised := []Advice{{Move: "1", Pod: &request.Pods[0], Link: "hot:uplink", From: "hoth0", Target: "cool"}}
	for _, allowed := range []bool{false, true} {
		request.Settings.DerivedLinks = allowed
		for _, round := range []Round{Decide(request), Accept(request, advised)} {
			if left := len(round.Evictions) == 1; left != allowed || left == (reasons(round)["a"] == DerivedLink) {
				t.Errorf("allowed %v: %+v, %v", allowed, round.Evictions, reasons(round))
			}
		}
	}
}

// The service adds the expected replacement to the load of the target, so it must not count twice.
func TestAReplacementThatTheServiceKnowsCountsOnceOnItsTarget(t *testing.T) {
	request := scene(migratable("a", "hot", 1.9e9, 0))
	request.Racks = request.Racks[:2]
	request.Racks[1].Links[out].Load += 2e9
	record := Record{
		UID: "earlier", At: now.Add(-time.Minute), Gone: now.Add(-2 * time.Minute), Workload: "x", Source: "elsewhere", Target: "cool",
		Rates: [2]int64{2e9, 0},
	}
	for name, c := range map[string]struct {
		change    func(*Record)
		evictions int
	}{
		"not reported":   {func(*Record) {}, 0},
		"expected":       {func(r *Record) { r.Expectation = "7" }, 1},
		"landed":         {func(r *Record) { r.Landed = "cool" }, 1},
		"service's move": {func(r *Record) { r.Move = "3" }, 1},
		// The service has not seen it in the window, so the mean does not have it.
		"larger than the pending load": {func(r *Record) { r.Expectation, r.Rates = "7", [2]int64{3e9, 0} }, 0},
	} {
		changed := record
		c.change(&changed)
		request.Records = []Record{changed}
		if round := Decide(request); len(round.Evictions) != c.evictions {
			t.Errorf("%s: %+v, %v", name, round.Evictions, reasons(round))
		}
	}
}

func TestARackIsHotOnlyAfterEnoughWindows(t *testing.T) {
	for hot, expected := range map[int]int{0: 0, 4: 0, 5: 1, 6: 1} {
		request := scene(migratable("a", "hot", 2e9, 0))
		request.Racks[0].Links[out].Hot = hot
		if got := len(Decide(request).Evictions); got != expected {
			t.Errorf("%d windows: %d evictions", hot, got)
		}
	}
}

func TestEvictionsThatTelemetryDoesNotShowCountOnBothRacks(t *testing.T) {
	record := Record{
		UID: "earlier", At: now.Add(-time.Minute), Workload: "x", Source: "hot", Target: "cooler", Rates: [2]int64{2e9, 6e9},
	}
	request := scene(migratable("a", "hot", 1e9, 1e9))
	request.Settings.RackCooldown = 1
	request.Now = now.Add(time.Second)
	request.Records = []Record{record}
	if round := Decide(request); len(round.Evictions) != 0 || len(round.Hot) != 0 {
		t.Errorf("a pod leaves though another that leaves relieves the link: %+v", round)
	}
	request.Records[0].Gone = request.Start.Add(-time.Second)
	round := Decide(request)
	if len(round.Evictions) != 1 || round.Evictions[0].Target != "cool" {
		t.Errorf("the expected load of 6 Gb/s on the target does not count: %+v", round.Evictions)
	}
	request.Records[0].Landed = "cool"
	if round := Decide(request); len(round.Evictions) != 1 || round.Evictions[0].Target != "cooler" {
		t.Errorf("the replacement does not count where it is: %+v", round.Evictions)
	}
	request.Records[0].Landed, request.Records[0].Started = "cooler", request.Start.Add(-time.Second)
	if round := Decide(request); len(round.Evictions) != 1 || round.Evictions[0].Target != "cooler" {
		t.Errorf("a replacement that the window shows counts twice: %+v", round.Evictions)
	}
	request.Records[0] = record
	request.Now = now.Add(request.Settings.Lasts)
	if round := Decide(request); len(round.Hot) != 1 {
		t.Errorf("an eviction counts for ever: %+v", round)
	}
}

func TestEvictionsOfOneRoundDoNotHerdToOneRack(t *testing.T) {
	var pods []Pod
	for i := range 6 {
		pods = append(pods, migratable(fmt.Sprint(i), "hot", 1e9, 1e9))
	}
	request := scene(pods...)
	request.Racks[0] = rackOf("hot", 1.3, 0.2)
	request.Racks = append(request.Racks, rackOf("third", 0.1, 0.1))
	request.Nodes = append(request.Nodes, nodeOf("third-h0", "third"))
	targets := map[string]int{}
	for _, eviction := range Decide(request).Evictions {
		targets[eviction.Target]++
	}
	if !reflect.DeepEqual(targets, map[string]int{"cool": 1, "cooler": 3, "third": 2}) {
		t.Errorf("%v", targets)
	}
}

func TestTheLinkOfAPodLimitsTargetsInOtherPodsOnly(t *testing.T) {
	request := scene(migratable("a", "hot", 2e9, 0))
	full := [2]*Link{direction("p0:uplink", 0.74), direction("p0:downlink", 0.1)}
	other := [2]*Link{direction("p1:uplink", 0.74), direction("p1:downlink", 0.1)}
	request.Racks[0].Pod, request.Racks[0].PodLinks = "p0", full
	request.Racks[1].Pod, request.Racks[1].PodLinks = "p0", full
	request.Racks[2].Pod, request.Racks[2].PodLinks = "p1", other
	if round := Decide(request); len(round.Evictions) != 1 || round.Evictions[0].Target != "cool" {
		t.Errorf("%+v", round.Evictions)
	}
}

// random returns a random request.
func random(r *rand.Rand) Request {
	request := Request{
		Now: now, Start: now.Add(-time.Minute), Settings: DefaultSettings(), Disruptions: map[string]int32{"a": 0, "b": 1, "c": 3},
	}
	request.Settings.HourlyBudget = r.IntN(6)
	racks := 2 + r.IntN(6)
	for i := range racks {
		name := fmt.Sprintf("r%d", i)
		rack := rackOf(name, 1.2*r.Float64(), 1.2*r.Float64())
		for _, link := range rack.Links {
			link.Hot = r.IntN(9)
			link.Load *= 0.5 + r.Float64()
			if r.IntN(20) == 0 {
				link.Mean = math.NaN()
			}
		}
		request.Racks = append(request.Racks, rack)
		for n := range 1 + r.IntN(3) {
			node := nodeOf(fmt.Sprintf("%sh%d", name, n), name)
			node.Free["cpu"] = int64(r.IntN(4000))
			node.Accepts = r.IntN(8) > 0
			request.Nodes = append(request.Nodes, node)
		}
	}
	for i := range r.IntN(40) {
		pod := migratable(fmt.Sprint(i), fmt.Sprintf("r%d", r.IntN(racks)), r.Int64N(3e9), r.Int64N(3e9))
		pod.Workload = fmt.Sprint("w", r.IntN(12))
		pod.Budget = []string{"", "a", "b", "c"}[r.IntN(4)]
		if r.IntN(3) == 0 {
			pod.Stays = NotMigratable
		}
		request.Pods = append(request.Pods, pod)
	}
	for i := range r.IntN(6) {
		request.Records = append(request.Records, Record{
			UID: fmt.Sprint("earlier", i), At: now.Add(-time.Duration(r.Int64N(int64(2 * time.Hour)))),
			Workload: fmt.Sprint("w", r.IntN(12)), Source: fmt.Sprintf("r%d", r.IntN(racks)),
			Target: fmt.Sprintf("r%d", r.IntN(racks)), Rates: [2]int64{r.Int64N(2e9), r.Int64N(2e9)},
		})
	}
	return request
}

// violation returns the rule that a round breaks, empty for none. It computes all loads by itself.
func violation(request Request, round Round) string {
	s := request.Settings
	racks := map[string]Rack{}
	relief, arrival := map[*Link]float64{}, map[*Link]float64{}
	move := func(source, target string, rates [2]int64) {
		for side := range rates {
			relief[racks[source].Links[side]] += float64(rates[side])
			arrival[racks[target].Links[side]] += float64(rates[side])
		}
	}
	for _, rack := range request.Racks {
		racks[rack.Name] = rack
	}
	hour := 0
	cools := map[string]bool{}
	for _, record := range request.Records {
		age := request.Now.Sub(record.At)
		if age < time.Hour {
			hour++
		}
		if age <= s.Lasts {
			move(record.Source, record.Target, record.Rates)
		}
		if age < 10*time.Minute {
			cools["rack "+record.Source], cools[record.Workload] = true, true
		}
	}
	disruptions := map[string]int32{}
	for _, eviction := range round.Evictions {
		pod := eviction.Pod
		side := out
		if racks[pod.Rack].Links[in].Name == eviction.Link {
			side = in
		}
		link := racks[pod.Rack].Links[side]
		switch {
		case link.Name != eviction.Link || link.Hot < s.HotWindows:
			return "the link is not hot for long enough"
		case link.Mean-relief[link] <= s.Threshold*link.Capacity:
			return "a pod leaves below the relief"
		case pod.Stays != "":
			return "a pod that must stay leaves"
		case cools["rack "+pod.Rack]:
			return "the rack cools"
		case cools[pod.Workload]:
			return "the workload cools"
		case pod.Rack == eviction.Target:
			return "the target is the source"
		}
		move(pod.Rack, eviction.Target, pod.Rates)
		for _, to := range racks[eviction.Target].Links {
			if !(max(to.Mean, to.Load)+arrival[to] <= (s.Threshold-s.Margin)*to.Capacity*(1+1e-12)) {
				return "the target does not stay cool"
			}
		}
		cools[pod.Workload] = true
		if disruptions[pod.Budget]++; pod.Budget != "" && disruptions[pod.Budget] > request.Disruptions[pod.Budget] {
			return "a disruption budget is exceeded"
		}
		if hour++; hour > s.HourlyBudget {
			return "the budget of the hour is exceeded"
		}
	}
	return ""
}

func TestTenThousandRandomRoundsBreakNoRule(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	evictions, stays := 0, map[Reason]int{}
	for step := range 10_000 {
		request := random(r)
		round := Decide(request)
		if rule := violation(request, round); rule != "" {
			t.Fatalf("step %d: %s: %+v", step, rule, round.Evictions)
		}
		evictions += len(round.Evictions)
		for _, stay := range round.Stays {
			stays[stay.Reason]++
		}
		if step%100 == 0 && !reflect.DeepEqual(round, Decide(request)) {
			t.Fatalf("step %d: two rounds of one request differ", step)
		}
	}
	for _, reason := range []Reason{NotMigratable, BudgetSpent, RackCools, WorkloadCools, HourSpent, NoTarget} {
		if stays[reason] < 100 {
			t.Errorf("only %d pods stayed because of %s", stays[reason], reason)
		}
	}
	if evictions < 1000 {
		t.Errorf("only %d evictions", evictions)
	}
}

func BenchmarkARoundOfFiveThousandNodes(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	request := Request{Now: now, Start: now.Add(-time.Minute), Settings: DefaultSettings()}
	for i := range 200 {
		name := fmt.Sprintf("r%d", i)
		utilization := 0.5 * r.Float64()
		if i < 10 {
			utilization = 0.9
		}
		request.Racks = append(request.Racks, rackOf(name, utilization, 0.3))
		for n := range 25 {
			request.Nodes = append(request.Nodes, nodeOf(fmt.Sprintf("%sh%d", name, n), name))
		}
		for n := range 150 {
			request.Pods = append(request.Pods, migratable(fmt.Sprint(i, "-", n), name, r.Int64N(5e8), r.Int64N(5e8)))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		Decide(request)
	}
}
