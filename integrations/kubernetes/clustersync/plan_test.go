package clustersync

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// document reads a cluster as the client of the service does.
func document(t testing.TB, text string) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var result map[string]any
	if err := decoder.Decode(&result); err != nil {
		t.Fatal(err)
	}
	return result
}

// node returns a node with a rack label, and further labels or annotations: those of annotations begin with an @.
func node(name, rack string, more ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}}}
	if rack != "" {
		n.Labels[RackLabels[0]] = rack
	}
	for i := 0; i < len(more); i += 2 {
		if key, ok := strings.CutPrefix(more[i], "@"); ok {
			n.Annotations[key] = more[i+1]
		} else {
			n.Labels[more[i]] = more[i+1]
		}
	}
	return n
}

func mustPlan(t testing.TB, text string, settings Settings, speeds map[string]int64, nodes ...*corev1.Node) Result {
	t.Helper()
	result, err := Plan(document(t, text), nodes, speeds, settings)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// kinds returns the kinds and objects of differences.
func kinds(differences []Difference) []string {
	result := []string{}
	for _, difference := range differences {
		result = append(result, string(difference.Kind)+" "+difference.Object)
	}
	return result
}

func encoded(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const compact = `{"racks": 2, "hosts_per_rack": 1, "nic": "1Gbps", "rack_link": "2Gbps"}`

func TestNodesBecomeHostsOfTheRacksOfTheirLabels(t *testing.T) {
	result := mustPlan(t, compact, DefaultSettings(), nil,
		node("n1", "r0"), node("n2", "new"), node("n3", "", RackLabels[2], "far", RackLabels[1], "near"))
	expected := `[{"hosts":[{"name":"r0h0"},{"labels":{"managed-by":"kubernetes"},"name":"n1"}],"name":"r0"},` +
		`{"hosts":[{"name":"r1h0"}],"name":"r1"},` +
		`{"hosts":[{"labels":{"managed-by":"kubernetes"},"name":"n2"}],"name":"new"},` +
		`{"hosts":[{"labels":{"managed-by":"kubernetes"},"name":"n3"}],"name":"near"}]`
	if text := encoded(t, result.Racks); text != expected {
		t.Errorf("%s", text)
	}
	if got := kinds(result.Changes); !slices.Equal(got, []string{"add_host n1", "add_host n2", "add_host n3"}) {
		t.Errorf("%v", got)
	}
	if got := kinds(result.Findings); !slices.Equal(got, []string{"host_without_node r0h0", "host_without_node r1h0"}) {
		t.Errorf("%v", got)
	}
}

// roomy returns a node with processors and memory for pods.
func roomy(name, rack, cpus, memory string) *corev1.Node {
	n := node(name, rack)
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpus), corev1.ResourceMemory: resource.MustParse(memory),
	}
	return n
}

func TestHostsHaveTheProcessorsAndTheMemoryThatTheirNodesHaveForPods(t *testing.T) {
	result := mustPlan(t, compact, DefaultSettings(), nil, roomy("n1", "r0", "7910m", "31Gi"))
	host := `{"cpus":"7910m","labels":{"managed-by":"kubernetes"},"memory":"31744MiB","name":"n1"}`
	if text := encoded(t, result.Racks); !strings.Contains(text, host) {
		t.Errorf("%s", text)
	}
	if got := kinds(result.Changes); !slices.Equal(got, []string{"add_host n1"}) {
		t.Errorf("%v", got)
	}
	of := `{"racks": [{"name": "r0", "hosts": [` + host + `, {"name": "own", "cpus": 4}]}]}`
	if same := mustPlan(t, of, DefaultSettings(), nil, roomy("n1", "r0", "7910m", "31Gi")); len(same.Changes) > 0 {
		t.Errorf("in step: %v", same.Changes)
	}
	less := mustPlan(t, of, DefaultSettings(), nil, roomy("n1", "r0", "7", "31Gi"), roomy("own", "r0", "9", "1Gi"))
	if got := less.Changes; len(got) != 1 || got[0] != (Difference{SetRoom, "n1", "to cpus: 7000m"}) {
		t.Errorf("only of hosts that the sync manages: %v", got)
	}
	if silent := mustPlan(t, of, DefaultSettings(), nil, node("n1", "r0")); len(silent.Changes) > 0 {
		t.Errorf("a node without resources: %v", silent.Changes)
	}
}

func TestCountsBecomeTheNamesThatTheServiceGives(t *testing.T) {
	f, err := readFile(document(t, `{"hosts_per_rack": 2, "racks": [{"count": 2, "hosts": 3, "link": "9Gbps"},
		{"name": "x", "hosts": 1}, {"count": 1, "hosts": 1}, {"name": "y"}, {"hosts": [{"name": "q", "nic": "5Gbps"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range f.racks {
		for _, h := range r.hosts {
			names = append(names, r.name+"/"+h.name)
		}
	}
	expected := "r0/r0h0 r0/r0h1 r0/r0h2 r1/r1h0 r1/r1h1 r1/r1h2 x/xh0 r3/r3h0 y/yh0 y/yh1 r5/q"
	if got := strings.Join(names, " "); got != expected {
		t.Errorf("%s", got)
	}
	if f.racks[1].fields["link"] != "9Gbps" || f.racks[5].hosts[0].fields["nic"] != "5Gbps" {
		t.Error("fields are lost")
	}
}

const managed = `{"nic": "1Gbps", "rack_link": "2Gbps", "racks": [
	{"name": "a", "link": "40Gbps", "pod": "p0", "hosts": [{"name": "n1", "labels": {"managed-by": "kubernetes", "zone": "z"}, "nic": "10Gbps"}]},
	{"name": "b", "hosts": [{"name": "n2", "labels": {"managed-by": "kubernetes"}}, {"name": "store"}]}]}`

func TestAClusterInStepIsNotWritten(t *testing.T) {
	result := mustPlan(t, managed, DefaultSettings(), nil, node("n1", "a"), node("n2", "b"))
	if result.Racks != nil || len(result.Changes) != 0 {
		t.Errorf("%v", kinds(result.Changes))
	}
	if got := kinds(result.Findings); !slices.Equal(got, []string{"host_without_node store"}) {
		t.Errorf("%v", got)
	}
}

func TestAManagedHostFollowsItsNodeAndKeepsItsOtherFields(t *testing.T) {
	result := mustPlan(t, managed, DefaultSettings(), nil, node("n1", "b"), node("n2", "b"))
	if got := kinds(result.Changes); !slices.Equal(got, []string{"move_host n1"}) {
		t.Errorf("%v", got)
	}
	if text := encoded(t, result.Racks); !strings.Contains(text, `{"labels":{"managed-by":"kubernetes","zone":"z"},"name":"n1","nic":"10Gbps"}`) ||
		strings.Contains(text, `"name":"a"`) {
		t.Errorf("%s", text)
	}
}

func TestAManagedHostWithoutANodeLeavesAndOthersStay(t *testing.T) {
	result := mustPlan(t, managed, DefaultSettings(), nil, node("n1", "a"))
	if got := kinds(result.Changes); !slices.Equal(got, []string{"remove_host n2"}) {
		t.Errorf("%v", got)
	}
	if text := encoded(t, result.Racks); !strings.Contains(text, `{"hosts":[{"name":"store"}],"name":"b"}`) {
		t.Errorf("%s", text)
	}
}

func TestTheLastHostOfARackWithFieldsOfItsOwnStays(t *testing.T) {
	result := mustPlan(t, managed, DefaultSettings(), nil, node("n2", "b"))
	if got := kinds(result.Findings); !slices.Equal(got, []string{"host_without_node store", "last_host n1"}) || result.Racks != nil {
		t.Errorf("%v, %v", got, kinds(result.Changes))
	}
}

func TestARackThatHasOnlyItsLinkLeavesWithItsLastHost(t *testing.T) {
	text := `{"racks": [{"name": "a", "hosts": [{"name": "n1", "labels": {"managed-by": "kubernetes"}}]},
		{"name": "b", "link": "100Gbps", "hosts": [{"name": "n2", "labels": {"managed-by": "kubernetes"}}]}]}`
	result := mustPlan(t, text, DefaultSettings(), nil, node("n1", "a"))
	if got := kinds(result.Changes); !slices.Equal(got, []string{"remove_host n2"}) || len(result.Findings) != 0 {
		t.Errorf("%v, %v", got, kinds(result.Findings))
	}
	if text := encoded(t, result.Racks); text != `[{"hosts":[{"labels":{"managed-by":"kubernetes"},"name":"n1"}],"name":"a"}]` {
		t.Errorf("%s", text)
	}
}

func TestTheLastHostOfAClusterStays(t *testing.T) {
	text := `{"racks": [{"name": "a", "hosts": [{"name": "n1", "labels": {"managed-by": "kubernetes"}}]}]}`
	result := mustPlan(t, text, DefaultSettings(), nil)
	if got := kinds(result.Findings); !slices.Equal(got, []string{"last_host n1"}) || result.Racks != nil {
		t.Errorf("%v, %v", got, kinds(result.Changes))
	}
}

func TestThePlaceholderStaysWithoutAFindingUntilTheFirstNode(t *testing.T) {
	text := `{"racks": [{"name": "placeholder", "hosts": [{"name": "placeholder", "labels": {"managed-by": "kubernetes"}}]}]}`
	result := mustPlan(t, text, DefaultSettings(), nil, node("n1", ""))
	if got := kinds(result.Findings); !slices.Equal(got, []string{"no_rack_label n1"}) || result.Racks != nil {
		t.Errorf("%v, %v", got, kinds(result.Changes))
	}
	result = mustPlan(t, text, DefaultSettings(), nil, node("n1", "a"))
	if got := kinds(result.Changes); !slices.Equal(got, []string{"add_host n1", "remove_host placeholder"}) || len(result.Findings) != 0 {
		t.Errorf("%v, %v", got, kinds(result.Findings))
	}
	if text := encoded(t, result.Racks); text != `[{"hosts":[{"labels":{"managed-by":"kubernetes"},"name":"n1"}],"name":"a"}]` {
		t.Errorf("%s", text)
	}
}

func TestManyRemovalsAtOnceAreRefused(t *testing.T) {
	var hosts []string
	var nodes []*corev1.Node
	for i := range 10 {
		hosts = append(hosts, fmt.Sprintf(`{"name": "n%d", "labels": {"managed-by": "kubernetes"}}`, i))
		nodes = append(nodes, node(fmt.Sprint("n", i), "a"))
	}
	text := `{"racks": [{"name": "a", "hosts": [` + strings.Join(hosts, ",") + `]}]}`
	if got := kinds(mustPlan(t, text, DefaultSettings(), nil, nodes[:8]...).Changes); !slices.Equal(got, []string{"remove_host n8", "remove_host n9"}) {
		t.Errorf("%v", got)
	}
	result := mustPlan(t, text, DefaultSettings(), nil, nodes[:7]...)
	if got := kinds(result.Findings); !slices.Equal(got, []string{"too_many_removals "}) || result.Racks != nil {
		t.Errorf("%v, %v", got, kinds(result.Changes))
	}
	settings := DefaultSettings()
	settings.MostRemoved = 1
	if got := mustPlan(t, text, settings, nil, nodes[:1]...).Changes; len(got) != 9 {
		t.Errorf("%v", kinds(got))
	}
}

// The service rejects a rack without hosts, so one would keep all changes from it for as long as too many nodes are gone.
func TestARackWithoutHostsLeavesAlsoWhileManyNodesAreGone(t *testing.T) {
	var hosts []string
	for i := range 10 {
		hosts = append(hosts, fmt.Sprintf(`{"name": "n%d", "labels": {"managed-by": "kubernetes"}}`, i))
	}
	text := `{"racks": [{"name": "a", "hosts": [` + strings.Join(hosts, ",") + `]},
		{"name": "b", "hosts": [{"name": "moved", "labels": {"managed-by": "kubernetes"}}]}]}`
	result := mustPlan(t, text, DefaultSettings(), nil, node("moved", "c"))
	if got := kinds(result.Changes); !slices.Equal(got, []string{"move_host moved"}) {
		t.Errorf("%v", got)
	}
	if got := kinds(result.Findings); !slices.Equal(got, []string{"too_many_removals "}) {
		t.Errorf("%v", got)
	}
	if text := encoded(t, result.Racks); strings.Contains(text, `"hosts":[]`) || strings.Contains(text, `"name":"b"`) {
		t.Errorf("%s", text)
	}
}

func TestAHostOfTheFileIsNotChangedUnlessItIsAdopted(t *testing.T) {
	text := `{"racks": [{"name": "a", "hosts": [{"name": "n1"}]}, {"name": "b", "hosts": [{"name": "n2"}]}]}`
	nodes := []*corev1.Node{node("n1", "b", "@"+NIC, "25G"), node("n2", "b")}
	result := mustPlan(t, text, DefaultSettings(), nil, nodes...)
	if got := kinds(result.Findings); !slices.Equal(got, []string{"other_rack n1"}) || result.Racks != nil {
		t.Errorf("%v, %v", got, kinds(result.Changes))
	}
	settings := DefaultSettings()
	settings.Adopt = true
	result = mustPlan(t, text, settings, nil, nodes...)
	if got := kinds(result.Changes); !slices.Equal(got, []string{"adopt_host n1", "adopt_host n2", "move_host n1", "set_nic n1"}) {
		t.Errorf("%v", got)
	}
	if len(result.Racks) != 1 {
		t.Errorf("%s", encoded(t, result.Racks))
	}
}

func TestTheDeclaredSpeedCountsBeforeTheReportedOne(t *testing.T) {
	for _, c := range []struct {
		name                string
		present, annotation string
		setting, reported   int64
		expected            string
	}{
		{"nothing is known", "", "", 0, 0, ""},
		{"the setting", "", "", 10e9, 0, "10Gbps"},
		{"the annotation before the setting", "", "25G", 100e9, 0, "25Gbps"},
		{"the agent's", "", "", 0, 40e9, "40Gbps"},
		{"a machine that is shaped below its card", "", "25G", 0, 40e9, "25Gbps"},
		{"the same after a report", "40Gbps", "25G", 0, 40e9, "25Gbps"},
		{"an agent below the setting", "", "", 25e9, 10e9, "10Gbps"},
		{"an agent behind a slow cable", "", "25G", 0, 1e9, "25Gbps"},
		{"a silent agent", "40Gbps", "", 10e9, 0, "40Gbps"},
		{"a corrected annotation", "40Gbps", "25G", 0, 0, "25Gbps"},
		{"no round number", "", "", 0, 9_999_999_999, "9999999999bps"},
		{"an invalid annotation", "", "fast", 0, 0, ""},
		{"a rate of no bits", "", "0", 0, 0, ""},
	} {
		nic := ""
		if c.present != "" {
			nic = `, "nic": "` + c.present + `"`
		}
		text := `{"racks": [{"name": "a", "hosts": [{"name": "n1", "labels": {"managed-by": "kubernetes"}` + nic + `}]}]}`
		n := node("n1", "a")
		if c.annotation != "" {
			n.Annotations[NIC] = c.annotation
		}
		settings := DefaultSettings()
		settings.NIC = c.setting
		speeds := map[string]int64{}
		if c.reported > 0 {
			speeds["n1"] = c.reported
		}
		result := mustPlan(t, text, settings, speeds, n)
		got := c.present
		if result.Racks != nil {
			got, _ = result.Racks[0].(map[string]any)["hosts"].([]any)[0].(map[string]any)["nic"].(string)
		}
		if got != c.expected {
			t.Errorf("%s: %q, expected %q", c.name, got, c.expected)
		}
	}
}

func TestARateForEachDirectionStays(t *testing.T) {
	text := `{"racks": [{"name": "a", "hosts": [{"name": "n1", "labels": {"managed-by": "kubernetes"}, "nic": {"up": "1Gbps", "down": "2Gbps"}}]}]}`
	if result := mustPlan(t, text, DefaultSettings(), map[string]int64{"n1": 10e9}, node("n1", "a")); result.Racks != nil {
		t.Errorf("%v", kinds(result.Changes))
	}
}

func TestTheLinkOfARackIsTheLargestAnnotationOfItsNodes(t *testing.T) {
	result := mustPlan(t, managed, DefaultSettings(), nil,
		node("n1", "a", "@"+RackLink, "40G"), node("n2", "b", "@"+RackLink, "100G"), node("n3", "b", "@"+RackLink, "80G"))
	if got := kinds(result.Changes); !slices.Equal(got, []string{"add_host n3", "set_rack_link b"}) {
		t.Errorf("%v", got)
	}
	settings := DefaultSettings()
	settings.RackLink = 400e9
	result = mustPlan(t, managed, settings, nil, node("n1", "a"), node("n2", "b"), node("n3", "c"))
	if text := encoded(t, result.Racks); !strings.Contains(text, `"link":"400Gbps","name":"c"`) || strings.Count(text, `"link"`) != 2 {
		t.Errorf("%s", text)
	}
}

func TestALinkWithARateForEachDirectionStays(t *testing.T) {
	text := `{"racks": [{"name": "a", "link": {"up": "40Gbps", "down": "80Gbps"},
		"hosts": [{"name": "n1", "labels": {"managed-by": "kubernetes"}}]}]}`
	if result := mustPlan(t, text, DefaultSettings(), nil, node("n1", "a", "@"+RackLink, "100G")); result.Racks != nil {
		t.Errorf("%v", kinds(result.Changes))
	}
}

func TestTaintsAreTagsBesideThoseOfTheOperator(t *testing.T) {
	text := `{"racks": [{"name": "a", "hosts": [{"name": "n1", "labels": {"managed-by": "kubernetes"}, "tags": ["fast", "taint:old:NoSchedule"]}]}]}`
	n := node("n1", "a")
	n.Spec.Taints = []corev1.Taint{
		{Key: "gpu", Value: "a100", Effect: corev1.TaintEffectNoSchedule}, {Key: "db", Effect: corev1.TaintEffectNoExecute},
		{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule},
		{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoExecute},
	}
	result := mustPlan(t, text, DefaultSettings(), nil, n)
	if got := encoded(t, result.Racks); !strings.Contains(got, `"tags":["fast","taint:db:NoExecute","taint:gpu=a100:NoSchedule"]`) {
		t.Errorf("%s", got)
	}
}

func TestTooManyTagsLeaveTheTaintsOut(t *testing.T) {
	var nodes []*corev1.Node
	for i := range 70 {
		n := node(fmt.Sprint("n", i), "a")
		n.Spec.Taints = []corev1.Taint{{Key: fmt.Sprint("t", i), Effect: corev1.TaintEffectNoSchedule}}
		nodes = append(nodes, n)
	}
	result := mustPlan(t, managed, DefaultSettings(), nil, append(nodes, node("n1", "a"), node("n2", "b"))...)
	if strings.Contains(encoded(t, result.Racks), tagPrefix) || !slices.Contains(kinds(result.Findings), "too_many_tags ") {
		t.Errorf("%v", kinds(result.Findings))
	}
}

func TestANodeWithoutAValidRackIsAFinding(t *testing.T) {
	result := mustPlan(t, managed, DefaultSettings(), nil, node("n1", "a"), node("n2", "b"), node("n3", ""), node("n4", "a/b"))
	if got := kinds(result.Findings); !slices.Equal(got, []string{"host_without_node store", "invalid_rack n4", "no_rack_label n3"}) {
		t.Errorf("%v", got)
	}
	if result.Racks != nil {
		t.Errorf("%v", kinds(result.Changes))
	}
}

func TestAnAbsurdClusterIsAnErrorThatNamesTheField(t *testing.T) {
	for text, field := range map[string]string{
		`{"shape": "pipe", "hosts": 4}`:              "shape",
		`{"racks": "many"}`:                          "racks",
		`{"racks": -1}`:                              "racks",
		`{"racks": 1e99}`:                            "racks",
		`{}`:                                         "racks",
		`{"racks": ["a"]}`:                           "racks[0]",
		`{"racks": [{"hosts": "many"}]}`:             "racks[0]: hosts",
		`{"racks": [{"count": 1.5}]}`:                "racks[0]: count",
		`{"racks": [{"hosts": [{"nic": "1Gbps"}]}]}`: "racks[0]: hosts[0]",
		`{"racks": [{"name": "a", "hosts": ["n1", "n2"]}]}`: "racks[0]: hosts[0]",
	} {
		if _, err := Plan(document(t, text), nil, nil, DefaultSettings()); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestRatesKeepTheirValueInText(t *testing.T) {
	for text, expected := range map[string]int64{
		"10Gbps": 10e9, "2.5 Gbit/s": 25e8, "100_000 kbps": 1e8, "1Tb/s": 1e12, "5bps": 5, "10": 0, "1GB/s": 0, "1GBps": 0, "-1Gbps": 0,
		"": 0, "Gbps": 0, "1e3Gbps": 1e12,
	} {
		rate, ok := readRate(text)
		if rate != expected || ok != (expected > 0) {
			t.Errorf("%q: %d, %v", text, rate, ok)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		rate := 1 + r.Int64N(1<<40)
		if read, ok := readRate(writeRate(rate)); !ok || read != rate {
			t.Fatalf("%d: %q: %d", rate, writeRate(rate), read)
		}
	}
}

// TestAPlanIsInStepAfterwards applies the plans of random clusters and nodes: a second plan changes nothing.
func TestAPlanIsInStepAfterwards(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 1000 {
		present := document(t, compact)
		settings := DefaultSettings()
		settings.Adopt, settings.MostRemoved = r.IntN(2) == 0, r.Float64()
		settings.NIC, settings.RackLink = int64(r.IntN(2))*10e9, int64(r.IntN(2))*40e9
		for range 4 {
			var nodes []*corev1.Node
			speeds := map[string]int64{}
			for i := range r.IntN(12) {
				n := node(fmt.Sprint([]string{"n", "r0h", "r1h"}[r.IntN(3)], i), []string{"", "r0", "r1", "x", "y", "b/d"}[r.IntN(6)])
				if r.IntN(3) == 0 {
					n.Annotations[NIC] = []string{"25G", "1G", "much"}[r.IntN(3)]
				}
				if r.IntN(3) == 0 {
					n.Annotations[RackLink] = []string{"40G", "100G", "-1"}[r.IntN(3)]
				}
				if r.IntN(4) == 0 {
					n.Spec.Taints = []corev1.Taint{{Key: fmt.Sprint("t", r.IntN(3)), Effect: corev1.TaintEffectNoSchedule}}
				}
				if r.IntN(3) == 0 {
					speeds[n.Name] = int64(1+r.IntN(4)) * 10e9
				}
				if !slices.ContainsFunc(nodes, func(other *corev1.Node) bool { return other.Name == n.Name }) {
					nodes = append(nodes, n)
				}
			}
			before := encoded(t, present)
			result, err := Plan(present, nodes, speeds, settings)
			if err != nil {
				t.Fatal(err)
			}
			if encoded(t, present) != before {
				t.Fatal("the document changed")
			}
			if (result.Racks == nil) != (len(result.Changes) == 0) {
				t.Fatalf("%d racks, changes %v", len(result.Racks), kinds(result.Changes))
			}
			if result.Racks == nil {
				continue
			}
			for _, entry := range result.Racks {
				if of := entry.(map[string]any); len(of["hosts"].([]any)) == 0 {
					t.Fatalf("rack %v has no host after %v", of["name"], kinds(result.Changes))
				}
			}
			next := maps.Clone(present)
			next["racks"] = result.Racks
			present = document(t, encoded(t, next))
			again, err := Plan(present, nodes, speeds, settings)
			if err != nil {
				t.Fatal(err)
			}
			for _, change := range again.Changes {
				// A large removal goes on in smaller steps.
				if change.Kind != RemoveHost {
					t.Fatalf("not in step after %v: %+v", kinds(result.Changes), change)
				}
			}
			if !reflect.DeepEqual(kinds(again.Findings), kinds(result.Findings)) && len(again.Changes) == 0 {
				t.Fatalf("findings changed from %v to %v", kinds(result.Findings), kinds(again.Findings))
			}
		}
	}
}

func BenchmarkAPlanOfFiveThousandNodes(b *testing.B) {
	var nodes []*corev1.Node
	for i := range 5000 {
		nodes = append(nodes, node(fmt.Sprint("n", i), fmt.Sprint("rack", i/25), "@"+NIC, "25G"))
	}
	first := mustPlan(b, compact, DefaultSettings(), nil, nodes...)
	present := document(b, encoded(b, map[string]any{"racks": first.Racks}))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Plan(present, nodes, nil, DefaultSettings()); err != nil {
			b.Fatal(err)
		}
	}
}
