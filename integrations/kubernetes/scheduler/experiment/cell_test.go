package main

import (
	"math"
	"slices"
	"testing"
)

// twoRacks returns a fabric of two racks, whose links carry a rate in bit/s.
func twoRacks(capacity float64) *fabric {
	f := &fabric{racks: []string{"r0", "r1"}, rackOf: map[string]int{"r0h0": 0, "r1h0": 1}}
	for side := range f.links {
		f.links[side] = []link{{capacity: capacity, share: 1}, {capacity: capacity, share: 1}}
	}
	return f
}

// steady returns a task with a constant rate out of its rack.
func steady(arrives, duration float64, bps int64, tolerant bool) task {
	return task{arrives: arrives, duration: duration, means: [2]int64{bps, 0}, peak: 1, tolerant: tolerant}
}

func TestALinkCarriesTheSumOfItsTasksOrItsCapacity(t *testing.T) {
	for _, c := range []struct {
		count          int
		load, progress float64
	}{{4, 4e9, 60}, {10, 10e9, 60}, {20, 10e9, 40}} {
		tasks := make([]task, c.count)
		for i := range tasks {
			tasks[i] = steady(0, 1000, 1e9, true)
		}
		of := newCell(settings{interval: 60, networkShare: 0.5}, tasks, twoRacks(10e9))
		for _, number := range of.arrivals(0) {
			of.start(number, 0)
		}
		of.settle(0)
		if loads := of.fabric.loads(); loads[out][0] != int64(c.load) || loads[out][1] != 0 || loads[in][0] != 0 {
			t.Errorf("%d tasks: %v", c.count, loads)
		}
		of.advance()
		// Half of the work waits for the network: with half of the rate, it takes one and a half times as long.
		if progress := 1000 - of.works[0].left; math.Abs(progress-c.progress) > 1e-9 {
			t.Errorf("%d tasks: %v s of work in a step", c.count, progress)
		}
	}
}

func TestTasksThatMayNotMoveAreNotSlowed(t *testing.T) {
	of := newCell(settings{interval: 60, networkShare: 0.5}, []task{steady(0, 120, 20e9, false)}, twoRacks(10e9))
	of.start(of.arrivals(0)[0], 0)
	for step := range 2 {
		of.settle(step)
		finished := of.advance()
		if (len(finished) == 1) != (step == 1) {
			t.Errorf("step %d: %v", step, finished)
		}
	}
}

func TestATaskArrivesOnceAndInTheStepAfterItsTime(t *testing.T) {
	of := newCell(settings{interval: 60}, []task{steady(0, 1, 1, true), steady(59, 1, 1, true), steady(60, 1, 1, true), steady(61, 1, 1, true)},
		twoRacks(1))
	for step, expected := range [][]int{{0}, {1, 2}, {3}, nil} {
		if arrived := of.arrivals(step); !slices.Equal(arrived, expected) {
			t.Errorf("step %d: %v", step, arrived)
		}
	}
}

func TestAMovedTaskSendsNothingForItsRestartAndThenElsewhere(t *testing.T) {
	of := newCell(settings{interval: 60, restart: 90}, []task{steady(0, 600, 1e9, true), steady(0, 600, 2e9, true)}, twoRacks(10e9))
	for _, number := range of.arrivals(0) {
		of.start(number, 0)
	}
	of.settle(0)
	of.advance()
	of.move(0, 1)
	of.settle(1)
	if loads := of.fabric.loads(); loads[out][0] != 2e9 {
		t.Errorf("a task that was moved away still sends: %v", loads)
	}
	of.advance()
	if of.mayStart(0, 1) || of.mayStart(0, 2) || !of.mayStart(0, 3) {
		t.Error("a restart of 90 s is over after two steps of 60 s")
	}
	of.start(0, 1)
	of.settle(3)
	if loads := of.fabric.loads(); loads[out][0] != 2e9 || loads[out][1] != 1e9 {
		t.Errorf("%v", loads)
	}
	if of.works[0].left != 540 || of.works[1].left != 480 {
		t.Errorf("work left: %v and %v", of.works[0].left, of.works[1].left)
	}
}

// Whatever happens to tasks, each sending one counts once, and no link carries more than its capacity.
func TestRandomHistoriesKeepTheSumsOfTasks(t *testing.T) {
	state := uint64(1)
	draw := func(count int) int {
		state = splitmix(state)
		return int(state % uint64(count))
	}
	tasks := make([]task, 200)
	for i := range tasks {
		tasks[i] = task{arrives: float64(i), duration: float64(60 + draw(2000)), means: [2]int64{int64(draw(1e9)), int64(draw(1e9))},
			peak: 2, tolerant: draw(2) == 0}
	}
	of := newCell(settings{seed: 3, interval: 60, restart: 60, networkShare: 0.3}, tasks, twoRacks(20e9))
	waiting, ended := map[int]bool{}, 0
	for step := range 200 {
		for _, number := range of.arrivals(step) {
			waiting[number] = true
		}
		for number := range tasks {
			switch {
			case waiting[number] && of.mayStart(number, step) && draw(2) == 0:
				of.start(number, draw(2))
				delete(waiting, number)
			case of.works[number].at >= 0 && draw(20) == 0:
				of.move(number, step)
				waiting[number] = true
			}
		}
		of.settle(step)
		sums := [2][2]int64{}
		for number := range of.works {
			if work := &of.works[number]; work.at >= 0 {
				if of.sending[work.at] != number {
					t.Fatalf("step %d: task %d is lost", step, number)
				}
				for side := range sums {
					sums[side][work.rack] += work.rates[side]
				}
			}
		}
		for side, loads := range of.fabric.loads() {
			for rack, load := range loads {
				if expected := min(sums[side][rack], 20e9); load != expected {
					t.Fatalf("step %d: %d, expected %d", step, load, expected)
				}
			}
		}
		ended += len(of.advance())
	}
	if ended+len(of.sending)+len(waiting) != len(tasks) || ended < 100 {
		t.Errorf("%d ended, %d send, %d wait", ended, len(of.sending), len(waiting))
	}
}
