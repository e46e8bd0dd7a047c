package v1alpha1

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// group returns a group of pods with its name as a label.
func group(name string, count int32) Group {
	return Group{Name: name, Count: count, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"group": name}}}
}

// collective returns a matrix with one collective of one group.
func collective(pattern Pattern, count int32, bytes string) *TrafficMatrixSpec {
	return &TrafficMatrixSpec{
		Groups:      []Group{group("worker", count)},
		Collectives: []Collective{{Pattern: pattern, Groups: []string{"worker"}, Bytes: resource.MustParse(bytes)}},
	}
}

func appOf(t *testing.T, spec *TrafficMatrixSpec) *App {
	t.Helper()
	app, err := spec.App()
	if err != nil {
		t.Fatal(err)
	}
	return app
}

// sums returns the bytes that each task sends and receives.
func sums(app *App) (sent, received []int64) {
	sent, received = make([]int64, len(app.Tasks)), make([]int64, len(app.Tasks))
	for _, pair := range app.Pairs {
		sent[pair.From] += pair.Bytes
		received[pair.To] += pair.Bytes
	}
	return sent, received
}

func TestEachPatternHasItsNumberOfPairs(t *testing.T) {
	for n := int32(2); n <= 40; n++ {
		for pattern, pairs := range map[Pattern]int32{Ring: n, Tree: 2 * (n - 1), AllToAll: n * (n - 1), Pipeline: n - 1} {
			app := appOf(t, collective(pattern, n, "3"))
			if int32(len(app.Pairs)) != pairs || app.Bytes() != 3*int64(pairs) {
				t.Errorf("%s of %d: %d pairs, %d bytes", pattern, n, len(app.Pairs), app.Bytes())
			}
		}
	}
}

func TestEveryTaskOfARingSendsAndReceivesOnce(t *testing.T) {
	for n := int32(2); n <= 40; n++ {
		sent, received := sums(appOf(t, collective(Ring, n, "5")))
		for task := range sent {
			if sent[task] != 5 || received[task] != 5 {
				t.Errorf("task %d of %d: %d sent, %d received", task, n, sent[task], received[task])
			}
		}
	}
}

func TestATreeReachesEveryTaskAndHasBothDirections(t *testing.T) {
	for n := int32(2); n <= 40; n++ {
		app := appOf(t, collective(Tree, n, "1"))
		has := map[[2]int32]bool{}
		reached := map[int32]bool{0: true}
		for _, pair := range app.Pairs {
			has[[2]int32{pair.From, pair.To}] = true
			if pair.From < pair.To {
				// Pairs are in the order of their senders, so a parent comes before its children.
				if !reached[pair.From] {
					t.Errorf("%d tasks: %d is not reached", n, pair.From)
				}
				reached[pair.To] = true
			}
		}
		for pair := range has {
			if !has[[2]int32{pair[1], pair[0]}] {
				t.Errorf("%d tasks: %v has no way back", n, pair)
			}
		}
		if len(reached) != int(n) {
			t.Errorf("%d tasks: %d reached", n, len(reached))
		}
	}
}

func TestNoTaskSendsToItselfAndPairsAreUniqueAndInOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		app := appOf(t, randomSpec(random))
		last := [2]int32{-1, -1}
		for _, pair := range app.Pairs {
			next := [2]int32{pair.From, pair.To}
			inOrder := next[0] > last[0] || next[0] == last[0] && next[1] > last[1]
			if pair.From == pair.To || pair.Bytes <= 0 || !inOrder || int(max(pair.From, pair.To)) >= len(app.Tasks) {
				t.Fatalf("%+v after %v", pair, last)
			}
			last = next
		}
	}
}

func randomSpec(random *rand.Rand) *TrafficMatrixSpec {
	spec := &TrafficMatrixSpec{}
	for i := range 1 + random.IntN(4) {
		spec.Groups = append(spec.Groups, group(fmt.Sprintf("g%d", i), 1+random.Int32N(5)))
	}
	name := func() string { return spec.Groups[random.IntN(len(spec.Groups))].Name }
	for range random.IntN(5) {
		bytes := resource.NewQuantity(random.Int64N(1000), resource.DecimalSI)
		spec.Transfers = append(spec.Transfers, Transfer{From: name(), To: name(), Bytes: *bytes})
	}
	patterns := []Pattern{Ring, Tree, AllToAll, Pipeline}
	first, second := spec.Groups[0], spec.Groups[len(spec.Groups)-1]
	if first.Name != second.Name {
		spec.Collectives = append(spec.Collectives, Collective{
			Pattern: patterns[random.IntN(4)], Groups: []string{first.Name, second.Name}, Bytes: resource.MustParse("7"),
		})
	}
	return spec
}

func TestBytesOfPartsAddUp(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		spec := randomSpec(random)
		whole := appOf(t, spec)
		sum := int64(0)
		for i := range spec.Transfers {
			part := *spec
			part.Transfers, part.Collectives = spec.Transfers[i:i+1], nil
			sum += appOf(t, &part).Bytes()
		}
		rest := *spec
		rest.Transfers = nil
		sum += appOf(t, &rest).Bytes()
		if whole.Bytes() != sum {
			t.Fatalf("%d bytes: expected %d", whole.Bytes(), sum)
		}
	}
}

func TestRowsOfNumbersAreTheSameAppAsTransfers(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		spec := randomSpec(random)
		app := appOf(t, spec)
		rows := TrafficMatrixSpec{Groups: spec.Groups, Matrix: make([][]resource.Quantity, len(app.Tasks))}
		for i := range rows.Matrix {
			rows.Matrix[i] = make([]resource.Quantity, len(app.Tasks))
			rows.Matrix[i][i] = resource.MustParse("9")
		}
		for _, pair := range app.Pairs {
			rows.Matrix[pair.From][pair.To] = *resource.NewQuantity(pair.Bytes, resource.DecimalSI)
		}
		same := appOf(t, &rows)
		if fmt.Sprint(same.Pairs) != fmt.Sprint(app.Pairs) {
			t.Fatalf("%v: expected %v", same.Pairs, app.Pairs)
		}
	}
}

func TestATransferMayNameOnePodOfAGroup(t *testing.T) {
	two, zero := int32(2), int32(0)
	app := appOf(t, &TrafficMatrixSpec{
		Groups: []Group{group("store", 1), group("worker", 3)},
		Transfers: []Transfer{
			{From: "worker", FromIndex: &two, To: "store", ToIndex: &zero, Bytes: resource.MustParse("1Ki")},
			{From: "store", To: "worker", Bytes: resource.MustParse("2")},
		},
	})
	if fmt.Sprint(app.Pairs) != "[{0 1 2} {0 2 2} {0 3 2} {3 0 1024}]" || app.Tasks[3].Name() != "worker.2" {
		t.Errorf("%v, %v", app.Pairs, app.Tasks)
	}
}

func TestAnInvalidMatrixIsAnErrorThatNamesTheField(t *testing.T) {
	nine := int32(9)
	bytes := resource.MustParse
	with := func(change func(*TrafficMatrixSpec)) *TrafficMatrixSpec {
		spec := collective(Ring, 4, "1")
		change(spec)
		return spec
	}
	for expected, spec := range map[string]*TrafficMatrixSpec{
		"spec.groups: no pods":                        {},
		`spec.groups[0].name: "A b"`:                  with(func(s *TrafficMatrixSpec) { s.Groups[0].Name = "A b" }),
		`spec.groups[1].name: "worker": occurs twice`: with(func(s *TrafficMatrixSpec) { s.Groups = append(s.Groups, s.Groups[0]) }),
		"spec.groups[0]: \"worker\": expected a sel":  with(func(s *TrafficMatrixSpec) { s.Groups[0].Selector = nil }),
		"spec.groups[0].count: 5: expected 1":         with(func(s *TrafficMatrixSpec) { s.Groups[0] = Group{Name: "worker", Count: 5, Pods: []string{"a"}} }),
		`spec.groups[0].pods[1]: "a": occurs twice`:   with(func(s *TrafficMatrixSpec) { s.Groups[0] = Group{Name: "worker", Pods: []string{"a", "a"}} }),
		"spec.groups[0].count: 1001":                  with(func(s *TrafficMatrixSpec) { s.Groups[0].Count = 1001 }),
		"spec.groups[0].count: -1":                    with(func(s *TrafficMatrixSpec) { s.Groups[0].Count = -1 }),
		"spec.groups[0].selector":                     with(func(s *TrafficMatrixSpec) { s.Groups[0].Selector.MatchLabels = map[string]string{"a b": ""} }),
		`spec.transfers[0].from: "x": no such group`:  with(func(s *TrafficMatrixSpec) { s.Transfers = []Transfer{{From: "x", To: "worker", Bytes: bytes("1")}} }),
		"spec.transfers[0].toIndex: 9: expected 0 to 3": with(func(s *TrafficMatrixSpec) {
			s.Transfers = []Transfer{{From: "worker", To: "worker", ToIndex: &nine, Bytes: bytes("1")}}
		}),
		"spec.transfers[0].bytes: -1": with(func(s *TrafficMatrixSpec) {
			s.Transfers = []Transfer{{From: "worker", To: "worker", Bytes: bytes("-1")}}
		}),
		"spec.collectives[0].bytes: 92233":             collective(Ring, 4, "8Ei"),
		"spec.collectives[0]: the app sends more than": collective(AllToAll, 4, "1Ei"),
		"spec.collectives[0].groups: 1 pods":           collective(Ring, 1, "1"),
		`spec.collectives[0].pattern: "Star"`:          collective("Star", 4, "1"),
		`spec.collectives[0].groups[0]: "x"`:           with(func(s *TrafficMatrixSpec) { s.Collectives[0].Groups[0] = "x" }),
		"spec.collectives[0]: more than 100000 pairs":  collective(AllToAll, 400, "1"),
		"spec.matrix: 1 rows: expected 4":              with(func(s *TrafficMatrixSpec) { s.Matrix = make([][]resource.Quantity, 1) }),
		"spec.matrix[0]: 0 columns: expected 4":        with(func(s *TrafficMatrixSpec) { s.Matrix = make([][]resource.Quantity, 4) }),
	} {
		app, err := spec.App()
		var problem *InvalidError
		if app != nil || !errors.As(err, &problem) || !strings.HasPrefix(err.Error(), expected) {
			t.Errorf("%s: %v", expected, err)
		}
	}
}

func TestACopySharesNothingWithItsOriginal(t *testing.T) {
	one := int32(1)
	bytes := resource.MustParse("1")
	original := &TrafficMatrix{
		ObjectMeta: metav1.ObjectMeta{Name: "m", Labels: map[string]string{"a": "b"}},
		Spec: TrafficMatrixSpec{
			Groups:      []Group{{Name: "g", Pods: []string{"p"}}, group("h", 2)},
			Transfers:   []Transfer{{From: "g", FromIndex: &one, To: "h", ToIndex: &one, Bytes: bytes}},
			Collectives: []Collective{{Pattern: Ring, Groups: []string{"h"}, Bytes: bytes}},
			Matrix:      [][]resource.Quantity{{bytes}},
		},
		Status: TrafficMatrixStatus{Bytes: &bytes, Conditions: []metav1.Condition{{Type: "Valid"}}},
	}
	copied := original.DeepCopyObject().(*TrafficMatrix)
	before := original.Spec.Transfers[0].Bytes.String()
	copied.Labels["a"] = "c"
	copied.Spec.Groups[0].Pods[0] = "q"
	copied.Spec.Groups[1].Selector.MatchLabels["group"] = "x"
	*copied.Spec.Transfers[0].FromIndex, *copied.Spec.Transfers[0].ToIndex = 7, 7
	copied.Spec.Transfers[0].Bytes.Add(bytes)
	copied.Spec.Collectives[0].Groups[0] = "x"
	copied.Spec.Matrix[0][0].Add(bytes)
	copied.Status.Bytes.Add(bytes)
	copied.Status.Conditions[0].Type = "x"
	switch {
	case original.Labels["a"] != "b", original.Spec.Groups[0].Pods[0] != "p",
		original.Spec.Groups[1].Selector.MatchLabels["group"] != "h", one != 1,
		original.Spec.Transfers[0].Bytes.String() != before, original.Spec.Collectives[0].Groups[0] != "h",
		original.Spec.Matrix[0][0].Value() != 1, bytes.Value() != 1, original.Status.Conditions[0].Type != "Valid":
		t.Errorf("%+v", original)
	}
}
