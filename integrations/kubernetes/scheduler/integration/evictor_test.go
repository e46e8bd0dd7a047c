package integration

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/evictor"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/snapshot"
)

const (
	// evictionWindow is the length of the evictor's windows: five reports.
	evictionWindow = 500 * time.Millisecond
	configMap      = "leeward-evictor"
)

// fleet are the pods of a workload whose controller is this test: it replaces each pod that ends, by the scheduler.
type fleet struct {
	t     *testing.T
	name  string
	mutex sync.Mutex
	next  int
	// running are the pods that run, and ended counts those that do not any more.
	running map[string]bool
	ended   int
	// least is the smallest number of running pods since all were running.
	least    int
	complete int
}

// newFleet starts pods of 2 Gb/s on nodes of rack r0, with a budget that leaves at least some available.
func newFleet(t *testing.T, name string, count, available int) *fleet {
	t.Helper()
	f := &fleet{t: t, name: name, running: map[string]bool{}, least: count, complete: count}
	least := intstr.FromInt32(int32(available))
	_, err := plane.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		budgets := plane.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault)
		if err := budgets.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	f.watch()
	for i := range count {
		f.add(fmt.Sprintf("r0h%d", i%rackSize))
	}
	eventually(t, "not all pods run", func() bool { return f.runningCount() == count })
	eventually(t, "the budget does not know its pods", func() bool {
		budget, err := plane.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && int(budget.Status.CurrentHealthy) == count
	})
	return f
}

// add adds a pod, on a node or by the scheduler if the node is empty. Each pod is a workload of its own for the evictor's
// cooldown, and one of the budget's pods.
func (f *fleet) add(node string) {
	f.mutex.Lock()
	number := f.next
	f.next++
	f.mutex.Unlock()
	name, yes := fmt.Sprintf("%s-%d", f.name, number), true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"app": f.name},
			Annotations: map[string]string{demand.PeakEgress: "2G", demand.Migratable: "true"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "test.leeward.dev/v1", Kind: "Fleet", Name: name, UID: types.UID(name), Controller: &yes,
			}},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "work", Image: "none.invalid/none"}}},
	}
	if _, err := plane.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(f.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		f.t.Error(err)
	}
}

func (f *fleet) watch() {
	f.t.Helper()
	ours := func(options *metav1.ListOptions) { options.LabelSelector = "app=" + f.name }
	shared := informers.NewSharedInformerFactoryWithOptions(plane.Client, 0,
		informers.WithNamespace(metav1.NamespaceDefault), informers.WithTweakListOptions(ours))
	pods := shared.Core().V1().Pods().Informer()
	seen := func(object any) {
		pod := object.(*corev1.Pod)
		f.mutex.Lock()
		defer f.mutex.Unlock()
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			f.running[pod.Name] = true
		} else {
			delete(f.running, pod.Name)
		}
		f.count()
	}
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: seen, UpdateFunc: func(_, after any) { seen(after) },
		DeleteFunc: func(object any) {
			pod, ok := object.(*corev1.Pod)
			if !ok || f.t.Context().Err() != nil {
				return
			}
			f.mutex.Lock()
			delete(f.running, pod.Name)
			f.ended++
			f.count()
			f.mutex.Unlock()
			f.add("")
		},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	shared.Start(f.t.Context().Done())
}

// count notes the smallest number of running pods once all have run. The caller holds the mutex.
func (f *fleet) count() {
	if len(f.running) == f.complete {
		f.complete = 0
	}
	if f.complete == 0 {
		f.least = min(f.least, len(f.running))
	}
}

func (f *fleet) runningCount() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return len(f.running)
}

// counts returns the smallest number of running pods, and the number of those that ended.
func (f *fleet) counts() (least, ended int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.least, f.ended
}

// evict starts an evictor on the scene's service.
func (s *scene) evict(mode evictor.Mode, change func(*evictor.Settings)) {
	s.t.Helper()
	settings := evictor.DefaultSettings()
	settings.Window, settings.HotWindows, settings.RackCooldown, settings.Lasts = evictionWindow, 3, 1, 20*time.Second
	change(&settings)
	estimator, err := ledger.NewEstimator(interval, ledger.DefaultAlpha)
	if err != nil {
		s.t.Fatal(err)
	}
	client, err := snapshot.NewClient(snapshot.Settings{
		Controllers: s.args.Controllers, Interval: interval, Deadline: 5 * time.Second, MaxAge: 20 * time.Second,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	shared := informers.NewSharedInformerFactory(plane.Client, 0)
	core, budgets := shared.Core().V1(), shared.Policy().V1().PodDisruptionBudgets()
	core.Pods().Informer()
	core.Nodes().Informer()
	budgets.Informer()
	shared.Start(ctx.Done())
	shared.WaitForCacheSync(ctx.Done())
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: plane.Client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		s.t.Fatal(err)
	}
	runner, err := evictor.NewRunner(evictor.Options{
		Mode: mode, Settings: settings, Estimator: estimator, MaxAge: 20 * time.Second, Client: plane.Client,
		Namespace: metav1.NamespaceDefault, Name: configMap, Metrics: evictor.NewMetrics(metrics.NewKubeRegistry()),
		Cluster: func() *evictor.Cluster {
			var cluster evictor.Cluster
			cluster.Pods, _ = core.Pods().Lister().List(labels.Everything())
			cluster.Nodes, _ = core.Nodes().Lister().List(labels.Everything())
			cluster.Budgets, _ = budgets.Lister().List(labels.Everything())
			return &cluster
		},
		Events: broadcaster.NewRecorder(scheme.Scheme, configMap), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	var running sync.WaitGroup
	feed := snapshot.NewFeed(20 * time.Second)
	follower := snapshot.NewFollower(client, feed, runner.OnSnapshot, func() float64 { return 0 }, slog.New(slog.DiscardHandler))
	running.Go(func() { follower.Run(ctx) })
	running.Go(func() { runner.Run(ctx) })
	s.t.Cleanup(func() {
		cancel()
		running.Wait()
		err := plane.Client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Delete(context.Background(), configMap, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			s.t.Error(err)
		}
	})
}

// startKubelet starts the kubelet until the test ends.
func startKubelet(t *testing.T) {
	t.Helper()
	if err := plane.StartKubelet(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestPodsLeaveAHotRackForColdOnesAndTheirBudgetHolds(t *testing.T) {
	s := newScene(t, interval, hot(1))
	startKubelet(t)
	s.start(s.args)
	f := newFleet(t, "movers", 8, 7)
	// 36 of 40 Gb/s must fall to 30: three pods of 2 Gb/s leave, one after another by the budget. The load itself stays in
	// this network, so more follow when the cooldown and the projections have passed; the budget of the hour ends it.
	s.evict(evictor.Evict, func(settings *evictor.Settings) { settings.HourlyBudget = 6 })
	eventually(t, "six pods did not leave", func() bool { _, ended := f.counts(); return ended == 6 })
	eventually(t, "not all replacements run", func() bool { return f.runningCount() == 8 })
	time.Sleep(4 * evictionWindow)
	least, ended := f.counts()
	if least < 7 || ended != 6 {
		t.Errorf("at least %d pods ran, %d ended", least, ended)
	}
	list, err := plane.Client.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{LabelSelector: "app=movers"})
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, pod := range list.Items {
		count[s.rackOf[pod.Spec.NodeName]]++
	}
	if count["r0"] != 2 {
		t.Errorf("the hot rack has %d pods: %v", count["r0"], count)
	}
	for rack, pods := range count {
		if rack != "r0" && pods > 2 {
			t.Errorf("%d replacements met in rack %s", pods, rack)
		}
	}
	if notes := s.events("HotRack", "movers-"); len(notes) != 6 {
		t.Errorf("%d events: %q", len(notes), notes)
	}
}

func TestABudgetWithoutRoomKeepsAllPods(t *testing.T) {
	s := newScene(t, interval, hot(1))
	startKubelet(t)
	s.start(s.args)
	f := newFleet(t, "fixed", 4, 4)
	s.evict(evictor.Evict, func(*evictor.Settings) {})
	time.Sleep(10 * evictionWindow)
	if least, ended := f.counts(); least != 4 || ended != 0 {
		t.Errorf("at least %d pods ran, %d ended", least, ended)
	}
}

func TestADryRunLeavesAllPodsAndHasAnEvent(t *testing.T) {
	s := newScene(t, interval, hot(1))
	startKubelet(t)
	s.start(s.args)
	f := newFleet(t, "dry", 4, 0)
	s.evict(evictor.DryRun, func(*evictor.Settings) {})
	eventually(t, "no event", func() bool { return len(s.events("HotRackDryRun", "dry-")) > 0 })
	if _, ended := f.counts(); ended != 0 {
		t.Errorf("%d pods ended", ended)
	}
	if _, err := plane.Client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Get(t.Context(), configMap, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run wrote: %v", err)
	}
}

func TestTheAnnotationStopsARunningEvictor(t *testing.T) {
	s := newScene(t, interval, hot(1))
	startKubelet(t)
	s.start(s.args)
	_, err := plane.Client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: configMap, Annotations: map[string]string{evictor.StopAnnotation: evictor.StopValue}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, "stopped", 4, 0)
	s.evict(evictor.Evict, func(*evictor.Settings) {})
	time.Sleep(10 * evictionWindow)
	if _, ended := f.counts(); ended != 0 {
		t.Errorf("%d pods ended", ended)
	}
	patch := []byte(fmt.Sprintf(`{"metadata": {"annotations": {%q: null}}}`, evictor.StopAnnotation))
	if _, err := plane.Client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Patch(
		t.Context(), configMap, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no pod leaves", func() bool { _, ended := f.counts(); return ended > 0 })
}

// The API server rejects an eviction of another pod of the same name.
func TestTheApiServerChecksTheUID(t *testing.T) {
	startKubelet(t)
	s := newScene(t, interval, hot(0))
	s.start(s.args)
	newFleet(t, "named", 1, 0)
	other := types.UID("00000000-0000-0000-0000-000000000000")
	err := plane.Client.CoreV1().Pods(metav1.NamespaceDefault).EvictV1(t.Context(), &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Name: "named-0", Namespace: metav1.NamespaceDefault},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &other}},
	})
	if !apierrors.IsConflict(err) {
		t.Errorf("%v", err)
	}
}
