package score

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/internal/fake"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/placements"
	"leeward.dev/kubernetes/snapshot"
)

// needs returns the demand of a pod with both annotations.
func needs(egress, ingress int64) demand.Demand {
	return demand.Demand{
		Egress:  demand.Rate{Bps: egress, Source: demand.FromAnnotation},
		Ingress: demand.Rate{Bps: ingress, Source: demand.FromAnnotation},
	}
}

// place returns the placements of a scheduler beside a network.
func place(t testing.TB, network *fake.Network) *placements.Placements {
	t.Helper()
	estimator, err := ledger.NewEstimator(time.Second, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	p, err := placements.New("scheduler", estimator, placements.DefaultLasts)
	if err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Read(network.Whole(), nil, network.Time)
	if err != nil {
		t.Fatal(err)
	}
	p.OnSnapshot(s)
	return p
}

func names(network *fake.Network) []string {
	var result []string
	for _, host := range network.Hosts {
		result = append(result, host.Name)
	}
	return result
}

func rank(view *placements.View, nodes []string, d demand.Demand) (*Ranking, Outcome) {
	return Rank(Request{View: view, Fresh: true, Nodes: slices.Values(nodes), Demand: d})
}

// mustRank returns the scores of the nodes of a network.
func mustRank(t testing.TB, network *fake.Network, d demand.Demand) *Ranking {
	t.Helper()
	ranking, outcome := rank(place(t, network).View(), names(network), d)
	if outcome != Ranked {
		t.Fatal(outcome)
	}
	return ranking
}

func TestTheScoreIsTheCapacityLeftOnTheFullestLink(t *testing.T) {
	for _, c := range []struct {
		link            string
		measured        int64
		egress, ingress int64
		expected        int64
	}{
		{"r0h0:egress", 0, 0, 0, 100},
		{"r0h0:egress", 4e9, 0, 0, 60},
		{"r0h0:egress", 4e9, 1e9, 0, 50},
		{"r0h0:egress", 4e9, 0, 1e9, 60},
		{"r0h0:ingress", 4e9, 0, 1e9, 50},
		{"r0h0:ingress", 4e9, 1e9, 0, 60},
		{"r0:uplink", 30e9, 2e9, 0, 20},
		{"r0:downlink", 30e9, 0, 2e9, 20},
		{"p0:uplink", 300e9, 4e9, 0, 24},
		{"p0:downlink", 300e9, 0, 4e9, 24},
		{"r0:uplink", 39e9, 2e9, 0, 0},
		{"r0:uplink", 80e9, 0, 0, 0},
		{"r0h0:egress", 1e8, 0, 0, 99},
		{"r0h0:egress", 1, 0, 0, 99},
		// The shares of these are not exact in binary.
		{"r0h0:egress", 43e8, 0, 0, 57},
		{"r0h0:egress", 7e8, 2e8, 0, 91},
	} {
		network := fake.Tree(2, 2, 2)
		network.Link(c.link).Measured = c.measured
		score := mustRank(t, network, needs(c.egress, c.ingress)).Score("r0h0")
		if score != c.expected {
			t.Errorf("%+v: %d", c, score)
		}
	}
}

func TestTheScoreDoesNotDependOnTheOtherNodes(t *testing.T) {
	network := fake.Tree(1, 4, 4)
	network.Link("r0:uplink").Measured = 20e9
	view := place(t, network).View()
	all, _ := rank(view, names(network), needs(1e9, 1e9))
	alone, _ := rank(view, []string{"r0h1"}, needs(1e9, 1e9))
	if all.Score("r0h1") != alone.Score("r0h1") {
		t.Errorf("%d and %d", all.Score("r0h1"), alone.Score("r0h1"))
	}
}

func TestPlacementsThatTelemetryDoesNotShowCount(t *testing.T) {
	network := fake.Tree(0, 2, 2)
	network.Link("r0:uplink").Pending = 8e9
	p := place(t, network)
	p.Add("a", "r0h0", placements.Rates{Egress: 8e9}, network.Time)
	ranking, _ := rank(p.View(), names(network), needs(0, 0))
	for node, expected := range map[string]int64{"r0h0": 20, "r0h1": 60, "r1h0": 100} {
		if score := ranking.Score(node); score != expected {
			t.Errorf("%s: %d, expected %d", node, score, expected)
		}
	}
}

func TestANodeBehindALinkOfUnknownLoadIsLast(t *testing.T) {
	for _, c := range []struct {
		link     string
		affected []string
	}{
		{"r0h0:egress", []string{"r0h0"}}, {"r0h0:ingress", []string{"r0h0"}},
		{"r0:uplink", []string{"r0h0", "r0h1"}}, {"r0:downlink", []string{"r0h0", "r0h1"}},
		{"p0:uplink", []string{"r0h0", "r0h1", "r1h0", "r1h1"}}, {"p0:downlink", []string{"r0h0", "r0h1", "r1h0", "r1h1"}},
	} {
		network := fake.Tree(2, 2, 2)
		network.Link(c.link).Measured = fake.Unknown
		ranking := mustRank(t, network, needs(1e9, 1e9))
		for _, node := range names(network) {
			if score := ranking.Score(node); (score == 0) != slices.Contains(c.affected, node) {
				t.Errorf("%s unknown: %s has %d", c.link, node, score)
			}
		}
	}
}

func TestHostsWithoutCountersAreScoredByTheLinksAbove(t *testing.T) {
	network := fake.Tree(1, 2, 2)
	for _, link := range []string{"r0h0", "r0h1"} {
		for _, direction := range []string{":egress", ":ingress"} {
			network.Link(link + direction).Measured = fake.Unknown
			network.Link(link + direction).Until = time.Time{}
		}
	}
	network.Link("r0:uplink").Measured = 10e9
	if score := mustRank(t, network, needs(0, 0)).Score("r0h1"); score != 75 {
		t.Errorf("score %d", score)
	}
}

func TestALinkWithoutCapacityIsFull(t *testing.T) {
	network := fake.Tree(1, 2, 2)
	network.Link("r0:uplink").Capacity = 0
	if score := mustRank(t, network, needs(0, 0)).Score("r0h1"); score != 0 {
		t.Errorf("score %d", score)
	}
}

func TestAnUnknownNodeHasTheAverageOfTheOthers(t *testing.T) {
	network := fake.Tree(0, 2, 1)
	network.Link("r0:uplink").Measured = 20e9
	ranking, outcome := rank(place(t, network).View(), append(names(network), "new"), needs(0, 0))
	if outcome != Ranked || ranking.Score("new") != 75 {
		t.Errorf("%s: %d", outcome, ranking.Score("new"))
	}
}

func TestWithoutKnowledgeThereIsNoRanking(t *testing.T) {
	network := fake.Tree(0, 2, 2)
	dark := fake.Tree(0, 2, 2)
	for i := range dark.Links {
		dark.Links[i].Measured = fake.Unknown
	}
	view, known := place(t, network).View(), slices.Values(names(network))
	for _, c := range []struct {
		request  Request
		expected Outcome
	}{
		{Request{View: view, Fresh: true, Nodes: known, Demand: needs(1, 1)}, Ranked},
		{Request{View: view, Fresh: true, Nodes: known,
			Demand: demand.Demand{Egress: demand.Rate{Source: demand.Unknown}, Ingress: demand.Rate{Source: demand.Unknown}}},
			UnknownDemand},
		{Request{Fresh: true, Nodes: known, Demand: needs(1, 1)}, NoSnapshot},
		{Request{View: view, Nodes: known, Demand: needs(1, 1)}, Stale},
		{Request{View: view, Fresh: true, Nodes: slices.Values([]string{"r0h0", "a", "b"}), Demand: needs(1, 1)}, OtherCluster},
		{Request{View: view, Fresh: true, Nodes: slices.Values([]string{"r0h0", "a"}), Demand: needs(1, 1)}, Ranked},
		{Request{View: view, Fresh: true, Nodes: slices.Values([]string{}), Demand: needs(1, 1)}, NoTelemetry},
		{Request{View: place(t, dark).View(), Fresh: true, Nodes: known, Demand: needs(1, 1)}, NoTelemetry},
	} {
		ranking, outcome := Rank(c.request)
		if outcome != c.expected || (ranking != nil) != (outcome == Ranked) {
			t.Errorf("%s, expected %s", outcome, c.expected)
		}
	}
}

// random returns a network with random loads.
func random(r *rand.Rand) *fake.Network {
	network := fake.Tree(r.IntN(3), 1+r.IntN(4), 1+r.IntN(4))
	for i := range network.Links {
		link := &network.Links[i]
		link.Measured = int64(r.Float64() * 1.2 * float64(link.Capacity))
		link.Pending = int64((r.Float64() - 0.3) * 0.2 * float64(link.Capacity))
		if r.IntN(12) == 0 {
			link.Measured = fake.Unknown
		}
	}
	return network
}

// byHand returns the score by a plain look at the links of a node.
func byHand(network *fake.Network, host fake.Host, egress, ingress int64) int64 {
	fullest := 0.0
	pod := ""
	for _, rack := range network.Racks {
		if rack.Name == host.Rack {
			pod = rack.Pod
		}
	}
	for _, at := range []struct{ of, out, in string }{
		{host.Name, ":egress", ":ingress"}, {host.Rack, ":uplink", ":downlink"}, {pod, ":uplink", ":downlink"},
	} {
		if at.of == "" {
			continue
		}
		for name, rate := range map[string]int64{at.of + at.out: egress, at.of + at.in: ingress} {
			link := network.Link(name)
			if link.Measured == fake.Unknown {
				return 0
			}
			load := max(link.Measured+link.Pending, 0) + rate
			fullest = max(fullest, float64(load)/float64(link.Capacity))
		}
	}
	return int64(max(0, math.Floor(100*(1-fullest)+1e-9)))
}

func TestScoresAreThoseOfAPlainLookAtEveryLink(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		network := random(r)
		egress, ingress := r.Int64N(5e9), r.Int64N(5e9)
		ranking, outcome := rank(place(t, network).View(), names(network), needs(egress, ingress))
		if outcome == NoTelemetry {
			continue
		}
		for _, host := range network.Hosts {
			if score, expected := ranking.Score(host.Name), byHand(network, host, egress, ingress); score != expected {
				t.Fatalf("%s: %d, expected %d", host.Name, score, expected)
			}
		}
	}
}

func TestMoreDemandNeverRaisesAScore(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		network := random(r)
		view := place(t, network).View()
		less, outcome := rank(view, names(network), needs(1e9, 1e9))
		if outcome == NoTelemetry {
			continue
		}
		more, _ := rank(view, names(network), needs(1e9+r.Int64N(5e9), 1e9+r.Int64N(5e9)))
		for _, node := range names(network) {
			if more.Score(node) > less.Score(node) || more.Score(node) < 0 || less.Score(node) > Most {
				t.Fatalf("%s: %d after %d", node, more.Score(node), less.Score(node))
			}
		}
	}
}

func TestPodsPlacedBetweenTwoSnapshotsDoNotHerd(t *testing.T) {
	network := fake.Tree(0, 8, 10)
	network.Link("r7:uplink").Measured = 30e9
	p := place(t, network)
	r := rand.New(rand.NewPCG(7, 8))
	perRack := map[string]int{}
	for pod := range 160 {
		ranking, outcome := rank(p.View(), names(network), needs(1e9, 0))
		if outcome != Ranked {
			t.Fatal(outcome)
		}
		best, found := "", 0
		for _, node := range names(network) {
			switch {
			case best == "" || ranking.Score(node) > ranking.Score(best):
				best, found = node, 1
			case ranking.Score(node) == ranking.Score(best):
				// As the scheduler does, draw among equals.
				if found++; r.IntN(found) == 0 {
					best = node
				}
			}
		}
		p.Add(fmt.Sprint(pod), best, placements.Rates{Egress: 1e9}, network.Time)
		perRack[best[:2]]++
	}
	for rack, pods := range perRack {
		if pods > 25 || (rack == "r7" && pods > 0) {
			t.Errorf("%d of 160 pods are in %s", pods, rack)
		}
	}
}

func TestAnExplanationNamesTheFullestLink(t *testing.T) {
	network := fake.Tree(1, 2, 2)
	network.Link("r0:downlink").Measured = 10e9
	p := place(t, network)
	p.Add("a", "r0h1", placements.Rates{Ingress: 5e9}, network.Time)
	why, ok := Explain(p.View(), "r0h0", needs(1e9, 5e9))
	if !ok || len(why.Links) != 6 || why.Score != 50 {
		t.Fatalf("%+v", why)
	}
	limit := why.Links[why.Limit]
	expected := Link{Name: "r0h0:ingress", Capacity: 10e9, Demand: 5e9, Utilization: 0.5}
	if limit != expected {
		t.Errorf("%+v", limit)
	}
	why, _ = Explain(p.View(), "r0h0", needs(1e9, 6e9))
	if why.Links[4].Name != "r0:downlink" || why.Links[4].Local != 5e9 || why.Links[4].Load != 15e9 {
		t.Errorf("%+v", why.Links[4])
	}
	network.Link("r0:downlink").Measured = fake.Unknown
	why, _ = Explain(place(t, network).View(), "r0h0", needs(1e9, 5e9))
	if why.Score != 0 || why.Links[why.Limit].Name != "r0:downlink" {
		t.Errorf("unknown: %+v", why)
	}
	if _, ok := Explain(p.View(), "elsewhere", needs(1, 1)); ok {
		t.Error("a node that is unknown has an explanation")
	}
}

func TestExplanationsAndRankingsHaveTheSameScores(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		network := random(r)
		view := place(t, network).View()
		ranking, outcome := rank(view, names(network), needs(1e9, 2e9))
		if outcome == NoTelemetry {
			continue
		}
		for _, node := range names(network) {
			why, _ := Explain(view, node, needs(1e9, 2e9))
			limit := why.Links[why.Limit].Utilization
			if why.Score != ranking.Score(node) || scoreOf(limit) != why.Score {
				t.Fatalf("%s: %+v, expected %d", node, why, ranking.Score(node))
			}
		}
	}
}

// BenchmarkAPodAmongFiveThousandNodes is PreScore and Score of one pod.
func BenchmarkAPodAmongFiveThousandNodes(b *testing.B) {
	network := fake.Tree(10, 20, 25)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range network.Links {
		network.Links[i].Measured = r.Int64N(network.Links[i].Capacity)
	}
	p := place(b, network)
	// Names in the memory of the scheduler are not those of the snapshot.
	var nodes []string
	for _, name := range names(network) {
		nodes = append(nodes, strings.Clone(name))
	}
	r.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	b.ReportAllocs()
	for b.Loop() {
		ranking, outcome := rank(p.View(), nodes, needs(1e9, 1e9))
		if outcome != Ranked {
			b.Fatal(outcome)
		}
		sum := int64(0)
		for _, node := range nodes {
			sum += ranking.Score(node)
		}
		if sum == 0 {
			b.Fatal("no scores")
		}
	}
}
