package ledger

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func estimator(t testing.TB) Estimator {
	t.Helper()
	e, err := NewEstimator(time.Second, 0.2)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestMeasuredAndPendingRatesAddUpToTheLoadAtEveryWindow(t *testing.T) {
	e, random := estimator(t), rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		other, rate := random.Float64()*1e10, random.Int64N(2e10)-1e10
		work := NewWork(rate)
		start := random.Int64N(5e9)
		work.Start(start)
		measured, from := other, int64(0)
		for range 30 {
			window := Window{From: from, Until: from + 1 + random.Int64N(3e9)}
			weight := e.Weight(window.Until - from)
			after := float64(window.Until-max(start, window.From)) / float64(window.Until-window.From)
			measured = (1-weight)*measured + weight*(other+max(after, 0)*float64(rate))
			work.TakeIn(window, weight)
			if sum := measured + work.Settling(); math.Abs(sum-other-float64(rate)) > 1e-3 {
				t.Fatalf("%v measured and %v pending: expected %v", measured, work.Settling(), other+float64(rate))
			}
			from = window.Until
		}
	}
}

func TestTwoReportsOfAnIntervalWeighAsOneOfTwo(t *testing.T) {
	e := estimator(t)
	twice := 1 - (1-e.Weight(1e9))*(1-e.Weight(1e9))
	if once := e.Weight(2e9); math.Abs(once-twice) > 1e-15 {
		t.Errorf("%v and %v", once, twice)
	}
}

func TestWorkCountsInFullUntilItStarts(t *testing.T) {
	work := NewWork(100)
	for at := range int64(10) {
		work.TakeIn(Window{From: at, Until: at + 1}, 0.5)
	}
	if work.Held() != 100 || work.Settling() != 0 {
		t.Errorf("held %d, settling %v", work.Held(), work.Settling())
	}
}

func TestASecondStartChangesNothing(t *testing.T) {
	work := NewWork(100)
	work.Start(0)
	work.TakeIn(Window{From: 0, Until: 10}, 0.5)
	work.Start(10)
	work.TakeIn(Window{From: 10, Until: 20}, 0.5)
	if work.Settling() != 25 {
		t.Errorf("settling %v", work.Settling())
	}
}

func TestAnEmptyOrReversedWindowChangesNothing(t *testing.T) {
	work := NewWork(100)
	work.Start(5)
	for _, window := range []Window{{From: 7, Until: 7}, {From: 9, Until: 3}} {
		work.TakeIn(window, 0.5)
	}
	if work.Settling() != 100 {
		t.Errorf("settling %v", work.Settling())
	}
}

func TestAbsurdRatesAreBounded(t *testing.T) {
	for _, rate := range []int64{math.MaxInt64, math.MinInt64, math.MinInt64 + 1} {
		work := NewWork(rate)
		if sum := math.Abs(float64(work.Held()) + work.Settling()); sum != float64(MaxRate) {
			t.Errorf("%d counts as %v", rate, sum)
		}
	}
}

func TestNoMoreLeavesThanIsMeasured(t *testing.T) {
	if load := Load(300, 50, -400); load != 50 {
		t.Errorf("load %v", load)
	}
}

func TestUtilizationIsUnknownWithoutTelemetryAndInfiniteWithoutCapacity(t *testing.T) {
	if u := Utilization(Load(math.NaN(), 5, 5), 1, 10); !math.IsNaN(u) {
		t.Errorf("unknown load: %v", u)
	}
	if u := Utilization(1, 1, 0); !math.IsInf(u, 1) {
		t.Errorf("no capacity: %v", u)
	}
	if u := Utilization(3, 2, 10); u != 0.5 {
		t.Errorf("utilization %v", u)
	}
}

func TestInvalidEstimatorsAreRejected(t *testing.T) {
	for _, c := range []struct {
		interval time.Duration
		alpha    float64
	}{{0, 0.2}, {-1, 0.2}, {time.Second, 0}, {time.Second, 1.1}, {time.Second, math.NaN()}} {
		if _, err := NewEstimator(c.interval, c.alpha); err == nil {
			t.Errorf("%v and %v are accepted", c.interval, c.alpha)
		}
	}
}
