package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"

	"leeward.dev/kubernetes/scheduler/controlplane"
)

// settle is the time after a report in which the plugin and the evictor get a snapshot with it.
const settle = 2 * snapshotInterval

// atOnce is the largest number of pods that are added before others: about those that are placed in a second on an idle machine.
const atOnce = 500

// driver advances simulated time. A step of the cell is a tick of the machine's clock; if scheduling takes longer, simulated
// time stands still until it is done.
type driver struct {
	plane   *controlplane.ControlPlane
	cell    *cell
	pods    *pods
	reports *reports
	tick    time.Duration
	output  *json.Encoder
	// delayed is true if pods have waited for their start since the last step.
	delayed bool
}

// headLine is the first line of the output: the racks in the order of all loads, the capacities of their links by direction,
// and the length of a step.
type headLine struct {
	Racks    []string   `json:"racks"`
	Capacity [2][]int64 `json:"capacity_bps"`
	Interval float64    `json:"interval_s"`
}

// stepLine is a step in the output. Placements and evictions are pairs of a task and a node, at the start of the step.
type stepLine struct {
	Step    int        `json:"step"`
	Load    [2][]int64 `json:"load_bps"`
	Placed  [][2]any   `json:"placed"`
	Evicted [][2]any   `json:"evicted"`
	Running int        `json:"running"`
	Waiting int        `json:"waiting"`
}

// endLine is the last line of the output: scheduling cycles in which the network ranked the nodes, placements, and the ticks
// that a step after the first one took on average.
type endLine struct {
	Ranked int     `json:"ranked"`
	Placed int     `json:"placements"`
	Ticks  float64 `json:"ticks_per_step"`
}

func newDriver(plane *controlplane.ControlPlane, of *cell, pods *pods, reports *reports, output io.Writer) *driver {
	return &driver{plane: plane, cell: of, pods: pods, reports: reports, tick: reports.tick, output: json.NewEncoder(output)}
}

// run runs a number of steps.
func (d *driver) run(ctx context.Context, steps int) error {
	head := headLine{Racks: d.cell.fabric.racks, Interval: d.cell.interval}
	for side := range d.cell.fabric.links {
		for rack := range d.cell.fabric.links[side] {
			head.Capacity[side] = append(head.Capacity[side], int64(d.cell.fabric.links[side][rack].capacity))
		}
	}
	if err := d.output.Encode(head); err != nil {
		return err
	}
	placements, began := 0, 0
	for step := range steps {
		written, err := d.step(ctx, step)
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		if step == 0 {
			began = d.reports.count()
		}
		placements += len(written.Placed)
		if err := d.output.Encode(written); err != nil {
			return err
		}
	}
	ticks := float64(d.reports.count()-began) / float64(max(steps-1, 1))
	return d.output.Encode(endLine{Ranked: int(controlplane.RankedPods()), Placed: placements, Ticks: ticks})
}

// step runs one step, in the order of the simulator: finished tasks leave, evicted ones stop, reports have arrived, tasks
// are placed and start, and the links carry their traffic until it is reported.
func (d *driver) step(ctx context.Context, step int) (stepLine, error) {
	var finished []int
	if step > 0 {
		finished = d.cell.advance()
	}
	if err := d.pods.end(ctx, finished); err != nil {
		return stepLine{}, err
	}
	pause(ctx, settle)
	// A pod that is evicted while it ends is no eviction, so those are taken after the ends.
	evicted := d.pods.takeEvicted()
	requested := make([]int, 0, len(evicted))
	for _, of := range evicted {
		d.cell.move(of.task, step)
		requested = append(requested, of.task)
	}
	if err := d.place(ctx, step, append(requested, d.cell.arrivals(step)...)); err != nil {
		return stepLine{}, err
	}
	written := stepLine{
		Step: step, Load: d.cell.fabric.loads(), Placed: pairs(d.pods.takePlaced()), Evicted: pairs(evicted),
		Running: len(d.cell.sending), Waiting: d.pods.waiting(),
	}
	return written, d.reports.carry(ctx, written.Load)
}

// place places tasks, and lets those with a node send. Thousands of tasks take many ticks, and those that are placed show in
// telemetry meanwhile: the service would otherwise take it that they send nothing.
func (d *driver) place(ctx context.Context, step int, tasks []int) error {
	for {
		now := tasks[:min(len(tasks), atOnce)]
		tasks = tasks[len(now):]
		if err := d.pods.add(ctx, now); err != nil {
			return err
		}
		if err := d.pods.await(ctx); err != nil {
			return err
		}
		if err := d.start(ctx, step); err != nil {
			return err
		}
		d.cell.settle(step)
		if len(tasks) == 0 {
			return nil
		}
		d.reports.set(d.cell.fabric.loads())
	}
}

// start starts pods with a node. The API stores their start in whole seconds, and the service counts the traffic that
// telemetry cannot show yet from it. So they start only in ticks that begin with a second, at the latest in the next step.
func (d *driver) start(ctx context.Context, step int) error {
	now := time.Now().Truncate(d.tick)
	if second := now.Truncate(time.Second); !now.Equal(second) {
		if !d.delayed {
			d.delayed = true
			return nil
		}
		now = second.Add(time.Second)
		pause(ctx, time.Until(now))
	}
	d.delayed = false
	bound := d.pods.takeBound(func(task int) bool { return d.cell.mayStart(task, step) })
	list := make([]*corev1.Pod, 0, len(bound))
	for number, pod := range bound {
		d.cell.start(number, d.cell.fabric.rackOf[pod.Spec.NodeName])
		list = append(list, pod)
	}
	return d.plane.StartPods(ctx, list, now)
}

// pairs returns placements as pairs for the output.
func pairs(placements []placement) [][2]any {
	list := make([][2]any, 0, len(placements))
	for _, of := range placements {
		list = append(list, [2]any{of.task, of.node})
	}
	return list
}
