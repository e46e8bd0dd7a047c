package main

import (
	"encoding/binary"
	"math"
)

// levelSeconds is the time for which the rate of a task stays constant, as in the simulator.
const levelSeconds = 300

// levelName is the name of these draws in the simulator.
const levelName = "cell.level"

// levels are the rates of tasks as multiples of their means. They are those of the simulator of cells
// (crates/scenarios/src/driver/cell): a hash of seed, task and time, so a task sends the same in every run of a seed.
type levels struct {
	state uint64
	// steps is the number of steps for which a rate stays constant.
	steps uint64
}

// newLevels returns the levels of a seed for steps of a length in seconds.
func newLevels(seed uint64, step float64) levels {
	var name [24]byte
	copy(name[:], levelName)
	state := splitmix(seed)
	for word := range 3 {
		state = splitmix(state ^ binary.LittleEndian.Uint64(name[8*word:]))
	}
	return levels{state: state, steps: uint64(max(math.Round(levelSeconds/step), 1))}
}

// level returns the level of a task at a step: 0 to peak, with a mean of 1. Not all tasks change at the same step.
func (l levels) level(task, step uint64, peak float64) float64 {
	if peak <= 1 {
		return 1
	}
	// A float holds the high 53 bits.
	u := float64(splitmix(splitmix(l.state^task)^(step+task)/l.steps)>>11) / (1 << 53)
	return peak * (1 - math.Pow(1-u, 1/(peak-1)))
}

// splitmix returns the next value of the generator SplitMix64.
func splitmix(state uint64) uint64 {
	z := state + 0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}
