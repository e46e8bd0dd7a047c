package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/scheduler/controlplane"
)

// taskLabel is the label of pods with the number of their task.
const taskLabel = "task"

// patience is the time without a binding after which the pods that still wait are left to the next step.
const patience = 5 * time.Second

// pods are the pods of tasks: one for each task that has arrived and not ended. This program is their controller, which
// replaces evicted ones, and the kubelet of all nodes.
type pods struct {
	plane *controlplane.ControlPlane
	tasks []task

	// mutex guards the fields below.
	mutex sync.Mutex
	// current has the name of the pod of each task, and count the number of pods that it has had.
	current map[int]string
	count   map[int]int
	// done are the tasks that have finished.
	done map[int]bool
	// open are tasks whose pod has no node, and which the scheduler has not refused yet. refused are those that it has.
	open, refused map[int]bool
	// bound are the pods with a node that have not started, by task.
	bound map[int]*corev1.Pod
	// placed and evicted are the pods that got a node or were evicted since the last call, with their nodes.
	placed, evicted []placement
	// changed has an element if a pod was bound or refused.
	changed chan struct{}
}

// placement is a task on a node.
type placement struct {
	task int
	node string
}

// watchPods returns no pods, and follows those of the control plane until the context ends.
func watchPods(ctx context.Context, plane *controlplane.ControlPlane, tasks []task) (*pods, error) {
	p := &pods{
		plane: plane, tasks: tasks, current: map[int]string{}, count: map[int]int{}, done: map[int]bool{},
		open: map[int]bool{}, refused: map[int]bool{}, bound: map[int]*corev1.Pod{}, changed: make(chan struct{}, 1),
	}
	shared := informers.NewSharedInformerFactoryWithOptions(plane.Client, 0, informers.WithNamespace(metav1.NamespaceDefault))
	informer := shared.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { p.see(object) },
		UpdateFunc: func(_, object any) { p.see(object) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			p.lose(object)
		},
	})
	if err != nil {
		return nil, err
	}
	shared.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("pods: %w", ctx.Err())
	}
	return p, nil
}

// taskOf returns the task of a pod, and false for a pod of before. The caller holds the mutex.
func (p *pods) taskOf(pod *corev1.Pod) (int, bool) {
	number, err := strconv.Atoi(pod.Labels[taskLabel])
	return number, err == nil && p.current[number] == pod.Name
}

// see takes in a pod that was added or has changed.
func (p *pods) see(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	number, ok := p.taskOf(pod)
	if !ok || !(p.open[number] || p.refused[number]) {
		return
	}
	switch {
	case pod.Spec.NodeName != "":
		delete(p.open, number)
		delete(p.refused, number)
		p.bound[number] = pod
		p.placed = append(p.placed, placement{number, pod.Spec.NodeName})
	case p.open[number] && isRefused(pod):
		delete(p.open, number)
		p.refused[number] = true
	default:
		return
	}
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// isRefused returns true if the scheduler has found no node for a pod.
func isRefused(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		condition := &pod.Status.Conditions[i]
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return true
		}
	}
	return false
}

// lose takes in the end of a pod. Those that this program has ended are no pods of a task any more, so it was evicted.
func (p *pods) lose(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if number, ok := p.taskOf(pod); ok {
		delete(p.bound, number)
		delete(p.current, number)
		p.evicted = append(p.evicted, placement{number, pod.Spec.NodeName})
	}
}

// add adds a pod for each task.
func (p *pods) add(ctx context.Context, tasks []int) error {
	list := make([]*corev1.Pod, 0, len(tasks))
	p.mutex.Lock()
	for _, number := range tasks {
		name := fmt.Sprintf("task-%d-%d", number, p.count[number])
		p.count[number]++
		p.current[number] = name
		p.open[number] = true
		list = append(list, podOf(name, number, &p.tasks[number]))
	}
	p.mutex.Unlock()
	return p.plane.CreatePods(ctx, list)
}

// end ends the pods of tasks that have finished.
func (p *pods) end(ctx context.Context, tasks []int) error {
	names := make([]string, 0, len(tasks))
	p.mutex.Lock()
	for _, number := range tasks {
		if name := p.current[number]; name != "" {
			names = append(names, name)
		}
		delete(p.current, number)
		p.done[number] = true
	}
	p.mutex.Unlock()
	return p.plane.EndPods(ctx, names)
}

// await waits until each new pod has a node or was refused. If no pod gets a node for long, the others are left waiting.
func (p *pods) await(ctx context.Context) error {
	for {
		p.mutex.Lock()
		count := len(p.open)
		p.mutex.Unlock()
		if count == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.changed:
		case <-time.After(patience):
			return nil
		}
	}
}

// takePlaced returns the placements since the last call.
func (p *pods) takePlaced() []placement {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	taken := p.placed
	p.placed = nil
	return taken
}

// takeEvicted returns the evictions since the last call, but those of tasks that have finished meanwhile.
func (p *pods) takeEvicted() []placement {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	taken := slices.DeleteFunc(p.evicted, func(of placement) bool { return p.done[of.task] })
	p.evicted = nil
	return taken
}

// takeBound returns the pods with a node that may start, by task. They are no longer waiting for their start.
func (p *pods) takeBound(mayStart func(task int) bool) map[int]*corev1.Pod {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	taken := map[int]*corev1.Pod{}
	for number, pod := range p.bound {
		if mayStart(number) {
			taken[number] = pod
			delete(p.bound, number)
		}
	}
	return taken
}

// waiting returns the number of pods without a node.
func (p *pods) waiting() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.open) + len(p.refused)
}

// podOf returns the pod of a task. It declares the task's peak rates, and leaves at once when it is evicted.
func podOf(name string, number int, of *task) *corev1.Pod {
	yes, grace := true, int64(0)
	peak := func(side int) string { return strconv.FormatInt(int64(float64(of.means[side])*of.peak+0.5), 10) }
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{taskLabel: strconv.Itoa(number)},
			Annotations: map[string]string{
				demand.PeakEgress: peak(out), demand.PeakIngress: peak(in), demand.Migratable: strconv.FormatBool(of.tolerant),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "batch/v1", Kind: "Job", Name: of.job, UID: types.UID(of.job), Controller: &yes,
			}},
		},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "work", Image: "none.invalid/none",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU:    *resource.NewMilliQuantity(of.milliCPUs, resource.DecimalSI),
					corev1.ResourceMemory: *resource.NewQuantity(of.memory, resource.BinarySI),
				}},
			}},
		},
	}
}
