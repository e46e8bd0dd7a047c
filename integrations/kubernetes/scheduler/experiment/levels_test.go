package main

import (
	"math"
	"testing"
)

// The values are the loads of the only sending task in runs of the simulator, for a mean of 1 Gb/s and a peak of 2 Gb/s.
func TestATaskSendsAsInTheSimulator(t *testing.T) {
	of := newLevels(7, 60)
	for _, c := range []struct {
		task, step uint64
		load       float64
	}{
		{0, 0, 1686689889}, {0, 4, 1686689889}, {0, 5, 1831458700}, {0, 10, 430601691},
		{3, 0, 583649129}, {3, 1, 583649129}, {3, 2, 1097671835}, {3, 7, 968213446}, {3, 12, 285163120},
	} {
		if load := math.Round(1e9 * of.level(c.task, c.step, 2)); load != c.load {
			t.Errorf("task %d, step %d: %.0f, expected %.0f", c.task, c.step, load, c.load)
		}
	}
}

func TestLevelsHaveTheirMeanAndTheirPeak(t *testing.T) {
	for _, peak := range []float64{1, 1.5, 2, 8} {
		of, sum, most := newLevels(1, 60), 0.0, 0.0
		for task := range uint64(20_000) {
			level := of.level(task, 0, peak)
			sum, most = sum+level, max(most, level)
		}
		if mean := sum / 20_000; math.Abs(mean-1) > 0.05 || most > peak {
			t.Errorf("peak %v: mean %v, most %v", peak, mean, most)
		}
	}
}
