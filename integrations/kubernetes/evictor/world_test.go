package evictor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics"

	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/internal/fake"
)

// window is the length of a step of the world: one report, one window.
const window = 10 * time.Second

// worldSettings are those of evictors in the world.
func worldSettings() Settings {
	s := short()
	s.HourlyBudget = 40
	return s
}

// tenant is a pod with its true traffic.
type tenant struct {
	object   *corev1.Pod
	workload int
	rack     string
	// declared are its peak rates, and share the part of them that it sends and receives now.
	declared [2]float64
	share    float64
	// gone is the step at which it ends, 0 before its eviction.
	gone int
}

// left is an eviction that the API server accepted.
type left struct {
	at       time.Time
	uid      types.UID
	workload int
	rack     string
	declared [2]float64
	gone     time.Time
}

// world is a cluster whose API server enforces budgets as the real one does, and a network with the traffic of its pods.
type world struct {
	t       testing.TB
	r       *rand.Rand
	plant   *plant
	client  *kubefake.Clientset
	nodes   []*corev1.Node
	tenants []*tenant
	budgets []*policyv1.PodDisruptionBudget
	// least is the number of pods of each workload that must be available, below 0 for one without a budget.
	least []int
	step  int
	next  int
	// pending are the workloads whose pods will be placed, by the step.
	pending map[int][]int
	// means are the loads of links over the last windows, the latest last, and NaN for those without a report.
	means map[string][]float64
	left  []left
	// config is the evictor's ConfigMap with its version.
	config  *corev1.ConfigMap
	version int
	// faults are the shares of requests that fail; half of them fail after the API server has carried them out.
	configFaults, evictionFaults, serviceFaults float64
	// lag is the share of rounds in which informers have not moved on, and seen is what they had last.
	lag  float64
	seen *Cluster
	// rollouts is the share of steps in which a pod is replaced by one on a node of any load.
	rollouts float64
	// isAdvised is true if the service decides which pods leave.
	isAdvised bool
	rejected  map[string]int
	service   *ledgerOfWorld
	metrics   *Metrics
}

// ledgerOfWorld is a service that learns of evictions.
type ledgerOfWorld struct {
	world    *world
	expected map[string]bool
	released int
}

func (l *ledgerOfWorld) fault() error {
	if l.world.r.Float64() < l.world.serviceFaults {
		return errors.New("the service is away")
	}
	return nil
}

func (l *ledgerOfWorld) DecisionsOf(context.Context, string) ([]httpapi.Decision, error) {
	ended := "2026-01-31T12:00:00Z"
	return []httpapi.Decision{{ID: "placed"}, {ID: "ended", Released: &ended}}, l.fault()
}

func (l *ledgerOfWorld) Release(_ context.Context, id string) (bool, error) {
	if err := l.fault(); err != nil {
		return false, err
	}
	if id == "ended" {
		l.world.t.Error("a decision was released twice")
	}
	l.released++
	delete(l.expected, id)
	return true, nil
}

func (l *ledgerOfWorld) Expect(_ context.Context, e httpapi.Expectation) (string, error) {
	if err := l.fault(); err != nil {
		return "", err
	}
	l.expected[e.Key] = true
	return e.Key, nil
}

// newWorld returns a world of 18 nodes in 6 racks with 60 pods of 20 workloads. The links of racks have a capacity in bit/s.
func newWorld(t testing.TB, seed uint64, capacity int64) *world {
	network := fake.Tree(2, 3, 3)
	for _, rack := range network.Racks {
		network.Link(rack.Name + ":uplink").Capacity = capacity
		network.Link(rack.Name + ":downlink").Capacity = capacity
	}
	w := &world{
		t: t, r: rand.New(rand.NewPCG(seed, 1)), plant: newPlant(t, network, window, 0.2),
		client: kubefake.NewClientset(), pending: map[int][]int{}, means: map[string][]float64{}, rejected: map[string]int{},
		metrics: NewMetrics(metrics.NewKubeRegistry()),
	}
	w.service = &ledgerOfWorld{world: w, expected: map[string]bool{}}
	for _, host := range w.plant.network.Hosts {
		w.nodes = append(w.nodes, readyNode(host.Name))
	}
	for workload := range 20 {
		least := min(w.r.IntN(7)-1, 3)
		w.least = append(w.least, least)
		if least >= 0 {
			w.budgets = append(w.budgets, budget(fmt.Sprint("w", workload), fmt.Sprint("w", workload), 0))
		}
		for range 3 {
			w.place(workload, 1)
		}
	}
	w.client.PrependReactor("*", "configmaps", w.configMaps)
	w.client.PrependReactor("*", "pods", w.pods)
	return w
}

func (w *world) now() time.Time { return w.plant.network.Time }

// place starts a pod of a workload on the node in the coolest rack of some random ones.
func (w *world) place(workload, choices int) {
	node := w.nodes[w.r.IntN(len(w.nodes))]
	for range choices - 1 {
		other := w.nodes[w.r.IntN(len(w.nodes))]
		if w.mean(w.rack(other.Name)) < w.mean(w.rack(node.Name)) {
			node = other
		}
	}
	w.next++
	egress, ingress := int64(1e8+8e9*w.r.Float64()*w.r.Float64()), int64(6e9*w.r.Float64()*w.r.Float64())
	pod := podOn(node.Name, fmt.Sprintf("w%d-%d", workload, w.next), fmt.Sprint("w", workload),
		strconv.FormatInt(egress, 10), strconv.FormatInt(ingress, 10))
	pod.CreationTimestamp = metav1.NewTime(w.now())
	pod.Status.StartTime = &metav1.Time{Time: w.now()}
	if workload%5 == 0 {
		pod.Annotations["leeward.dev/migratable"] = "false"
	}
	w.tenants = append(w.tenants, &tenant{
		object: pod, workload: workload, rack: w.rack(node.Name), declared: [2]float64{float64(egress), float64(ingress)},
		share: 0.5 + 0.5*w.r.Float64(),
	})
}

func (w *world) rack(node string) string {
	for _, host := range w.plant.network.Hosts {
		if host.Name == node {
			return host.Rack
		}
	}
	return ""
}

// mean returns the last mean load of a rack's fuller link.
func (w *world) mean(rack string) float64 {
	fullest := 0.0
	for _, link := range []string{rack + ":uplink", rack + ":downlink"} {
		if means := w.means[link]; len(means) > 0 {
			fullest = max(fullest, means[len(means)-1])
		}
	}
	return fullest
}

// available returns the number of pods of a workload that run and do not end.
func (w *world) available(workload int) int {
	count := 0
	for _, tenant := range w.tenants {
		if tenant.workload == workload && tenant.gone == 0 {
			count++
		}
	}
	return count
}

// away is the error of an API server that may or may not have carried a request out.
func away() error { return apierrors.NewInternalError(errors.New("etcd is away")) }

// violates is the error of an API server that does not accept an eviction now, for some causes.
func violates(causes ...metav1.StatusCause) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = causes
	return err
}

// configMaps answers requests for ConfigMaps, with versions as the API server has them.
func (w *world) configMaps(action kubetesting.Action) (bool, runtime.Object, error) {
	resource := schema.GroupResource{Resource: "configmaps"}
	fails := w.r.Float64() < w.configFaults
	if fails && w.r.IntN(2) == 0 {
		return true, nil, away()
	}
	store := func(object runtime.Object) (bool, runtime.Object, error) {
		w.version++
		w.config = object.(*corev1.ConfigMap).DeepCopy()
		w.config.ResourceVersion = strconv.Itoa(w.version)
		if fails {
			return true, nil, away()
		}
		return true, w.config.DeepCopy(), nil
	}
	// The interfaces of creations and updates are the same.
	switch action.GetVerb() {
	case "get":
		if w.config == nil {
			return true, nil, apierrors.NewNotFound(resource, action.(kubetesting.GetAction).GetName())
		}
		return true, w.config.DeepCopy(), nil
	case "update":
		update := action.(kubetesting.UpdateAction).GetObject().(*corev1.ConfigMap)
		if w.config == nil || update.ResourceVersion != w.config.ResourceVersion {
			return true, nil, apierrors.NewConflict(resource, update.Name, errors.New("the object has changed"))
		}
		return store(update)
	case "create":
		return store(action.(kubetesting.CreateAction).GetObject())
	}
	w.t.Errorf("an evictor must not %s configmaps", action.GetVerb())
	return true, nil, errors.New("unexpected")
}

// pods answers evictions, and rejects all other requests for pods.
func (w *world) pods(action kubetesting.Action) (bool, runtime.Object, error) {
	create, ok := action.(kubetesting.CreateAction)
	if !ok || action.GetSubresource() != "eviction" {
		w.t.Errorf("an evictor must not %s pods/%s", action.GetVerb(), action.GetSubresource())
		return true, nil, errors.New("unexpected")
	}
	resource := schema.GroupResource{Resource: "pods"}
	eviction := create.GetObject().(*policyv1.Eviction)
	if eviction.DeleteOptions == nil || eviction.DeleteOptions.Preconditions == nil || eviction.DeleteOptions.Preconditions.UID == nil {
		w.t.Fatal("an eviction without a UID")
	}
	fails := w.r.Float64() < w.evictionFaults
	if fails && w.r.IntN(2) == 0 {
		w.rejected["fault"]++
		return true, nil, away()
	}
	for _, tenant := range w.tenants {
		if tenant.object.Name != eviction.Name || tenant.object.Namespace != action.GetNamespace() {
			continue
		}
		if tenant.object.UID != *eviction.DeleteOptions.Preconditions.UID {
			w.rejected["uid"]++
			return true, nil, apierrors.NewConflict(resource, eviction.Name, errors.New("the UID differs"))
		}
		if w.available(tenant.workload) <= w.least[tenant.workload] {
			w.rejected["budget"]++
			w.checkSeen(tenant.workload)
			return true, nil, violates(metav1.StatusCause{Type: policyv1.DisruptionBudgetCause})
		}
		w.evict(tenant)
		if fails {
			w.rejected["lost answer"]++
			return true, nil, away()
		}
		return true, nil, nil
	}
	w.rejected["gone"]++
	return true, nil, apierrors.NewNotFound(resource, eviction.Name)
}

// checkSeen fails if the informers of the evictor have a budget of a workload that allows no disruption.
func (w *world) checkSeen(workload int) {
	if w.seen == nil {
		return
	}
	for _, budget := range w.seen.Budgets {
		if budget.Name == fmt.Sprint("w", workload) && budget.Status.DisruptionsAllowed <= 0 {
			w.t.Fatalf("step %d: an eviction was requested beyond budget %s", w.step, budget.Name)
		}
	}
}

// evict checks the rules that must hold for an eviction, and ends the pod.
func (w *world) evict(tenant *tenant) {
	now, settings := w.now(), worldSettings()
	pod := tenant.object
	if pod.Annotations["leeward.dev/migratable"] != "true" {
		w.t.Fatalf("step %d: pod %s may not be moved", w.step, pod.Name)
	}
	if tenant.gone != 0 {
		w.t.Fatalf("step %d: pod %s was evicted twice", w.step, pod.Name)
	}
	hour := 1
	for _, earlier := range w.left {
		if now.Sub(earlier.at) < time.Hour {
			hour++
		}
		if earlier.workload == tenant.workload && now.Sub(earlier.at) < 10*window {
			w.t.Fatalf("step %d: pods of workload %d moved twice within ten windows", w.step, tenant.workload)
		}
		if earlier.rack == tenant.rack && earlier.at != now && now.Sub(earlier.at) < 10*window {
			w.t.Fatalf("step %d: rack %s does not cool", w.step, tenant.rack)
		}
	}
	if hour > settings.HourlyBudget {
		w.t.Fatalf("step %d: %d evictions in an hour", w.step, hour)
	}
	if !w.isAdvised && !w.isNeeded(tenant, settings) {
		w.t.Fatalf("step %d: pod %s left rack %s below the relief", w.step, pod.Name, tenant.rack)
	}
	tenant.gone = w.step + 1 + w.r.IntN(3)
	// Most workloads replace a pod at once, others when it is gone, and some replacements wait for long.
	ready := w.step + 1 + w.r.IntN(5)
	if w.r.IntN(5) == 0 {
		ready += w.r.IntN(90)
	}
	w.pending[ready] = append(w.pending[ready], tenant.workload)
	pod = pod.DeepCopy()
	pod.DeletionTimestamp = &metav1.Time{Time: now}
	tenant.object = pod
	w.left = append(w.left, left{
		at: now, uid: pod.UID, workload: tenant.workload, rack: tenant.rack, declared: tenant.declared,
		gone: now.Add(time.Duration(tenant.gone-w.step) * window),
	})
}

// isNeeded returns true if a link of the pod's rack was hot for enough windows, and is above the threshold without the pods
// that leave already.
func (w *world) isNeeded(tenant *tenant, settings Settings) bool {
	for side, link := range []string{tenant.rack + ":uplink", tenant.rack + ":downlink"} {
		// A window closes two intervals after its end.
		means := w.means[link]
		if len(means) < 2+settings.HotWindows {
			continue
		}
		closed := means[:len(means)-2]
		capacity, hot := float64(w.plant.network.Link(link).Capacity), true
		for _, mean := range closed[len(closed)-settings.HotWindows:] {
			// Estimates are rounded to whole bits per second.
			hot = hot && mean > settings.Threshold*capacity-100
		}
		load := closed[len(closed)-1]
		start := w.now().Add(-3 * window)
		for _, earlier := range w.left {
			if earlier.rack == tenant.rack && earlier.gone.After(start) && w.now().Sub(earlier.at) <= settings.Lasts {
				load -= earlier.declared[side]
			}
		}
		if hot && load > settings.Threshold*capacity-100 {
			return true
		}
	}
	return false
}

// vary changes the traffic of some pods.
func (w *world) vary() {
	for _, tenant := range w.tenants {
		if w.r.IntN(20) == 0 {
			tenant.share = 0.3 + 0.7*w.r.Float64()
		}
	}
}

// advance passes one window.
func (w *world) advance() {
	w.step++
	loads := map[string]float64{}
	rest := w.tenants[:0]
	for _, tenant := range w.tenants {
		if tenant.gone != 0 && tenant.gone <= w.step {
			continue
		}
		rest = append(rest, tenant)
		for side, link := range []string{tenant.rack + ":uplink", tenant.rack + ":downlink"} {
			loads[link] += tenant.share * tenant.declared[side]
		}
	}
	w.tenants = rest
	w.plant.report(window, func(link string) float64 {
		load := min(loads[link], float64(w.plant.network.Link(link).Capacity))
		w.means[link] = append(w.means[link], load)
		return math.Round(load)
	})
	for _, workload := range w.pending[w.step] {
		w.place(workload, 1+3*w.r.IntN(2))
	}
	delete(w.pending, w.step)
	if w.r.Float64() < w.rollouts {
		w.rollOut()
	}
	for i, budget := range w.budgets {
		workload, _ := strconv.Atoi(budget.Name[1:])
		available := w.available(workload)
		if available < w.least[workload] {
			w.t.Fatalf("step %d: workload %d has %d pods of %d", w.step, workload, available, w.least[workload])
		}
		// Informers may still have the old object.
		w.budgets[i] = budget.DeepCopy()
		w.budgets[i].Status.DisruptionsAllowed = int32(available - w.least[workload])
	}
}

// loseReports passes some windows that stay unknown.
func (w *world) loseReports(windows int) {
	for i := range w.left {
		if w.left[i].gone.After(w.now()) {
			w.left[i].gone = w.left[i].gone.Add(time.Duration(windows) * window)
		}
	}
	w.plant.network.Time = w.now().Add(time.Duration(windows) * window)
	for link := range w.means {
		for range windows {
			w.means[link] = append(w.means[link], math.NaN())
		}
	}
}

// rollOut replaces a pod by a new one that starts first, so no budget limits it.
func (w *world) rollOut() {
	number := w.r.IntN(len(w.tenants))
	if old := w.tenants[number]; old.gone == 0 {
		w.place(old.workload, 1)
		w.tenants = slices.Delete(w.tenants, number, number+1)
	}
}

// cluster returns the objects as informers have them.
func (w *world) cluster() *Cluster {
	if w.seen != nil && w.r.Float64() < w.lag {
		return w.seen
	}
	cluster := &Cluster{Nodes: w.nodes, Budgets: slices.Clone(w.budgets)}
	for _, tenant := range w.tenants {
		cluster.Pods = append(cluster.Pods, tenant.object)
	}
	w.seen = cluster
	return cluster
}

// runner returns an evictor in the world.
func (w *world) runner(mode Mode, recorder events.EventRecorder) *Runner {
	w.t.Helper()
	runner, err := NewRunner(w.options(mode, recorder))
	if err != nil {
		w.t.Fatal(err)
	}
	return runner
}

// options returns the options of an evictor in the world.
func (w *world) options(mode Mode, recorder events.EventRecorder) Options {
	return Options{
		Mode: mode, Settings: worldSettings(), Estimator: w.plant.estimator, MaxAge: time.Minute, Client: w.client,
		Namespace: "leeward", Name: "leeward-evictor", Cluster: w.cluster, Service: w.service, Events: recorder,
		Metrics: w.metrics, Log: slog.New(slog.DiscardHandler),
	}
}

// observe gives a runner the present snapshot, and lets it decide.
func (w *world) observe(runner *Runner) {
	runner.OnSnapshot(w.plant.snapshot())
	w.decide(runner)
}

// decide lets a runner decide if a window has closed.
func (w *world) decide(runner *Runner) {
	select {
	case <-runner.closed:
		runner.Round(context.Background(), w.now())
	default:
	}
}
