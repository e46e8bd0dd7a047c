package trafficmatrix

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"leeward.dev/kubernetes/internal/fake"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/placements"
	"leeward.dev/kubernetes/snapshot"
)

const gigabyte = 1_000_000_000

// viewOf returns the view of a network.
func viewOf(t *testing.T, network *fake.Network) *placements.View {
	t.Helper()
	estimator, err := ledger.NewEstimator(time.Second, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	local, err := placements.New("test", estimator, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := snapshot.Read(network.Whole(), nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	local.OnSnapshot(whole)
	return local.View()
}

func timeOn(t *testing.T, p *pairwise, node string) float64 {
	t.Helper()
	result, ok := p.timeOn(node)
	if !ok {
		t.Fatalf("%s: unknown", node)
	}
	return result
}

// slowest is the time from a node by definition: each link that any transfer crosses, with all bytes on it.
func slowest(network *fake.Network, node string, peers []peer) float64 {
	racks, pods := map[string]string{}, map[string]string{}
	for _, rack := range network.Racks {
		pods[rack.Name] = rack.Pod
	}
	for _, host := range network.Hosts {
		racks[host.Name] = host.Rack
	}
	bytes := map[string]int64{}
	cross := func(from, to string, amount int64) {
		if from == to {
			return
		}
		bytes[from+":egress"] += amount
		bytes[to+":ingress"] += amount
		if racks[from] == racks[to] {
			return
		}
		bytes[racks[from]+":uplink"] += amount
		bytes[racks[to]+":downlink"] += amount
		if pods[racks[from]] != pods[racks[to]] {
			bytes[pods[racks[from]]+":uplink"] += amount
			bytes[pods[racks[to]]+":downlink"] += amount
		}
	}
	for _, peer := range peers {
		cross(node, peer.node, peer.out)
		cross(peer.node, node, peer.in)
	}
	result := 0.0
	for name, amount := range bytes {
		link := network.Link(name)
		if amount > 0 {
			rest := max(float64(link.Capacity-link.Measured), leastShare*float64(link.Capacity))
			if link.Measured == fake.Unknown {
				rest = leastShare * float64(link.Capacity)
			}
			result = max(result, 8*float64(amount)/rest)
		}
	}
	return result
}

func TestTheTimeFromANodeIsThatOfItsSlowestLink(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 100 {
		network := fake.Tree(random.IntN(3), 3, 4)
		for i := range network.Links {
			network.Links[i].Measured = random.Int64N(network.Links[i].Capacity * 11 / 10)
			if random.IntN(20) == 0 {
				network.Links[i].Measured = fake.Unknown
			}
		}
		var peers []peer
		for range 1 + random.IntN(6) {
			host := network.Hosts[random.IntN(len(network.Hosts))].Name
			peers = append(peers, peer{node: host, out: random.Int64N(gigabyte), in: random.Int64N(gigabyte)})
		}
		of := newPairwise(viewOf(t, network), peers)
		for _, host := range network.Hosts {
			expected := slowest(network, host.Name, peers)
			if result := timeOn(t, of, host.Name); math.Abs(result-expected) > 1e-9*expected {
				t.Fatalf("%s with %v: %v s: expected %v s", host.Name, peers, result, expected)
			}
		}
	}
}

func TestANodeNearThePeersIsPreferred(t *testing.T) {
	network := fake.Tree(2, 2, 3)
	// The link of the peer's rack has little room.
	network.Link("r0:uplink").Measured = 39e9
	scores := scoresOf(newPairwise(viewOf(t, network), []peer{{node: "r0h0", out: gigabyte, in: gigabyte}}),
		slices.Values([]string{"r0h0", "r0h1", "r1h0", "r3h0", "elsewhere"}))
	for node, expected := range map[string]int64{"r0h0": 100, "r0h1": 50, "r1h0": 9, "r3h0": 9, "elsewhere": 0} {
		if scores[node] != expected {
			t.Errorf("%s: %d: expected %d", node, scores[node], expected)
		}
	}
}

func TestEqualNodesHaveNoScores(t *testing.T) {
	of := newPairwise(viewOf(t, fake.Tree(0, 3, 3)), []peer{{node: "r0h0", out: 1}})
	if scores := scoresOf(of, slices.Values([]string{"r1h0", "r1h1", "r2h0"})); scores != nil {
		t.Errorf("%v", scores)
	}
	if !of.isUseful() || newPairwise(of.view, []peer{{node: "elsewhere", out: 1}}).isUseful() {
		t.Error("a peer on an unknown node is of no use")
	}
}

func TestScoresAreInBoundsAndFallWithTheTime(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 1000 {
		shortest := math.Exp(20*random.Float64() - 10)
		first := shortest * (1 + 10*random.Float64())
		second := first * (1 + random.Float64())
		a, b := scoreOf(first, shortest), scoreOf(second, shortest)
		if a < b || a > 50 || b < 0 {
			t.Fatalf("%v, %v, %v: %d, %d", shortest, first, second, a, b)
		}
	}
	if scoreOf(0, 1) != Most || scoreOf(math.Inf(1), 1) != 0 || scoreOf(0, math.Inf(1)) != Most {
		t.Error("the bounds of scores")
	}
}

func TestHostsWithoutCountersLimitByTheirCapacity(t *testing.T) {
	network := fake.Tree(0, 2, 2)
	for _, host := range network.Hosts {
		for _, direction := range []string{"egress", "ingress"} {
			link := network.Link(host.Name + ":" + direction)
			link.Measured, link.Until = fake.Unknown, time.Time{}
		}
	}
	of := newPairwise(viewOf(t, network), []peer{{node: "r0h0", out: gigabyte}})
	if result := timeOn(t, of, "r0h1"); result != 0.8 {
		t.Errorf("%v s", result)
	}
}

func BenchmarkPairwiseScoresOf5000Nodes(b *testing.B) {
	network := fake.Tree(10, 20, 25)
	whole, err := snapshot.Read(network.Whole(), nil, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	estimator, _ := ledger.NewEstimator(time.Second, 0.2)
	local, _ := placements.New("test", estimator, time.Minute)
	local.OnSnapshot(whole)
	var nodes []string
	for _, host := range network.Hosts {
		nodes = append(nodes, host.Name)
	}
	var peers []peer
	for i := range 64 {
		peers = append(peers, peer{node: fmt.Sprintf("r%dh0", i), out: gigabyte, in: gigabyte})
	}
	for b.Loop() {
		scoresOf(newPairwise(local.View(), peers), slices.Values(nodes))
	}
}
