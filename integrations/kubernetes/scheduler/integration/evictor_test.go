package integration

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/evictor"
	"leeward.dev/kubernetes/internal/fake"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/scheduler/controlplane"
	"leeward.dev/kubernetes/snapshot"
)

const (
	// evictionWindow is the length of the evictor's windows: five reports.
	evictionWindow = 500 * time.Millisecond
	configMap      = "leeward-evictor"
)

// fleet are the pods of some workloads whose controller is this test: it replaces each pod that ends, by the scheduler.
type fleet struct {
	t     *testing.T
	name  string
	mutex sync.Mutex
	next  int
	// running has the node of each pod that runs, and ended counts those that do not any more.
	running map[string]string
	ended   int
	// least is the smallest number of running pods since all were running.
	least    int
	complete int
}

// newFleet starts pods of 2 Gb/s on nodes of some racks, r0 by default, with a budget that leaves at least some available.
func newFleet(t *testing.T, name string, count, available int, in ...string) *fleet {
	t.Helper()
	if len(in) == 0 {
		in = []string{"r0"}
	}
	f := &fleet{t: t, name: name, running: map[string]string{}, least: count, complete: count}
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
		f.add(fmt.Sprintf("%s-seat-%d", name, i), fmt.Sprintf("%sh%d", in[i%len(in)], i/len(in)%rackSize))
	}
	eventually(t, "not all pods run", func() bool { return f.runningCount() == count })
	eventually(t, "the budget does not know its pods", func() bool {
		budget, err := plane.Client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && int(budget.Status.CurrentHealthy) == count
	})
	return f
}

// add adds the pod of a seat, on a node or by the scheduler if the node is empty. Each seat is a workload of its own for the
// evictor's cooldown: the pods that take it one after another.
func (f *fleet) add(seat, node string) {
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
				APIVersion: "test.leeward.dev/v1", Kind: "Fleet", Name: seat, UID: types.UID(seat), Controller: &yes,
			}},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "work", Image: "none.invalid/none"}}},
	}
	_, err := plane.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(f.t.Context(), pod, metav1.CreateOptions{})
	if err != nil && f.t.Context().Err() == nil {
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
			f.running[pod.Name] = pod.Spec.NodeName
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
			f.add(pod.OwnerReferences[0].Name, "")
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

// inRacks returns the number of running pods in each rack.
func (f *fleet) inRacks(rackOf map[string]string) map[string]int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	count := map[string]int{}
	for _, node := range f.running {
		count[rackOf[node]]++
	}
	return count
}

// counts returns the smallest number of running pods, and the number of those that ended.
func (f *fleet) counts() (least, ended int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.least, f.ended
}

// evicting is a running evictor.
type evicting struct {
	t        *testing.T
	registry metrics.KubeRegistry
	// stop ends it, and waits for its last round.
	stop func()
}

// metric returns the value of a metric of the evictor whose label has a value.
func (e *evicting) metric(name, label string) float64 {
	e.t.Helper()
	return metricIn(e.t, e.registry, name, label)
}

// evict starts an evictor on the scene's service.
func (s *scene) evict(mode evictor.Mode, change func(*evictor.Settings)) *evicting {
	s.t.Helper()
	settings := evictor.DefaultSettings()
	settings.Window, settings.HotWindows, settings.RackCooldown, settings.Lasts = evictionWindow, 3, 1, 20*time.Second
	change(&settings)
	estimator, err := ledger.NewEstimator(interval, ledger.DefaultAlpha)
	if err != nil {
		s.t.Fatal(err)
	}
	registry := metrics.NewKubeRegistry()
	end, err := plane.StartEvictor(s.t.Context(), controlplane.Evictor{
		Name: configMap, Mode: mode, Settings: settings, Estimator: estimator, Metrics: registry,
		Snapshots: snapshot.Settings{
			Controllers: s.args.Controllers, Interval: interval, Deadline: time.Second, MaxAge: 20 * time.Second,
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	stop := sync.OnceFunc(end)
	s.t.Cleanup(func() {
		stop()
		err := plane.Client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Delete(context.Background(), configMap, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			s.t.Error(err)
		}
	})
	return &evicting{t: s.t, registry: registry, stop: stop}
}

// startKubelet starts the kubelet until the test ends.
func startKubelet(t *testing.T) {
	t.Helper()
	if err := plane.StartKubelet(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestPodsLeaveAHotRackForColdOnesAndTheirBudgetHolds(t *testing.T) {
	s := newScene(t, interval, func(network *fake.Network) {
		hot(1)(network)
		// Links of racks, and not of nodes, are the fullest on a pod's way, so that scores of racks differ by each pod.
		for i := range network.Links {
			if link := &network.Links[i]; link.Capacity == 10e9 {
				link.Capacity = 100e9
			}
		}
	})
	startKubelet(t)
	s.start(s.args)
	f := newFleet(t, "movers", 8, 7)
	// 36 of 40 Gb/s must fall to 30: three pods of 2 Gb/s leave, one after another by the budget. The load itself stays in
	// this network, so more follow when the cooldown and the projections have passed; the budget of the hour ends it.
	e := s.evict(evictor.Evict, func(settings *evictor.Settings) { settings.HourlyBudget = 6 })
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
		if rack != "r0" && pods > 1 {
			t.Errorf("%d replacements met in rack %s", pods, rack)
		}
	}
	if notes := s.events("HotRack", "movers-"); len(notes) != 6 {
		t.Errorf("%d events: %q", len(notes), notes)
	}
	if e.metric("leeward_evictor_inverts_estimates", "") != 0 {
		t.Error("the evictor reads estimates instead of the means of windows")
	}
}

// A service of an earlier version sends estimates only.
func TestPodsLeaveAHotRackThatOnlyEstimatesShow(t *testing.T) {
	s := newScene(t, interval, hot(1))
	s.service.Change(func(*fake.Network) { s.service.Windows = false })
	startKubelet(t)
	s.start(s.args)
	f := newFleet(t, "estimated", 4, 0)
	e := s.evict(evictor.Evict, func(*evictor.Settings) {})
	eventually(t, "no pod leaves", func() bool { _, ended := f.counts(); return ended > 0 })
	if e.metric("leeward_evictor_inverts_estimates", "") != 1 {
		t.Error("the evictor has windows that the service does not send")
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
	beyondShort(t)
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

// The pods leave as soon as the service is back, so the evictor was ready to evict them.
func TestAnEvictorWithoutASoundServiceEvictsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		// network is the one of another cluster, and outcome that of the rounds, empty if there are none.
		network *fake.Network
		outcome string
	}{
		"gone":    {answer: breaks},
		"slow":    {answer: hangs},
		"garbage": {answer: says(http.StatusOK, `{"links": "all"}`)},
		// Its racks r0 to r2 have the names of some nodes.
		"other-cluster": {network: fake.Tree(0, 3, 4), outcome: "other_cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			onlyWithShort(t, name, "garbage")
			s := newScene(t, interval, hot(1))
			startKubelet(t)
			s.start(s.args)
			f := newFleet(t, name, 4, 0)
			s.service.Intercept(c.answer)
			if c.network != nil {
				hot(1)(c.network)
				s.service.Replace(c.network)
			}
			e := s.evict(evictor.Evict, func(*evictor.Settings) {})
			time.Sleep(10 * evictionWindow)
			if least, ended := f.counts(); least != 4 || ended != 0 {
				t.Errorf("at least %d pods ran, %d ended", least, ended)
			}
			if decided := e.metric("leeward_evictor_rounds_total", "decided"); decided != 0 {
				t.Errorf("%v rounds were decided", decided)
			}
			if c.outcome != "" && e.metric("leeward_evictor_rounds_total", c.outcome) == 0 {
				t.Errorf("no round ended with %s", c.outcome)
			}
			sound := fake.Tree(0, racks, rackSize)
			hot(1)(sound)
			s.service.Replace(sound)
			s.service.Intercept(nil)
			eventually(t, "no pod leaves after the service is back", func() bool { _, ended := f.counts(); return ended > 0 })
		})
	}
}
