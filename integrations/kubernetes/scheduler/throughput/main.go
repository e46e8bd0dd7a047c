// The command throughput measures how many pods a second kube-scheduler places: as it is, with the plugin NetworkLoad, and
// with the plugin while the service is gone.
//
// Each round measures all three, in an order that rotates, on one control plane in this process. All pods exist before the
// scheduler begins. The rate is that from the first binding to the last. The processor time is that of the whole process:
// API server, etcd, scheduler, and a service for the plugin. It depends less on what else the machine does.
//
// The last column compares each mode with the default one of the same round: the mean of the differences and its 95 % interval.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"leeward.dev/kubernetes/arguments"
	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/internal/fake"
	"leeward.dev/kubernetes/networkload"
	"leeward.dev/kubernetes/scheduler/controlplane"
)

// rackSize is the number of nodes in a rack.
const rackSize = 40

// warmUp is the time in which the plugin gets its first snapshot. Without the service it is wasted alike.
const warmUp = 3 * time.Second

var modes = [...]string{"default", "NetworkLoad", "NetworkLoad, service gone"}

func main() {
	nodes := flag.Int("nodes", 1000, "`number` of nodes, a multiple of 40")
	pods := flag.Int("pods", 3000, "`number` of pods")
	rounds := flag.Int("rounds", 10, "`number` of measurements of each mode")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	if err := run(ctx, *nodes, *pods, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, nodes, pods, rounds int) error {
	switch {
	case nodes < rackSize || nodes%rackSize != 0:
		return fmt.Errorf("-nodes: %d: expected a multiple of %d", nodes, rackSize)
	case pods < 2 || rounds < 1:
		return fmt.Errorf("-pods: %d, -rounds: %d: expected at least 2 pods and 1 round", pods, rounds)
	}
	folder, err := os.MkdirTemp("", "leeward-throughput-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	plane, err := controlplane.Start(ctx, folder)
	if err != nil {
		return err
	}
	defer plane.Stop()
	network := fake.Tree(0, nodes/rackSize, rackSize)
	if err := plane.AddNodes(ctx, network.RackOf(), 110); err != nil {
		return err
	}
	service, err := fake.NewController(network).Serve(ctx, time.Second)
	if err != nil {
		return err
	}
	figures := map[string][]figure{}
	for round := range rounds {
		for i := range modes {
			mode := modes[(round+i)%len(modes)]
			of, err := measure(ctx, plane, mode, service, pods)
			if err != nil {
				return fmt.Errorf("%s: %w", mode, err)
			}
			fmt.Fprintf(os.Stderr, "round %d: %s: %.0f pods/s, %.2f ms of processor time a pod\n",
				round+1, mode, of.podsPerSecond, of.processor)
			figures[mode] = append(figures[mode], of)
		}
	}
	report(os.Stdout, figures)
	return nil
}

// figure is one measurement.
type figure struct {
	podsPerSecond float64
	// processor is the processor time of this process in ms a pod.
	processor float64
}

// measure returns the figure of one mode.
func measure(ctx context.Context, plane *controlplane.ControlPlane, mode, service string, pods int) (figure, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	var before time.Duration
	scheduler := controlplane.Scheduler{BeforeFirst: func(context.Context) {
		time.Sleep(warmUp)
		before = processorTime()
	}}
	switch mode {
	case modes[1]:
		scheduler.NetworkLoad = &networkload.Args{Service: arguments.Service{Controllers: []string{service}}}
	case modes[2]:
		// Nothing listens at this port.
		scheduler.NetworkLoad = &networkload.Args{Service: arguments.Service{Controllers: []string{"http://127.0.0.1:1"}}}
	}
	if scheduler.NetworkLoad != nil {
		scheduler.NetworkLoad.MaxAge = metav1.Duration{Duration: 10 * time.Second}
	}
	annotations := map[string]string{demand.PeakEgress: "50M", demand.PeakIngress: "50M"}
	if err := plane.AddPods(ctx, "pod", pods, annotations); err != nil {
		return figure{}, err
	}
	bindings, err := plane.WatchBindings(ctx)
	if err != nil {
		return figure{}, err
	}
	ranked := controlplane.RankedPods()
	stop, err := plane.StartScheduler(ctx, scheduler)
	if err != nil {
		return figure{}, err
	}
	defer stop()
	if err := bindings.Wait(ctx, pods); err != nil {
		return figure{}, err
	}
	of := figure{
		podsPerSecond: bindings.Rate(), processor: (processorTime() - before).Seconds() * 1000 / float64(pods),
	}
	// A measurement of a plugin that did nothing would say nothing.
	if share := (controlplane.RankedPods() - ranked) / float64(pods); (mode == modes[1]) != (share > 0.95) {
		return figure{}, fmt.Errorf("the network ranked the nodes of %.0f %% of the pods", 100*share)
	}
	return of, plane.DeletePods(ctx)
}

// processorTime returns the processor time of this process up to now.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
