package trafficmatrix

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"leeward.dev/kubernetes/api/v1alpha1"
)

// Limits of the work at once.
const (
	// mostAsks is the number of apps that the controller places at once for this scheduler.
	mostAsks = 4
	// mostNominations is the number of nominations that are sent at once.
	mostNominations = 16
)

// worker sends requests and writes objects, beside the scheduling cycles.
type worker struct {
	environment Environment
	settings    Settings
	apps        *apps
	handle      fwk.Handle
	controller  *controller
	pods        corelisters.PodLister
	nodes       corelisters.NodeLister
	wake        chan struct{}
	// asking and nominating limit the requests at once.
	asking, nominating chan struct{}
	// running are the worker, the informer and the requests that run.
	running sync.WaitGroup
}

func newWorker(environment Environment, settings Settings, known *apps, handle fwk.Handle) *worker {
	core := handle.SharedInformerFactory().Core().V1()
	return &worker{
		environment: environment, settings: settings, apps: known, handle: handle,
		controller: &controller{call: environment.Call, hold: settings.Hold.String()},
		pods:       core.Pods().Lister(), nodes: core.Nodes().Lister(),
		wake: make(chan struct{}, 1), asking: make(chan struct{}, mostAsks), nominating: make(chan struct{}, mostNominations),
	}
}

// signal makes the worker look for work now.
func (w *worker) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run works until the context ends.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		w.wait(ctx, w.step(ctx))
	}
}

// wait waits for a signal or for a time; a zero time is none.
func (w *worker) wait(ctx context.Context, next time.Time) {
	var over <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(max(next.Sub(w.environment.Now()), time.Millisecond))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
	case <-w.wake:
	case <-over:
	}
}

// step starts the work that is due, and returns the time of the next.
func (w *worker) step(ctx context.Context) time.Time {
	work := w.apps.due(w.environment.Now())
	for _, of := range work.asks {
		w.start(ctx, w.asking, func() { w.ask(ctx, of) })
	}
	for _, of := range work.nominate {
		w.start(ctx, w.nominating, func() { w.nominate(ctx, of) })
	}
	for _, of := range work.settle {
		w.start(ctx, w.asking, func() { w.settle(ctx, of) })
	}
	if len(work.release) > 0 {
		w.start(ctx, w.asking, func() { w.release(ctx, work.release) })
	}
	if len(work.find) > 0 {
		w.start(ctx, w.asking, func() { w.find(ctx, work.find) })
	}
	for _, of := range work.publish {
		w.start(ctx, w.nominating, func() { w.publish(ctx, of) })
	}
	w.activate(ctx, work.wake)
	return work.next
}

// start runs work once there is room for it. A fault in it must not end the scheduler.
func (w *worker) start(ctx context.Context, room chan struct{}, work func()) {
	w.running.Go(func() {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		defer func() {
			<-room
			if fault := recover(); fault != nil {
				w.environment.Log.Error("fault", "plugin", Name, "fault", fault)
			}
			w.signal()
		}()
		work()
	})
}

// ask asks the controller for the hosts of an app.
func (w *worker) ask(ctx context.Context, of ask) {
	ctx, cancel := context.WithTimeout(ctx, of.deadline.Sub(w.environment.Now()))
	defer cancel()
	result, err := w.controller.place(ctx, &of, w.full(&of))
	reason, message := "", ""
	if err != nil {
		reason, message = reasonOf(err), err.Error()
		failuresTotal.WithLabelValues("place").Inc()
		if isUnanswered(err) {
			w.apps.unanswered(of.run, w.environment.Now())
		}
	}
	w.apps.answered(of.name, of.run, result.Hosts, result.ID, reason, message)
}

// full returns the hosts that can take no pod of the app.
func (w *worker) full(of *ask) []string {
	nodes, nodesErr := w.nodes.List(labels.Everything())
	running, podsErr := w.pods.List(labels.Everything())
	view := w.environment.View()
	if nodesErr != nil || podsErr != nil || view == nil {
		return nil
	}
	return full(view.Snapshot().Names(), nodes, running, of.pods)
}

// nominate writes the host of a pod into its status. The scheduler tries this node first, and no pod of a lower priority takes
// its room meanwhile.
func (w *worker) nominate(ctx context.Context, of nomination) {
	ctx, cancel := context.WithTimeout(ctx, w.settings.Wait)
	defer cancel()
	patch, err := json.Marshal(map[string]any{
		// The UID rejects another pod of the same name.
		"metadata": map[string]any{"uid": of.pod.UID},
		"status":   map[string]any{"nominatedNodeName": of.host},
	})
	if err == nil {
		_, err = w.handle.ClientSet().CoreV1().Pods(of.pod.Namespace).
			Patch(ctx, of.pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil {
		failuresTotal.WithLabelValues("nominate").Inc()
		w.apps.refused(of.pod.UID)
	}
}

// settle says which nodes the pods got.
func (w *worker) settle(ctx context.Context, of settlement) {
	decision, err := w.controller.settle(ctx, &of)
	if err != nil && ctx.Err() == nil {
		failuresTotal.WithLabelValues("settle").Inc()
		w.environment.Log.Warn("the controller does not count the pods of an app", "trafficmatrix", of.name.String(), "problem", err.Error())
	}
	w.apps.settledWith(of.name, of.run, decision, err == nil || isFinal(err), w.environment.Now())
}

// release ends decisions whose pods have ended.
func (w *worker) release(ctx context.Context, decisions []string) {
	if err := w.controller.release(ctx, decisions); err != nil && ctx.Err() == nil {
		failuresTotal.WithLabelValues("release").Inc()
		w.environment.Log.Warn("decisions of ended pods still count", "decisions", decisions, "problem", err.Error())
		w.apps.notReleased(decisions, w.environment.Now())
	}
}

// find looks up the decisions of requests whose answers were lost.
func (w *worker) find(ctx context.Context, lost []lookup) {
	for _, of := range lost {
		decision, err := w.controller.find(ctx, of.key)
		if err != nil && ctx.Err() == nil {
			failuresTotal.WithLabelValues("find").Inc()
			w.environment.Log.Warn("a decision without pods may still count", "key", of.key, "problem", err.Error())
		}
		if of.held && decision.ReservedUntil == nil {
			decision.ID = ""
		}
		w.apps.found(of, decision.ID, err == nil, w.environment.Now())
	}
}

// activate makes the queue look at pods again.
func (w *worker) activate(ctx context.Context, pods []*corev1.Pod) {
	if len(pods) == 0 {
		return
	}
	byName := make(map[string]*corev1.Pod, len(pods))
	for _, pod := range pods {
		byName[pod.Namespace+"/"+pod.Name] = pod
	}
	w.handle.Activate(klog.FromContext(ctx), byName)
}

// publish writes changed conditions of a matrix, and an event for each important one.
func (w *worker) publish(ctx context.Context, of publication) {
	for _, r := range of.reports {
		if r.condition == v1alpha1.ConditionPlaced || r.condition == v1alpha1.ConditionValid && !r.holds || r.reason == reasonNoPods {
			appsTotal.WithLabelValues(r.reason).Inc()
		}
		if r.important {
			w.handle.EventRecorder().Eventf(of.matrix, nil, corev1.EventTypeWarning, r.reason, "Scheduling", "%.900s", r.message)
		}
	}
	err := w.write(ctx, of)
	if err != nil && ctx.Err() == nil {
		failuresTotal.WithLabelValues("status").Inc()
		w.environment.Log.Warn("the status of a traffic matrix is not written", "trafficmatrix", of.matrix.Namespace+"/"+of.matrix.Name,
			"problem", err.Error())
	}
	w.apps.published(of.matrix, err == nil, w.environment.Now())
}

// write writes the status of a matrix. A matrix that no longer exists needs none.
func (w *worker) write(ctx context.Context, of publication) error {
	patch, err := patchOf(&of.status)
	if err == nil {
		_, err = w.environment.Objects.Resource(v1alpha1.Resource).Namespace(of.matrix.Namespace).
			Patch(ctx, of.matrix.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
