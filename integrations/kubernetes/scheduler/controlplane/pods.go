package controlplane

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// AddPods adds pods named NAME-0, NAME-1 and so on to the namespace default, all with the same annotations. Each requests a 128th
// part of a node of [ControlPlane.AddNodes], in processors and in memory. kube-scheduler spreads such pods over the nodes; it
// packs much smaller ones onto few nodes, because their requests do not change its scores.
func (c *ControlPlane) AddPods(ctx context.Context, name string, count int, annotations map[string]string) error {
	pods := make([]*corev1.Pod, count)
	for i := range pods {
		pods[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i), Annotations: annotations},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "work", Image: "none.invalid/none",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("2Gi"),
				}},
			}}},
		}
	}
	return c.CreatePods(ctx, pods)
}

// CreatePods adds pods to the namespace default, several at a time.
func (c *ControlPlane) CreatePods(ctx context.Context, pods []*corev1.Pod) error {
	return inParallel(ctx, len(pods), func(ctx context.Context, i int) error {
		_, err := c.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pods[i], metav1.CreateOptions{})
		return err
	})
}

// EndPods deletes pods of the namespace default by their names, at once. Pods that have left are no error.
func (c *ControlPlane) EndPods(ctx context.Context, names []string) error {
	return inParallel(ctx, len(names), func(ctx context.Context, i int) error {
		err := c.Client.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, names[i], *metav1.NewDeleteOptions(0))
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// DeletePods deletes all pods of the namespace default at once.
func (c *ControlPlane) DeletePods(ctx context.Context) error {
	return c.Client.CoreV1().Pods(metav1.NamespaceDefault).DeleteCollection(
		ctx, *metav1.NewDeleteOptions(0), metav1.ListOptions{})
}

// Bindings are the nodes of pods, and the times at which a watch showed them.
type Bindings struct {
	mutex sync.Mutex
	nodes map[string]string
	times []time.Time
	more  chan struct{}
}

// WatchBindings watches the pods of the namespace default until the context ends.
func (c *ControlPlane) WatchBindings(ctx context.Context) (*Bindings, error) {
	b := &Bindings{nodes: map[string]string{}, more: make(chan struct{}, 1)}
	bound := func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	}
	shared := informers.NewSharedInformerFactoryWithOptions(c.Client, 0,
		informers.WithNamespace(metav1.NamespaceDefault), informers.WithTweakListOptions(bound))
	pods := shared.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		pod := object.(*corev1.Pod)
		b.add(pod.Name, pod.Spec.NodeName, time.Now())
	}})
	if err != nil {
		return nil, err
	}
	shared.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		return nil, fmt.Errorf("bindings: %w", ctx.Err())
	}
	return b, nil
}

func (b *Bindings) add(pod, node string, at time.Time) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.nodes[pod] = node
	b.times = append(b.times, at)
	select {
	case b.more <- struct{}{}:
	default:
	}
}

// Wait waits until a number of pods is bound. It returns an error with the number of bound pods if the context ends before.
func (b *Bindings) Wait(ctx context.Context, count int) error {
	for {
		if bound := b.Len(); bound >= count {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d pods are bound: %w", b.Len(), count, ctx.Err())
		case <-b.more:
		}
	}
}

// Len returns the number of bound pods.
func (b *Bindings) Len() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return len(b.times)
}

// Nodes returns the node of each pod.
func (b *Bindings) Nodes() map[string]string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	nodes := make(map[string]string, len(b.nodes))
	for pod, node := range b.nodes {
		nodes[pod] = node
	}
	return nodes
}

// Rate returns the pods a second from the first binding to the last, 0 with fewer than two.
func (b *Bindings) Rate() float64 {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if len(b.times) < 2 {
		return 0
	}
	return float64(len(b.times)-1) / b.times[len(b.times)-1].Sub(b.times[0]).Seconds()
}
