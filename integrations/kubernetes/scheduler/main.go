// The command leeward-scheduler is kube-scheduler with the plugins NetworkLoad and TrafficMatrix. It takes the flags and the
// configuration of kube-scheduler; a plugin is used where a profile enables it.
package main

import (
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/component-base/cli"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"

	// The formats and the metrics of a component of Kubernetes.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	"leeward.dev/kubernetes/networkload"
	"leeward.dev/kubernetes/trafficmatrix"
)

func main() {
	slog.SetDefault(slog.New(logr.ToSlogHandler(klog.Background())))
	os.Exit(cli.Run(app.NewSchedulerCommand(
		app.WithPlugin(networkload.Name, networkload.New), app.WithPlugin(trafficmatrix.Name, trafficmatrix.New),
	)))
}
