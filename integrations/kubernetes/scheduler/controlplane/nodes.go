package controlplane

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// RackLabel is the label of nodes with the name of their rack.
const RackLabel = "leeward.dev/rack"

// Node is a node for pods.
type Node struct {
	Name string
	// Rack is the value of [RackLabel], empty for a node without the label.
	Rack string
	// MilliCPUs are thousandths of processors, Memory is in bytes, and Pods is the largest number of pods.
	MilliCPUs, Memory, Pods int64
}

// AddNode adds a ready node in a rack, with 64 processors, 256 GiB, and room for a number of pods.
func (c *ControlPlane) AddNode(ctx context.Context, name, rack string, pods int) error {
	return c.AddNodes(ctx, map[string]string{name: rack}, pods)
}

// AddNodes adds nodes by their names, with the rack of each; see [ControlPlane.AddNode].
func (c *ControlPlane) AddNodes(ctx context.Context, racks map[string]string, pods int) error {
	nodes := make([]Node, 0, len(racks))
	for _, name := range slices.Sorted(maps.Keys(racks)) {
		nodes = append(nodes, Node{Name: name, Rack: racks[name], MilliCPUs: 64_000, Memory: 256 << 30, Pods: int64(pods)})
	}
	return c.CreateNodes(ctx, nodes)
}

// CreateNodes adds ready nodes, several at a time.
func (c *ControlPlane) CreateNodes(ctx context.Context, nodes []Node) error {
	return inParallel(ctx, len(nodes), func(ctx context.Context, i int) error {
		_, err := c.Client.CoreV1().Nodes().Create(ctx, nodes[i].object(), metav1.CreateOptions{})
		return err
	})
}

// object returns the node as an object of the API.
func (n *Node) object() *corev1.Node {
	room := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(n.MilliCPUs, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(n.Memory, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(n.Pods, resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, Labels: map[string]string{RackLabel: n.Rack, corev1.LabelHostname: n.Name},
		},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// StartKubelet starts the pods that are bound to nodes and ends those that are deleted, as the kubelets of all nodes
// together would, until the context ends.
func (c *ControlPlane) StartKubelet(ctx context.Context) error {
	const workers = 4
	bound := func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
	}
	shared := informers.NewSharedInformerFactoryWithOptions(c.Client, 0, informers.WithTweakListOptions(bound))
	pods := shared.Core().V1().Pods().Informer()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	enqueue := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, after any) { enqueue(after) },
	})
	if err != nil {
		return err
	}
	shared.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		return fmt.Errorf("kubelet: %w", ctx.Err())
	}
	context.AfterFunc(ctx, queue.ShutDown)
	for range workers {
		go func() {
			for {
				key, stopped := queue.Get()
				if stopped {
					return
				}
				if err := c.syncPod(ctx, pods.GetStore(), key); err != nil && ctx.Err() == nil {
					queue.AddRateLimited(key)
				} else {
					queue.Forget(key)
				}
				queue.Done(key)
			}
		}()
	}
	return nil
}

// syncPod starts a pod that is bound, and ends one that is deleted.
func (c *ControlPlane) syncPod(ctx context.Context, pods cache.Store, key string) error {
	object, ok, err := pods.GetByKey(key)
	if err != nil || !ok {
		return err
	}
	pod := object.(*corev1.Pod)
	switch {
	case pod.DeletionTimestamp != nil:
		options := metav1.NewDeleteOptions(0)
		options.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
		err = c.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *options)
	case pod.Status.Phase == corev1.PodPending:
		_, err = c.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, running(pod, metav1.Now()), metav1.UpdateOptions{})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		// The informer is behind; its next event brings the pod again.
		return nil
	}
	return err
}

// running returns a pod whose containers run since a time.
func running(pod *corev1.Pod, since metav1.Time) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &since
	pod.Status.Conditions = append(pod.Status.Conditions,
		corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since})
	for i := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: pod.Spec.Containers[i].Name, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}},
		})
	}
	return pod
}

// StartPods starts bound pods, as the kubelets of their nodes would. Their containers run since a time. Pods that have
// left meanwhile are no error.
func (c *ControlPlane) StartPods(ctx context.Context, pods []*corev1.Pod, since time.Time) error {
	return inParallel(ctx, len(pods), func(ctx context.Context, i int) error {
		pod := running(pods[i], metav1.NewTime(since))
		// The status is the one of the kubelet, whatever else has changed. The UID still has to be the same.
		pod.ResourceVersion = ""
		_, err := c.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return nil
		}
		return err
	})
}

// inParallel calls a function for 0 to count - 1, several at a time, and returns the first error.
func inParallel(ctx context.Context, count int, call func(ctx context.Context, i int) error) error {
	const workers = 16
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, workers, count, func(i int) {
		if err := call(ctx, i); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}
