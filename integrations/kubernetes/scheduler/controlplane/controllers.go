package controlplane

import (
	"context"

	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/kubernetes/pkg/controller/disruption"
)

// startDisruptionController starts the controller without which a PodDisruptionBudget never allows an eviction.
func (c *ControlPlane) startDisruptionController(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	discovery := memory.NewMemCacheClient(c.Client.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(discovery)
	scales, err := scale.NewForConfig(c.Config, mapper, dynamic.LegacyAPIPathResolverFunc,
		scale.NewDiscoveryScaleKindResolver(c.Client.Discovery()))
	if err != nil {
		cancel()
		return err
	}
	shared := informers.NewSharedInformerFactory(c.Client, 0)
	core, apps := shared.Core().V1(), shared.Apps().V1()
	controller := disruption.NewDisruptionController(ctx, core.Pods(), shared.Policy().V1().PodDisruptionBudgets(),
		core.ReplicationControllers(), apps.ReplicaSets(), apps.Deployments(), apps.StatefulSets(),
		c.Client, mapper, scales, c.Client.Discovery())
	shared.Start(ctx.Done())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		controller.Run(ctx)
	}()
	c.onStop(func() {
		cancel()
		<-ended
		shared.Shutdown()
	})
	return nil
}
