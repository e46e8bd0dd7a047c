package trafficmatrix

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"leeward.dev/kubernetes/api/v1alpha1"
)

// warningInterval is the time between two warnings that traffic matrices cannot be read.
const warningInterval = 10 * time.Minute

// watch follows traffic matrices and pods. A cluster without the kind has none, and the scheduler runs on.
func (w *worker) watch(ctx context.Context) error {
	matrices := dynamicinformer.NewFilteredDynamicInformer(
		w.environment.Objects, v1alpha1.Resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	if err := matrices.SetWatchErrorHandlerWithContext(w.unreadable()); err != nil {
		return err
	}
	if _, err := matrices.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: w.setMatrix, UpdateFunc: func(_, object any) { w.setMatrix(object) }, DeleteFunc: w.dropMatrix,
	}); err != nil {
		return err
	}
	pods := w.handle.SharedInformerFactory().Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: w.setPod, UpdateFunc: func(_, object any) { w.setPod(object) }, DeleteFunc: w.dropPod,
	}); err != nil {
		return err
	}
	w.running.Go(func() {
		// A matrix whose pods are not known yet would seem to have none, and its decision would be released.
		if cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
			// The first look begins to follow the network.
			w.environment.View()
			matrices.RunWithContext(ctx)
		}
	})
	return nil
}

// unreadable returns a handler of failed requests, which warns now and then. The informer repeats them with growing pauses.
func (w *worker) unreadable() cache.WatchErrorHandlerWithContext {
	var warned time.Time
	return func(_ context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return
		}
		if now := w.environment.Now(); warned.IsZero() || now.Sub(warned) > warningInterval {
			warned = now
			w.environment.Log.Warn("traffic matrices cannot be read; pods are placed without them", "problem", err.Error())
		}
	}
}

func (w *worker) setMatrix(object any) {
	of, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	matrix := &v1alpha1.TrafficMatrix{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(of.Object, matrix); err != nil {
		// The schema of the kind rejects such objects.
		w.environment.Log.Warn("a traffic matrix is not readable", "trafficmatrix", of.GetNamespace()+"/"+of.GetName(), "problem", err.Error())
		w.apps.dropMatrix(types.NamespacedName{Namespace: of.GetNamespace(), Name: of.GetName()}, w.environment.Now())
		return
	}
	pods, err := w.pods.Pods(matrix.Namespace).List(labels.Everything())
	if err != nil {
		pods = nil
	}
	w.apps.setMatrix(matrix, pods, w.environment.Now())
	w.signal()
}

func (w *worker) dropMatrix(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	if of, ok := object.(*unstructured.Unstructured); ok {
		w.apps.dropMatrix(types.NamespacedName{Namespace: of.GetNamespace(), Name: of.GetName()}, w.environment.Now())
		w.signal()
	}
}

func (w *worker) setPod(object any) {
	if pod, ok := object.(*corev1.Pod); ok && w.apps.setPod(pod, w.environment.Now()) {
		w.signal()
	}
}

func (w *worker) dropPod(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	if pod, ok := object.(*corev1.Pod); ok {
		w.apps.dropPod(pod.UID, w.environment.Now())
		w.signal()
	}
}
