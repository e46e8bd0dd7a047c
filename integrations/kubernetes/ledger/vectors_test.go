package ledger

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var vectorsFile = filepath.Join("..", "..", "..", "docs", "reference", "ledger-vectors.json")

// The types below have the shape of the file.

type vector struct {
	Name      string
	Tolerance float64 `json:"tolerance_bps"`
	Settings  settings
	Cluster   cluster
	Steps     []step
}

type settings struct {
	Interval     int64 `json:"interval_ns,string"`
	Alpha        float64
	Missing      string
	Initial      string
	Grace        int64   `json:"grace_ns,string"`
	UnknownAfter float64 `json:"unknown_after"`
	HoldPeak     bool    `json:"hold_peak"`
}

type cluster struct {
	Capacities []int64 `json:"capacities_bps"`
	Hosts      [][]int
	Sums       []struct {
		Resource int
		Of       []int
	}
	Promises bool
}

type step struct {
	At        int64 `json:"at_ns,string"`
	Operation struct {
		Report  []sample
		Commit  *changes
		View    *changes
		Started *struct {
			Entry string
			Start int64 `json:"start_ns,string"`
		}
		Believe *struct {
			Resource int
			Capacity int64 `json:"capacity_bps"`
		}
		Health *struct {
			Host int
			Up   bool
		}
		Advance *struct{}
	} `json:"op"`
	Expect []expected
}

type changes struct {
	Add     []entry
	Release []string
	Without []owner
}

type sample struct {
	Resource   int
	From       int64  `json:"from_ns,string"`
	Until      int64  `json:"until_ns,string"`
	Load       int64  `json:"load_bps"`
	Guaranteed *int64 `json:"guaranteed_bps"`
}

type owner struct{ Kind, ID string }

type hop struct {
	Resource int
	Work     float64
}

type entry struct {
	Entry  string
	Owner  owner
	Hops   []hop
	Demand struct {
		Elastic *struct {
			Bytes, Flows int64
			Cap          *int64 `json:"cap_bps"`
		}
		Stream *struct {
			Mean int64 `json:"mean_bps"`
			Peak int64 `json:"peak_bps"`
		}
		Envelope *struct {
			Mean int64 `json:"mean_bps"`
			Rate int64 `json:"rate_bps"`
		}
	}
	Sign   string
	Fade   fade
	Starts *int64 `json:"starts_ns,string"`
}

func (e entry) relieves() bool { return e.Sign == "relieves" }
func (e entry) fades() bool    { return e.Fade.Name == "with_estimator" || e.Fade.After != nil }

func (e entry) kind() int {
	if e.Demand.Envelope != nil {
		return 1
	}
	return 0
}

// fade is the name of a rule, or the rule with a time.
type fade struct {
	Name  string
	After *struct {
		TTL int64 `json:"ttl_ns,string"`
	}
}

func (f *fade) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &f.Name)
	}
	type rule fade
	return json.Unmarshal(data, (*rule)(f))
}

type expected struct {
	Resource         int
	Measured         *int64 `json:"measured_bps"`
	Derived          bool
	ExpectedCapacity *int64   `json:"expected_capacity_bps"`
	Residual         int64    `json:"residual_bps"`
	Share            int64    `json:"share_bps"`
	Utilization      *float64 `json:"utilization"`
	Unreserved       *int64   `json:"unreserved_bps"`
	HotSince         *int64   `json:"hot_since_ns,string"`
}

func TestTheRulesAgreeWithEveryPublishedVector(t *testing.T) {
	data, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) < 20 {
		t.Fatalf("the file has %d vectors", len(file.Vectors))
	}
	for _, v := range file.Vectors {
		t.Run(v.Name, func(t *testing.T) { replay(t, v) })
	}
}

func replay(t *testing.T, v vector) {
	estimator, err := NewEstimator(time.Duration(v.Settings.Interval), v.Settings.Alpha)
	if err != nil {
		t.Fatal(err)
	}
	ledger := newWhole(v.Cluster, v.Settings, estimator)
	ids := map[string]int{}
	for number, s := range v.Steps {
		view := apply(t, ledger, s, ids)
		for _, e := range s.Expect {
			where := fmt.Sprintf("step %d, link %d", number, e.Resource)
			compare(t, where, v.Tolerance, e, view)
		}
	}
}

func apply(t *testing.T, ledger *whole, s step, ids map[string]int) *whatIf {
	switch operation := s.Operation; {
	case operation.Report != nil:
		ledger.report(operation.Report, s.At)
	case operation.Commit != nil:
		var release []int
		for _, name := range operation.Commit.Release {
			release = append(release, ids[name])
		}
		for i, id := range ledger.commit(operation.Commit.Add, release, s.At) {
			ids[operation.Commit.Add[i].Entry] = id
		}
	case operation.Started != nil:
		ledger.markStarted(ids[operation.Started.Entry], operation.Started.Start, s.At)
	case operation.Believe != nil:
		ledger.believe(operation.Believe.Resource, operation.Believe.Capacity, s.At)
	case operation.Health != nil:
		ledger.setHealth(operation.Health.Host, operation.Health.Up, s.At)
	case operation.Advance != nil:
		ledger.advance(s.At)
	case operation.View != nil:
		ledger.advance(s.At)
		view := ledger.view(s.At)
		for _, o := range operation.View.Without {
			view.without(o)
		}
		for _, e := range operation.View.Add {
			view.add(e)
		}
		return view
	default:
		t.Fatalf("unknown operation at %d", s.At)
	}
	return ledger.view(s.At)
}

func compare(t *testing.T, where string, tolerance float64, e expected, view *whatIf) {
	t.Helper()
	link, ledger := e.Resource, view.ledger
	n, g, measured := view.numbers(link), ledger.gauges[link], ledger.measured(link, view.now)
	rate := func(name string, expected *int64, actual float64) {
		t.Helper()
		if (expected == nil) != math.IsNaN(actual) {
			t.Errorf("%s: %s: %v, expected known: %v", where, name, actual, expected != nil)
		} else if expected != nil && math.Abs(math.Round(actual)-float64(*expected)) > tolerance {
			t.Errorf("%s: %s: %v, expected %d", where, name, actual, *expected)
		}
	}
	rate("measured", e.Measured, measured)
	pressure := float64(g.pressure + view.pressure[link])
	rate("expected capacity", e.ExpectedCapacity, max(0, min(n.capacity, n.capacity-(measured+pressure))))
	rate("residual", &e.Residual, n.residual())
	rate("share", &e.Share, n.share(1))
	unreserved := math.NaN()
	if ledger.cluster.Promises {
		unreserved = n.capacity - float64(n.sums.reservedRate)
	}
	rate("unreserved", e.Unreserved, unreserved)
	if derived := g.source == sumBelow; derived != e.Derived {
		t.Errorf("%s: derived: %v, expected %v", where, derived, e.Derived)
	}
	utilization := Utilization(n.load(), 0, n.capacity)
	if (e.Utilization == nil) != math.IsNaN(utilization) ||
		e.Utilization != nil && math.Abs(utilization-*e.Utilization) > 1e-9 {
		t.Errorf("%s: utilization: %v, expected %v", where, utilization, e.Utilization)
	}
	hotSince := g.hotSince
	if math.IsNaN(measured) {
		hotSince = nil
	}
	if (hotSince == nil) != (e.HotSince == nil) || hotSince != nil && *hotSince != *e.HotSince {
		t.Errorf("%s: hot since: %v, expected %v", where, hotSince, e.HotSince)
	}
}
