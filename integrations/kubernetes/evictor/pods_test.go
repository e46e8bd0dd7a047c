package evictor

import (
	"errors"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/fit"
)

// podOn returns a running pod of a Deployment that may be moved.
func podOn(node, name, workload string, egress, ingress string) *corev1.Pod {
	yes := true
	started := metav1.NewTime(now.Add(-time.Hour))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: started,
			Labels: map[string]string{"app": workload},
			Annotations: map[string]string{
				demand.Migratable: "true", demand.PeakEgress: egress, demand.PeakIngress: ingress,
			},
			OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: workload, Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Requests: amounts("500m", "1Gi")},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started},
	}
}

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// readyNode returns a node with room for 16 processors.
func readyNode(name string) *corev1.Node {
	allocatable := amounts("16", "64Gi")
	allocatable[corev1.ResourcePods] = resource.MustParse("110")
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Allocatable: allocatable,
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// budget returns a PodDisruptionBudget of the pods of a workload.
func budget(name, workload string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": workload}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}

func inRack(string) string { return "r0" }

func TestOnlyRunningPodsThatSomethingReplacesElsewhereMayLeave(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*corev1.Pod)
		stays  Reason
	}{
		{"all is well", func(*corev1.Pod) {}, ""},
		{"no annotation", func(p *corev1.Pod) { delete(p.Annotations, demand.Migratable) }, NotMigratable},
		{"invalid annotation", func(p *corev1.Pod) { p.Annotations[demand.Migratable] = "yes" }, NotMigratable},
		{"no controller", func(p *corev1.Pod) { p.OwnerReferences = nil }, NoController},
		{"daemon", func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" }, Bound},
		{"static", func(p *corev1.Pod) { p.Annotations[corev1.MirrorPodAnnotationKey] = "x" }, Bound},
		{"another scheduler", func(p *corev1.Pod) { p.Spec.SchedulerName = "batch" }, OtherScheduler},
		{"no scheduler named", func(p *corev1.Pod) { p.Spec.SchedulerName = "" }, OtherScheduler},
		{"a daemon of another scheduler", func(p *corev1.Pod) {
			p.Spec.SchedulerName, p.OwnerReferences[0].Kind = "batch", "DaemonSet"
		}, Bound},
		{"pending", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, NotRunning},
		{"ending", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }, NotRunning},
	} {
		pod := podOn("n", "a", "web", "1G", "2G")
		pod.Spec.SchedulerName = "leeward-scheduler"
		c.change(pod)
		cluster := &Cluster{Pods: []*corev1.Pod{pod}, Schedulers: []string{"other", "leeward-scheduler"}}
		places := cluster.Places(inRack, nil)
		if len(places.Pods) != 1 || places.Pods[0].Stays != c.stays {
			t.Errorf("%s: %+v", c.name, places.Pods)
		}
	}
}

func TestWithoutNamesOfSchedulersThePodsOfAllOfThemMayLeave(t *testing.T) {
	for _, name := range []string{"", "default-scheduler", "batch"} {
		pod := podOn("n", "a", "web", "1G", "2G")
		pod.Spec.SchedulerName = name
		if stays := (&Cluster{Pods: []*corev1.Pod{pod}}).Places(inRack, nil).Pods[0].Stays; stays != "" {
			t.Errorf("%q: %s", name, stays)
		}
	}
}

func TestAPodHasItsRackRatesRequestsAndBudget(t *testing.T) {
	cluster := &Cluster{
		Pods:    []*corev1.Pod{podOn("n", "a", "web", "1G", "2G"), podOn("", "waiting", "web", "1G", "1G")},
		Nodes:   []*corev1.Node{readyNode("n"), readyNode("m")},
		Budgets: []*policyv1.PodDisruptionBudget{budget("web", "web", 2), budget("other", "db", 1)},
	}
	cluster.Nodes[1].Spec.Unschedulable = true
	places := cluster.Places(inRack, nil)
	if len(places.Pods) != 1 {
		t.Fatalf("%+v", places.Pods)
	}
	expected := Pod{
		UID: "uid-a", Namespace: "shop", Name: "a", Node: "n", Rack: "r0", Workload: "StatefulSet/shop/web",
		Rates: [2]int64{1e9, 2e9}, Requests: fit.Resources{"cpu": 500, "memory": 1 << 30, "pods": 1}, Budget: "shop/web",
	}
	if !reflect.DeepEqual(places.Pods[0], expected) {
		t.Errorf("%+v", places.Pods[0])
	}
	if places.Disruptions["shop/web"] != 2 || places.Disruptions["shop/other"] != 1 {
		t.Errorf("%v", places.Disruptions)
	}
	if places.Nodes[0].Name != "m" || places.Nodes[0].Accepts || !places.Nodes[1].Accepts || places.Nodes[1].Free["cpu"] != 15_500 {
		t.Errorf("%+v", places.Nodes)
	}
}

func TestAPodWithSeveralBudgetsStays(t *testing.T) {
	cluster := &Cluster{
		Pods:    []*corev1.Pod{podOn("n", "a", "web", "1G", "2G")},
		Budgets: []*policyv1.PodDisruptionBudget{budget("one", "web", 2), budget("two", "web", 2)},
	}
	if stays := cluster.Places(inRack, nil).Pods[0].Stays; stays != ManyBudgets {
		t.Errorf("%q", stays)
	}
}

func TestABudgetThatItsControllerHasNotSeenAllowsNothing(t *testing.T) {
	changed := budget("web", "web", 5)
	changed.Generation, changed.Status.ObservedGeneration = 2, 1
	places := (&Cluster{Budgets: []*policyv1.PodDisruptionBudget{changed}}).Places(inRack, nil)
	if places.Disruptions["shop/web"] != 0 {
		t.Errorf("%v", places.Disruptions)
	}
}

func TestInvalidAnnotationsAreNamedAndThePodHasNoRate(t *testing.T) {
	cluster := &Cluster{Pods: []*corev1.Pod{podOn("n", "a", "web", "fast", "2G")}}
	places := cluster.Places(inRack, nil)
	var problem *demand.InvalidAnnotationError
	if len(places.Problems) != 1 || !errors.As(places.Problems[0], &problem) || problem.Annotation != demand.PeakEgress {
		t.Errorf("%v", places.Problems)
	}
	if pod := places.Pods[0]; pod.Rates != [2]int64{0, 2e9} || pod.Unknown != [2]bool{true, false} {
		t.Errorf("%+v", pod)
	}
}

func TestAReplacementIsTheFirstPodOfTheWorkloadAfterTheEviction(t *testing.T) {
	evicted := func(uid string, before time.Duration) Record {
		return Record{UID: uid, At: now.Add(-before), Workload: "w", Source: "hot", Target: "cool"}
	}
	sighting := func(uid, rack string, before time.Duration) Sighting {
		return Sighting{UID: uid, Workload: "w", Rack: rack, Created: now.Add(-before)}
	}
	started := sighting("new-2", "r2", 10*time.Second)
	started.Started = now.Add(-5 * time.Second)
	records := follow(
		[]Record{evicted("a", time.Minute), evicted("b", time.Minute), evicted("c", 0)},
		[]Sighting{sighting("older", "r9", time.Hour), sighting("new-1", "", 30*time.Second), started, sighting("c", "hot", time.Hour)},
		now,
	)
	if records[0].Replacement != "new-1" || records[0].Landed != "" || records[0].Gone != now {
		t.Errorf("%+v", records[0])
	}
	if records[1].Replacement != "new-2" || records[1].Landed != "r2" || records[1].Started != started.Started {
		t.Errorf("%+v", records[1])
	}
	if records[2].Replacement != "" || !records[2].Gone.IsZero() {
		t.Errorf("%+v", records[2])
	}
	later := follow(records, []Sighting{sighting("new-1", "r1", 30*time.Second)}, now.Add(time.Minute))
	if later[0].Landed != "r1" || later[0].Gone != now || later[1].Landed != "r2" {
		t.Errorf("%+v", later)
	}
	if records[0].Landed != "" {
		t.Error("earlier records changed")
	}
}

func TestRecordsOutlastTheirText(t *testing.T) {
	records := []Record{{
		UID: "a", At: now, Namespace: "shop", Name: "a", Workload: "w", Source: "hot", Target: "cool", Rates: [2]int64{5, 6},
		Gone: now.Add(time.Second), Replacement: "b", Landed: "r1", Started: now.Add(time.Minute), Expectation: "7",
	}, {UID: "c", At: now}}
	text, err := encodeRecords(records)
	if err != nil {
		t.Fatal(err)
	}
	read, err := decodeRecords(text)
	if err != nil || !reflect.DeepEqual(read, records) {
		t.Errorf("%v: %+v", err, read)
	}
	for _, invalid := range []string{"{", `[{"at": "yesterday"}]`, `[{"uid": "a"}]`, `[{"at": "2026-01-31T12:00:00Z"}]`, `{}`} {
		if read, err := decodeRecords(invalid); err == nil {
			t.Errorf("%s: %+v", invalid, read)
		}
	}
	absurd, err := decodeRecords(`[{"uid": "a", "at": "2026-01-31T12:00:00Z", "rates": [-5, 9223372036854775807]}]`)
	if err != nil || absurd[0].Rates != [2]int64{0, 1 << 47} {
		t.Errorf("%v: %+v", err, absurd)
	}
}

func TestEverySettingIsCheckedByItsName(t *testing.T) {
	if err := DefaultSettings().Check(time.Second); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Settings){
		"threshold":         func(s *Settings) { s.Threshold = 1.1 },
		"margin":            func(s *Settings) { s.Margin = 0.8 },
		"window":            func(s *Settings) { s.Window = time.Millisecond },
		"lasts":             func(s *Settings) { s.Lasts = time.Second },
		"hot windows":       func(s *Settings) { s.HotWindows = 0 },
		"rack cooldown":     func(s *Settings) { s.RackCooldown = 0 },
		"workload cooldown": func(s *Settings) { s.WorkloadCooldown = -1 },
		"hourly budget":     func(s *Settings) { s.HourlyBudget = 1001 },
	} {
		s := DefaultSettings()
		change(&s)
		if err := s.Check(time.Second); err == nil || err.Error()[:len(name)] != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}
