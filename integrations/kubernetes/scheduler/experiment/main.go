// The command experiment runs a cell of simulated tasks under the real kube-scheduler: as it is, with the plugin NetworkLoad,
// with the evictor, or with both.
//
// The control plane, the scheduler and the evictor are real, and so is the service of Leeward, which this command expects at
// an address. The tasks of a list arrive as pods. The links of racks carry the traffic of the pods from the nodes where the
// scheduler puts them, and report it to the service over HTTP (Hotspots, section 5.1, tables 2 and 3).
//
// Simulated time passes in steps of the interval of reports. A step takes a tick of the machine's clock, such as half a second for
// a minute, and longer while the scheduler has not placed all pods. The service, the plugin and the evictor have the tick as
// their interval of reports. So all that they count in reports is as it would be in real time.
//
// The output has a line of JSON for each step. The command ends with its standard input, so nothing outlives its caller.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"syscall"
	"time"

	"leeward.dev/kubernetes/scheduler/controlplane"
	"leeward.dev/kubernetes/snapshot"
)

// options are the flags.
type options struct {
	nodes, tasks, controller, arm string
	seed                          uint64
	interval, tick, restart       time.Duration
	networkShare                  float64
	steps                         int
}

func main() {
	var o options
	flag.StringVar(&o.nodes, "nodes", "", "`file` with the nodes: node, rack, cpus, memory_bytes")
	flag.StringVar(&o.tasks, "tasks", "", "`file` with the tasks, in the columns of Leeward's workload tasks")
	flag.StringVar(&o.controller, "controller", "", "`address` of the service, which has the nodes as hosts")
	flag.StringVar(&o.arm, "arm", string(armDefault), "`parts` of Leeward: default (none), network-load, evictor or both")
	flag.Uint64Var(&o.seed, "seed", 1, "`seed` of the rates of tasks")
	flag.DurationVar(&o.interval, "interval", time.Minute, "simulated `time` of a step, between two reports of a link")
	flag.DurationVar(&o.tick, "tick", 500*time.Millisecond, "real `time` of a step: the service's interval of reports")
	flag.DurationVar(&o.restart, "restart", time.Minute, "simulated `time` for which a moved task is down")
	flag.Float64Var(&o.networkShare, "network-share", 0.5, "`share` of a tolerant task's work that waits for the network")
	flag.IntVar(&o.steps, "steps", 60, "`number` of steps")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	err := o.run(ctx, os.Stdout)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// check returns an error that names an invalid flag.
func (o *options) check() error {
	switch {
	case o.controller == "":
		return errors.New("-controller: missing: name the address of the service")
	case o.tick < snapshotInterval || (time.Second%o.tick != 0 && o.tick%time.Second != 0):
		return fmt.Errorf("-tick: %v: expected a part of a second from %v, or whole seconds", o.tick, snapshotInterval)
	case o.interval < time.Second || o.interval > time.Hour:
		return fmt.Errorf("-interval: %v: expected 1s to 1h", o.interval)
	case o.restart < 0 || o.restart > 24*time.Hour:
		return fmt.Errorf("-restart: %v: expected 0s to 24h", o.restart)
	case math.IsNaN(o.networkShare) || o.networkShare < 0 || o.networkShare >= 1:
		return fmt.Errorf("-network-share: %v: expected a share from 0, below 1", o.networkShare)
	case o.steps < 1:
		return fmt.Errorf("-steps: %d: expected at least 1", o.steps)
	}
	return nil
}

func (o *options) run(ctx context.Context, output io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	of, err := parseArm(o.arm)
	if err != nil {
		return err
	}
	nodes, err := readNodes(o.nodes)
	if err != nil {
		return err
	}
	tasks, err := readTasks(o.tasks)
	if err != nil {
		return err
	}
	client, err := snapshot.NewClient(snapshotsOf(o.controller))
	if err != nil {
		return err
	}
	network, err := client.Get(ctx, nil, true)
	if err != nil {
		return err
	}
	fabric, err := newFabric(network, nodes)
	if err != nil {
		return err
	}
	cell := newCell(settings{
		seed: o.seed, interval: o.interval.Seconds(), restart: o.restart.Seconds(), networkShare: o.networkShare,
	}, tasks, fabric)
	folder, err := os.MkdirTemp("", "leeward-experiment-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	plane, err := controlplane.Start(ctx, folder)
	if err != nil {
		return err
	}
	defer plane.Stop()
	if err := plane.CreateNodes(ctx, nodes); err != nil {
		return err
	}
	return o.drive(ctx, plane, cell, newReports(client, fabric, o.tick), of, output)
}

// drive starts the parts of an arm, and runs all steps.
func (o *options) drive(
	ctx context.Context, plane *controlplane.ControlPlane, cell *cell, reports *reports, of arm, output io.Writer,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// A report that fails ends the run.
		cancel(reports.run(ctx))
	}()
	defer func() {
		cancel(nil)
		<-ended
	}()
	pods, err := watchPods(ctx, plane, cell.tasks)
	if err != nil {
		return err
	}
	running, err := startParts(ctx, plane, of, o.controller, o.tick)
	if err != nil {
		return err
	}
	defer running.stop()
	if err := newDriver(plane, cell, pods, reports, output).run(ctx, o.steps); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	return running.check()
}
