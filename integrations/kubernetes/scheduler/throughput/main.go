// The command throughput measures how many pods a second kube-scheduler places: as it is, with the plugin NetworkLoad, and
// with the plugin while the service is gone.
//
// Each round measures all three, in an order that rotates, on one control plane in this process. All pods exist before the
// scheduler begins. The rate is that from the first binding to the last.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"

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
	rounds := flag.Int("rounds", 3, "`number` of measurements of each mode")
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
	rates := map[string][]float64{}
	for round := range rounds {
		for i := range modes {
			mode := modes[(round+i)%len(modes)]
			rate, err := measure(ctx, plane, mode, service, pods)
			if err != nil {
				return fmt.Errorf("%s: %w", mode, err)
			}
			fmt.Fprintf(os.Stderr, "round %d: %s: %.0f pods/s\n", round+1, mode, rate)
			rates[mode] = append(rates[mode], rate)
		}
	}
	report(rates)
	return nil
}

// measure returns the pods a second in one mode.
func measure(ctx context.Context, plane *controlplane.ControlPlane, mode, service string, pods int) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	scheduler := controlplane.Scheduler{BeforeFirst: func(context.Context) { time.Sleep(warmUp) }}
	switch mode {
	case modes[1]:
		scheduler.NetworkLoad = &networkload.Args{Controllers: []string{service}}
	case modes[2]:
		// Nothing listens at this port.
		scheduler.NetworkLoad = &networkload.Args{Controllers: []string{"http://127.0.0.1:1"}}
	}
	if scheduler.NetworkLoad != nil {
		scheduler.NetworkLoad.MaxAge = metav1.Duration{Duration: 10 * time.Second}
	}
	annotations := map[string]string{demand.PeakEgress: "50M", demand.PeakIngress: "50M"}
	if err := plane.AddPods(ctx, "pod", pods, annotations); err != nil {
		return 0, err
	}
	bindings, err := plane.WatchBindings(ctx)
	if err != nil {
		return 0, err
	}
	ranked := rankedPods()
	stop, err := plane.StartScheduler(ctx, scheduler)
	if err != nil {
		return 0, err
	}
	defer stop()
	if err := bindings.Wait(ctx, pods); err != nil {
		return 0, err
	}
	// A measurement of a plugin that did nothing would say nothing.
	if share := (rankedPods() - ranked) / float64(pods); (mode == modes[1]) != (share > 0.95) {
		return 0, fmt.Errorf("the network ranked the nodes of %.0f %% of the pods", 100*share)
	}
	return bindings.Rate(), plane.DeletePods(ctx)
}

// rankedPods returns the number of pods up to now whose nodes were ranked by the network.
func rankedPods() float64 {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return 0
	}
	for _, family := range families {
		if family.GetName() != "leeward_pods_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == "ranked" {
				return metric.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func report(rates map[string][]float64) {
	fmt.Printf("%-28s %10s %18s %10s\n", "scheduler", "pods/s", "lowest to highest", "relative")
	for _, mode := range modes {
		least, most := math.Inf(1), 0.0
		for _, rate := range rates[mode] {
			least, most = min(least, rate), max(most, rate)
		}
		fmt.Printf("%-28s %10.0f %9.0f %8.0f %9.1f%%\n", mode, mean(rates[mode]), least, most,
			100*(mean(rates[mode])/mean(rates[modes[0]])-1))
	}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	return sum / float64(len(values))
}
