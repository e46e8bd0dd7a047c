package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"leeward.dev/kubernetes/networkload"
	"leeward.dev/kubernetes/trafficmatrix"
)

// Scheduler describes a scheduler.
type Scheduler struct {
	// NetworkLoad and TrafficMatrix are the arguments of the plugins. Nil stands for the scheduler without the plugin.
	NetworkLoad   *networkload.Args
	TrafficMatrix *trafficmatrix.Args
	// Weight is the weight of the plugins, 1 by default.
	Weight int32
	// NodesToScore is the percentage of nodes that are scored; 0 leaves it to the scheduler, which takes fewer in a larger
	// cluster.
	NodesToScore int32
	// Options are the plugins that the scheduler knows, those of Leeward by default.
	Options []app.Option
	// BeforeFirst is called when the scheduler knows all nodes and pods, before it places the first pod. It may be nil.
	BeforeFirst func(context.Context)
}

// StartScheduler starts a scheduler, and returns the function that stops it. It waits until the scheduler knows all nodes.
func (c *ControlPlane) StartScheduler(ctx context.Context, scheduler Scheduler) (stop func(), err error) {
	folder, err := os.MkdirTemp(c.folder, "scheduler-")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, "config.json")
	if err := c.writeConfiguration(path, scheduler); err != nil {
		return nil, err
	}
	flags := options.NewOptionsWithComponentGlobalsRegistry(c.components)
	flags.ConfigFile = path
	// Without a port, the scheduler needs no credentials of its clients.
	flags.SecureServing.BindPort = 0
	registered := scheduler.Options
	if registered == nil {
		registered = []app.Option{
			app.WithPlugin(networkload.Name, networkload.New), app.WithPlugin(trafficmatrix.Name, trafficmatrix.New),
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	config, running, err := app.Setup(ctx, flags, registered...)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("kube-scheduler: %w", err)
	}
	config.EventBroadcaster.StartRecordingToSink(ctx.Done())
	config.InformerFactory.Start(ctx.Done())
	config.DynInformerFactory.Start(ctx.Done())
	config.InformerFactory.WaitForCacheSync(ctx.Done())
	config.DynInformerFactory.WaitForCacheSync(ctx.Done())
	if err := running.WaitForHandlersSync(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("kube-scheduler: %w", err)
	}
	if scheduler.BeforeFirst != nil {
		scheduler.BeforeFirst(ctx)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		running.Run(ctx)
	}()
	return func() {
		cancel()
		<-ended
		config.EventBroadcaster.Shutdown()
	}, nil
}

// writeConfiguration writes the configuration of a scheduler, with a file for its credentials beside it.
func (c *ControlPlane) writeConfiguration(path string, scheduler Scheduler) error {
	credentials := filepath.Join(filepath.Dir(path), "kubeconfig")
	if err := writeCredentials(credentials, c.Config); err != nil {
		return err
	}
	profile := map[string]any{
		"schedulerName": corev1.DefaultSchedulerName, "percentageOfNodesToScore": scheduler.NodesToScore,
	}
	var enabled, arguments []any
	enable := func(name string, args any) {
		enabled = append(enabled, map[string]any{"name": name, "weight": max(scheduler.Weight, 1)})
		arguments = append(arguments, map[string]any{"name": name, "args": args})
	}
	if scheduler.NetworkLoad != nil {
		enable(networkload.Name, scheduler.NetworkLoad)
	}
	if scheduler.TrafficMatrix != nil {
		enable(trafficmatrix.Name, scheduler.TrafficMatrix)
	}
	if len(enabled) > 0 {
		profile["plugins"] = map[string]any{"multiPoint": map[string]any{"enabled": enabled}}
		profile["pluginConfig"] = arguments
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion":     "kubescheduler.config.k8s.io/v1",
		"kind":           "KubeSchedulerConfiguration",
		"leaderElection": map[string]any{"leaderElect": false},
		"clientConnection": map[string]any{
			"kubeconfig": credentials, "qps": 10_000, "burst": 10_000, "contentType": "application/vnd.kubernetes.protobuf",
		},
		"profiles": []any{profile},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

func writeCredentials(path string, config *rest.Config) error {
	const name = "controlplane"
	return clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: config.Host, CertificateAuthorityData: config.CAData, TLSServerName: config.ServerName,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: config.BearerToken}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, path)
}
