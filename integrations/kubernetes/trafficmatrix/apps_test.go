package trafficmatrix

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"leeward.dev/kubernetes/api/v1alpha1"
)

const profile = "leeward-scheduler"

var began = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// ringOf returns a matrix in which pods with the label app=NAME send in a ring.
func ringOf(name string, count int32) *v1alpha1.TrafficMatrix {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	return &v1alpha1.TrafficMatrix{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("matrix-" + name), Generation: 1},
		Spec: v1alpha1.TrafficMatrixSpec{
			Groups:      []v1alpha1.Group{{Name: "worker", Count: count, Selector: selector}},
			Collectives: []v1alpha1.Collective{{Pattern: v1alpha1.Ring, Groups: []string{"worker"}, Bytes: resource.MustParse("1G")}},
		},
	}
}

// podOf returns a pod of an app with an index.
func podOf(app string, index int) *corev1.Pod {
	name := fmt.Sprintf("%s-%d", app, index)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ml", Name: name, UID: types.UID("pod-" + name),
			Labels: map[string]string{"app": app, "batch.kubernetes.io/job-completion-index": fmt.Sprint(index)},
		},
		Spec: corev1.PodSpec{SchedulerName: profile, Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("1Gi"),
			}},
		}}},
	}
}

func on(pod *corev1.Pod, node string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.NodeName = node
	return pod
}

func nominated(pod *corev1.Pod, node string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.NominatedNodeName = node
	return pod
}

// scene is an app of four pods whose controller answers.
type scene struct {
	*apps
	t    *testing.T
	now  time.Time
	up   bool
	pods []*corev1.Pod
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t, now: began, up: true}
	settings := Settings{Wait: 5 * time.Second, Hold: time.Minute, Absence: DefaultAbsence}
	s.apps = newApps(settings, profile, func(time.Time) bool { return s.up })
	s.setMatrix(ringOf("ring", 4), nil, s.now)
	for index := range 4 {
		s.pods = append(s.pods, podOf("ring", index))
	}
	return s
}

// due returns the work that is due, whose conditions are written at once.
func (s *scene) due(now time.Time) steps {
	work := s.apps.due(now)
	for _, of := range work.publish {
		s.published(of.matrix, true, now)
	}
	return work
}

// admits returns for each pod whether it may go.
func (s *scene) admits() []bool {
	var result []bool
	for _, pod := range s.pods {
		result = append(result, s.admit(pod, s.now))
	}
	return result
}

func (s *scene) expectAdmitted(expected bool) {
	s.t.Helper()
	for index, admitted := range s.admits() {
		if admitted != expected {
			s.t.Errorf("pod %d: admitted: %v", index, admitted)
		}
	}
}

// place takes the app to the phase placed, with a host for each pod.
func (s *scene) place() []string {
	s.t.Helper()
	s.expectAdmitted(false)
	asks := s.due(s.now).asks
	if len(asks) != 1 {
		s.t.Fatalf("%d requests", len(asks))
	}
	hosts := []string{"h0", "h1", "h2", "h3"}
	s.answered(asks[0].name, asks[0].run, hosts, "d1", "", "")
	return hosts
}

// reasons returns the reasons of the conditions that are due.
func reasons(work steps) string {
	var parts []string
	for _, publication := range work.publish {
		for _, r := range publication.reports {
			parts = append(parts, r.condition+"="+r.reason)
		}
	}
	return strings.Join(parts, " ")
}

func TestThePodsOfAnAppWaitUntilTheControllerHasBeenAskedOnce(t *testing.T) {
	s := newScene(t)
	for _, pod := range s.pods[:3] {
		if s.admit(pod, s.now) {
			t.Fatal("a pod goes before the app is complete")
		}
		if work := s.due(s.now); len(work.asks) > 0 || !work.next.Equal(began.Add(5*time.Second)) {
			t.Fatalf("%+v", work)
		}
	}
	hosts := s.place()
	for range 3 {
		if work := s.due(s.now); len(work.asks) > 0 {
			t.Fatal("the controller is asked again")
		}
	}
	s.expectAdmitted(false)
	for index, pod := range s.pods {
		s.pods[index] = nominated(pod, hosts[index])
		s.setPod(s.pods[index], s.now)
	}
	if work := s.due(s.now); len(work.wake) != 4 {
		t.Errorf("%d pods are woken", len(work.wake))
	}
	s.admits()
	s.expectAdmitted(true)
}

func TestNoPodWaitsLongerThanTheSetting(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		s := newScene(t)
		first := map[types.UID]time.Time{}
		for range 400 {
			pod := s.pods[random.IntN(len(s.pods))]
			if _, ok := first[pod.UID]; !ok {
				first[pod.UID] = s.now
			}
			admitted := s.admit(pod, s.now)
			if !admitted && s.now.Sub(first[pod.UID]) >= s.settings.Wait {
				t.Fatalf("%s waits for %v", pod.Name, s.now.Sub(first[pod.UID]))
			}
			work := s.due(s.now)
			for _, of := range work.asks {
				switch random.IntN(3) {
				case 0:
					s.answered(of.name, of.run, []string{"a", "b", "c", "d"}, "d", "", "")
				case 1:
					s.answered(of.name, of.run, nil, "", "Refused", "full")
				}
			}
			for _, of := range work.nominate {
				switch random.IntN(3) {
				case 0:
					s.setPod(nominated(of.pod, of.host), s.now)
				case 1:
					s.refused(of.pod.UID)
				}
			}
			s.now = s.now.Add(time.Duration(random.IntN(50)) * time.Millisecond)
		}
		for _, pod := range s.pods {
			if _, ok := first[pod.UID]; ok && !s.admit(pod, s.now) {
				t.Fatalf("%s never goes", pod.Name)
			}
		}
	}
}

func TestWithoutAControllerNoPodWaits(t *testing.T) {
	s := newScene(t)
	s.up = false
	s.expectAdmitted(true)
	if work := s.due(s.now); !strings.Contains(reasons(work), "Placed=Unavailable") {
		t.Errorf("%s", reasons(work))
	}
	s = newScene(t)
	s.settings.Wait = 0
	s.expectAdmitted(true)
	if work := s.due(s.now); strings.Contains(reasons(work), "Placed") {
		t.Errorf("without waiting: %s", reasons(work))
	}
}

func TestAnIncompleteAppIsPlacedPodByPodAndNamesItsGroups(t *testing.T) {
	s := newScene(t)
	s.pods = s.pods[:3]
	s.expectAdmitted(false)
	s.due(s.now)
	s.now = s.now.Add(5 * time.Second)
	work := s.due(s.now)
	if reasons(work) != "Complete=MissingPods Placed=Incomplete" || len(work.wake) != 3 || len(work.asks) != 0 {
		t.Fatalf("%s, %d woken", reasons(work), len(work.wake))
	}
	if r := work.publish[0].reports[0]; r.message != "worker: 3 of 4 pods" || !r.important {
		t.Errorf("%+v", r)
	}
	if again := s.due(s.now); reasons(again) != "" || len(again.wake) != 0 {
		t.Error("reported or woken twice")
	}
	s.expectAdmitted(true)
	if late := podOf("ring", 3); !s.admit(late, s.now) {
		t.Error("a late pod waits")
	}
}

func TestAMatrixThatNoPodBelongsToIsReportedOnceUntilOneComes(t *testing.T) {
	s := newScene(t)
	if work := s.due(s.now); reasons(work) != "Valid=Valid" || !work.next.Equal(began.Add(DefaultAbsence)) {
		t.Errorf("%s, next at %v", reasons(work), work.next)
	}
	s.now = s.now.Add(DefaultAbsence)
	work := s.due(s.now)
	if reasons(work) != "Complete=NoPods" {
		t.Fatalf("%s", reasons(work))
	}
	if r := work.publish[0].reports[0]; r.message != "no pod matches its groups: worker: check selectors and names" || !r.important || r.holds {
		t.Errorf("%+v", r)
	}
	s.now = s.now.Add(DefaultAbsence)
	if again := s.due(s.now); len(again.publish) != 0 {
		t.Errorf("reported twice: %s", reasons(again))
	}
	matrix := ringOf("ring", 4)
	matrix.Status = work.publish[0].status
	next := newApps(s.settings, profile, s.ready)
	next.setMatrix(matrix, nil, s.now)
	if again := next.due(s.now.Add(DefaultAbsence)); len(again.publish) != 0 {
		t.Errorf("the next process reports it again: %s", reasons(again))
	}
	s.setPod(s.pods[0], s.now)
	if work := s.due(s.now); len(work.publish) != 1 ||
		meta.FindStatusCondition(work.publish[0].status.Conditions, v1alpha1.ConditionComplete) != nil {
		t.Errorf("%+v", work.publish)
	}
}

func TestOnlyAMatrixThatNoPodHasBelongedToIsReported(t *testing.T) {
	gated, ended := podOf("ring", 0), podOf("ring", 0)
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}}
	ended.Status.Phase = corev1.PodSucceeded
	other := func(app string) *v1alpha1.TrafficMatrix {
		matrix := ringOf("ring", 4)
		matrix.Generation, matrix.Spec.Groups[0].Selector.MatchLabels = 2, map[string]string{"app": app}
		return matrix
	}
	for name, c := range map[string]struct {
		change   func(s *scene)
		reported bool
	}{
		"its pod waits for a gate":       {func(s *scene) { s.setPod(gated, s.now) }, false},
		"its pod has come and ended":     {func(s *scene) { s.setPod(s.pods[0], s.now); s.setPod(ended, s.now) }, false},
		"its pod ended before the start": {func(s *scene) { s.setMatrix(other("ring"), []*corev1.Pod{ended}, s.now) }, false},
		"its new selector has a typo": {func(s *scene) {
			s.setPod(s.pods[0], s.now)
			s.setMatrix(other("rings"), s.pods[:1], s.now)
		}, true},
		"an earlier process placed its pods": {func(s *scene) {
			matrix := restarted("Bound")
			matrix.Name, matrix.UID = "ring", "matrix-again"
			s.setMatrix(matrix, nil, s.now)
		}, false},
	} {
		s := newScene(t)
		c.change(s)
		if s.due(s.now.Add(DefaultAbsence)); s.byName["ml"]["ring"].absent != c.reported {
			t.Errorf("%s: reported: %v", name, !c.reported)
		}
	}
}

func TestAnAnswerThatComesTooLateIsReleased(t *testing.T) {
	s := newScene(t)
	s.expectAdmitted(false)
	of := s.due(s.now).asks[0]
	s.now = s.now.Add(5 * time.Second)
	if work := s.due(s.now); reasons(work) != "Placed=Late" || len(work.wake) != 4 {
		t.Errorf("%s, %d woken", reasons(work), len(work.wake))
	}
	s.answered(of.name, of.run, []string{"a", "b", "c", "d"}, "d1", "", "")
	work := s.due(s.now)
	if !slices.Equal(work.release, []string{"d1"}) || len(work.nominate) != 0 {
		t.Errorf("%+v", work)
	}
	s.notReleased(work.release, s.now)
	if again := s.due(s.now); len(again.release) != 0 || !again.next.Equal(s.now.Add(firstPause)) {
		t.Error("released again without a pause")
	}
	s.now = s.now.Add(firstPause)
	if again := s.due(s.now); !slices.Equal(again.release, []string{"d1"}) {
		t.Error("never released")
	}
}

func TestARefusedAppIsPlacedPodByPod(t *testing.T) {
	s := newScene(t)
	s.expectAdmitted(false)
	of := s.due(s.now).asks[0]
	s.answered(of.name, of.run, nil, "", "Refused", "no host has room for worker.2")
	work := s.due(s.now)
	if reasons(work) != "Placed=Refused" || len(work.wake) != 4 {
		t.Errorf("%s, %d woken", reasons(work), len(work.wake))
	}
	s.expectAdmitted(true)
}

func TestPeersCountOnTheirNodesOrOnTheirHosts(t *testing.T) {
	s := newScene(t)
	s.place()
	s.setPod(on(s.pods[1], "n1"), s.now)
	s.reserve(s.pods[3].UID, "n3")
	of, ok := s.situationOf(s.pods[0].UID)
	if !ok || of.host != "h0" || fmt.Sprint(of.peers) != "[{n1 1000000000 0} {n3 0 1000000000}]" {
		t.Errorf("%+v", of)
	}
	s.reserve(s.pods[3].UID, "")
	if of, _ := s.situationOf(s.pods[2].UID); fmt.Sprint(of.peers) != "[{h3 1000000000 0} {n1 0 1000000000}]" {
		t.Errorf("%+v", of)
	}
	if _, ok := s.situationOf("elsewhere"); ok {
		t.Error("a pod without a matrix")
	}
}

func TestPodsWithoutAnIndexAreNumberedByName(t *testing.T) {
	s := newScene(t)
	for index, pod := range s.pods {
		pod.Labels = map[string]string{"app": "ring"}
		pod.Name = fmt.Sprintf("ring-%c", 'd'-rune(index))
	}
	s.place()
	for index, pod := range s.pods {
		if task := s.byPod[pod.UID].members[pod.UID].task; task != int32(3-index) {
			t.Errorf("%s: task %d", pod.Name, task)
		}
	}
}

func TestAPodBeyondTheAppGoesByItself(t *testing.T) {
	s := newScene(t)
	for _, index := range []int{9, -1, 2} {
		pod := podOf("ring", index)
		pod.UID = types.UID(fmt.Sprint("beyond", index))
		s.pods = append(s.pods, pod)
	}
	s.place()
	if admitted := s.admits(); fmt.Sprint(admitted[4:6]) != "[true true]" {
		t.Errorf("%v", admitted)
	}
}

func TestPodsWithSchedulingGatesAreNotThereYet(t *testing.T) {
	s := newScene(t)
	gated := s.pods[3].DeepCopy()
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}}
	for _, pod := range []*corev1.Pod{gated, s.pods[0], s.pods[1], s.pods[2]} {
		s.setPod(pod, s.now)
	}
	if work := s.due(s.now); len(work.asks) != 0 {
		t.Error("asked before the gates are open")
	}
	s.setPod(s.pods[3], s.now)
	if work := s.due(s.now); len(work.asks) != 1 {
		t.Error("not asked after the gates are open")
	}
}

func TestNamesFindPods(t *testing.T) {
	s := newScene(t)
	matrix := ringOf("named", 2)
	matrix.Spec.Groups[0] = v1alpha1.Group{Name: "worker", Pods: []string{"b-0", "a-0"}}
	s.setMatrix(matrix, nil, s.now)
	s.admit(podOf("a", 0), s.now)
	s.admit(podOf("b", 0), s.now)
	if asks := s.due(s.now).asks; len(asks) != 1 || asks[0].pods[0].Name != "b-0" || asks[0].pods[1].Name != "a-0" {
		t.Errorf("%+v", asks)
	}
}

func TestAnInvalidMatrixLetsItsPodsGo(t *testing.T) {
	s := newScene(t)
	s.due(s.now)
	matrix := ringOf("ring", 1)
	matrix.Generation = 2
	s.expectAdmitted(false)
	s.setMatrix(matrix, nil, s.now)
	work := s.due(s.now)
	if reasons(work) != "Valid=InvalidMatrix" || !work.publish[0].reports[0].important || len(work.wake) != 4 {
		t.Errorf("%s, %d woken", reasons(work), len(work.wake))
	}
	s.expectAdmitted(true)
}

func TestWithoutItsMatrixAPodGoes(t *testing.T) {
	s := newScene(t)
	s.expectAdmitted(false)
	s.dropMatrix(types.NamespacedName{Namespace: "ml", Name: "ring"}, s.now)
	if work := s.due(s.now); len(work.wake) != 4 {
		t.Errorf("%d pods are woken", len(work.wake))
	}
	s.expectAdmitted(true)
	if len(s.byName)+len(s.byPod)+len(s.index) != 0 {
		t.Errorf("%v, %v, %v", s.byName, s.byPod, s.index)
	}
}

func TestPodsOfAnotherSchedulerAreNotPlaced(t *testing.T) {
	s := newScene(t)
	s.pods[3].Spec.SchedulerName = "default-scheduler"
	for _, pod := range s.pods {
		s.admit(pod, s.now)
	}
	work := s.due(s.now)
	if len(work.asks) != 0 || reasons(work) != "Valid=Valid Placed=OtherScheduler" {
		t.Errorf("%d requests, %s", len(work.asks), reasons(work))
	}
	r := work.publish[0].reports[1]
	if r.message != "pod ring-3 has schedulerName default-scheduler, so the pods are placed one by one" || !r.important {
		t.Errorf("%+v", r)
	}
	s.expectAdmitted(true)
	s.pods = append(s.pods, podOf("ring", 4))
	s.expectAdmitted(true)
	if again := s.due(s.now); len(again.publish) != 0 {
		t.Errorf("reported twice: %s", reasons(again))
	}
}

func TestAnAppOfAnotherSchedulerAloneIsItsBusiness(t *testing.T) {
	s := newScene(t)
	for _, pod := range s.pods {
		pod.Spec.SchedulerName = "default-scheduler"
	}
	s.expectAdmitted(true)
	if work := s.due(s.now); len(work.asks) != 0 || reasons(work) != "Valid=Valid" {
		t.Errorf("%d requests, %s", len(work.asks), reasons(work))
	}
}

func TestAPodOfAnotherSchedulerEndsARequest(t *testing.T) {
	s := newScene(t)
	s.expectAdmitted(false)
	of := s.due(s.now).asks[0]
	other := podOf("ring", 4)
	other.Spec.SchedulerName = "default-scheduler"
	s.setPod(other, s.now)
	s.answered(of.name, of.run, []string{"a", "b", "c", "d"}, "d1", "", "")
	work := s.due(s.now)
	if !slices.Equal(work.release, []string{"d1"}) || reasons(work) != "Placed=OtherScheduler" {
		t.Errorf("%+v", work)
	}
	s.expectAdmitted(true)
}

func TestAPodThatRunsAlreadyEndsTheWaiting(t *testing.T) {
	s := newScene(t)
	s.expectAdmitted(false)
	s.setPod(on(s.pods[0], "h0"), s.now)
	if work := s.due(s.now); len(work.asks) != 0 || !strings.Contains(reasons(work), "Placed=RunsInPart") {
		t.Errorf("%s", reasons(work))
	}
	s.expectAdmitted(true)
}
