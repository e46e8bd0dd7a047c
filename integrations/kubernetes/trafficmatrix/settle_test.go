package trafficmatrix

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"leeward.dev/kubernetes/api/v1alpha1"
)

func TestTheDecisionIsConfirmedIfAllPodsHaveTheirHosts(t *testing.T) {
	for _, same := range []bool{true, false} {
		s := newScene(t)
		hosts := s.place()
		nodes := slices.Clone(hosts)
		if !same {
			nodes[1] = "h9"
		}
		for index, pod := range s.pods {
			if work := s.due(s.now); len(work.settle) != 0 {
				t.Fatal("settled before all pods are bound")
			}
			s.setPod(on(pod, nodes[index]), s.now)
		}
		settle := s.due(s.now).settle
		if len(settle) != 1 || settle[0].same != same || settle[0].decision != "d1" || !slices.Equal(settle[0].nodes, nodes) {
			t.Fatalf("%+v", settle)
		}
		if again := s.due(s.now); len(again.settle) != 0 {
			t.Fatal("settled twice at once")
		}
		s.settledWith(settle[0].name, settle[0].run, "", false, s.now)
		if again := s.due(s.now); len(again.settle) != 0 || !again.next.Equal(s.now.Add(firstPause)) {
			t.Fatal("no pause after a failure")
		}
		s.now = s.now.Add(firstPause)
		if again := s.due(s.now); len(again.settle) != 1 {
			t.Fatal("no second attempt")
		}
		s.settledWith(settle[0].name, settle[0].run, "d2", true, s.now)
		if release := s.due(s.now).release; !slices.Equal(release, []string{"d1"}) {
			t.Errorf("released for the decision about the nodes: %v", release)
		}
		for _, pod := range s.pods {
			s.dropPod(pod.UID, s.now)
		}
		if release := s.due(s.now).release; !slices.Equal(release, []string{"d2"}) {
			t.Errorf("released: %v", release)
		}
	}
}

func TestTheNodeOfAReplacementCountsToo(t *testing.T) {
	s := newScene(t)
	hosts := s.place()
	for index, pod := range s.pods {
		s.setPod(on(pod, hosts[index]), s.now)
	}
	first := s.due(s.now).settle[0]
	s.settledWith(first.name, first.run, "d1", true, s.now)
	s.dropPod(s.pods[2].UID, s.now)
	replacement := podOf("ring", 2)
	replacement.UID += "-again"
	s.now = s.now.Add(time.Hour)
	if !s.admit(replacement, s.now) {
		t.Error("a replacement waits")
	}
	if work := s.due(s.now); len(work.settle)+len(work.asks)+len(work.nominate) != 0 {
		t.Errorf("%+v", work)
	}
	s.setPod(on(replacement, "h9"), s.now)
	settle := s.due(s.now).settle
	if len(settle) != 1 || settle[0].same || settle[0].decision != "d1" || settle[0].nodes[2] != "h9" || settle[0].run == first.run {
		t.Errorf("%+v", settle)
	}
}

func TestARunThatEndsDuringARequestLeavesNothingBehind(t *testing.T) {
	s := newScene(t)
	s.place()
	for _, pod := range s.pods {
		s.setPod(on(pod, "h0"), s.now)
	}
	settle := s.due(s.now).settle[0]
	for _, pod := range s.pods {
		s.dropPod(pod.UID, s.now)
	}
	s.settledWith(settle.name, settle.run, "d2", true, s.now)
	if release := s.due(s.now).release; !slices.Equal(release, []string{"d1", "d2"}) {
		t.Errorf("released: %v", release)
	}
}

func TestACommitmentWithoutAnAnswerIsReleasedOnceItsPodsHaveChanged(t *testing.T) {
	for _, overlaps := range []bool{true, false} {
		s := newScene(t)
		s.place()
		// No pod waits any longer.
		s.now = s.now.Add(time.Minute)
		for _, pod := range s.pods {
			s.setPod(on(pod, "h9"), s.now)
		}
		lost := s.due(s.now).settle[0]
		if !overlaps {
			s.settledWith(lost.name, lost.run, "", false, s.now)
		}
		s.dropPod(s.pods[2].UID, s.now)
		replacement := podOf("ring", 2)
		replacement.UID += "-again"
		s.setPod(replacement, s.now)
		if overlaps {
			s.settledWith(lost.name, lost.run, "", false, s.now)
		}
		if work := s.due(s.now); len(work.find) != 0 || !work.next.Equal(s.now.Add(firstPause)) {
			t.Fatalf("%+v: looked up while the request may still be under way", work)
		}
		s.now = s.now.Add(firstPause)
		find := s.due(s.now).find
		if !slices.Equal(find, []lookup{commitmentOf(lost.run)}) {
			t.Fatalf("overlaps %v: %v", overlaps, find)
		}
		s.found(find[0], "", false, s.now)
		s.now = s.now.Add(firstPause)
		if again := s.due(s.now).find; !slices.Equal(again, find) {
			t.Fatalf("a failed look-up is not repeated: %v", again)
		}
		s.found(find[0], "d5", true, s.now)
		if release := s.due(s.now).release; !slices.Equal(release, []string{"d5"}) {
			t.Errorf("released: %v", release)
		}
	}
}

func TestAStatusThatCouldNotBeWrittenIsWrittenAgain(t *testing.T) {
	s := newScene(t)
	s.due(s.now)
	s.place()
	first := s.apps.due(s.now).publish
	if len(first) != 1 || first[0].status.Decision != "d1" {
		t.Fatalf("%+v", first)
	}
	s.published(first[0].matrix, false, s.now)
	if work := s.due(s.now); len(work.publish) != 0 || !work.next.Equal(s.now.Add(s.settings.Wait)) {
		t.Errorf("no pause after a failure: %+v", work)
	}
	s.now = s.now.Add(firstPause)
	second := s.due(s.now).publish
	if len(second) != 1 || second[0].status.Decision != "d1" || len(second[0].reports) != 0 {
		t.Fatalf("%+v: expected the same status without a second event", second)
	}
	if third := s.due(s.now.Add(time.Hour)).publish; len(third) != 0 {
		t.Errorf("written again: %+v", third)
	}
}

func TestHostsOfARequestWithoutAnAnswerAreReleased(t *testing.T) {
	s := newScene(t)
	s.expectAdmitted(false)
	of := s.due(s.now).asks[0]
	s.unanswered(of.run, s.now)
	s.answered(of.name, of.run, nil, "", "Unavailable", "no answer within 5s")
	work := s.due(s.now)
	if reasons(work) != "Placed=Unavailable" || len(work.wake) != 4 || len(work.find) != 0 {
		t.Fatalf("%+v", work)
	}
	s.now = s.now.Add(firstPause)
	find := s.due(s.now).find
	if !slices.Equal(find, []lookup{{key: of.run, held: true}}) {
		t.Fatalf("%v", find)
	}
	s.found(find[0], "d1", true, s.now)
	if release := s.due(s.now).release; !slices.Equal(release, []string{"d1"}) {
		t.Errorf("released: %v", release)
	}
}

func TestADecisionIsReleasedIfTheControllerCannotCountTheNodes(t *testing.T) {
	s := newScene(t)
	s.place()
	for _, pod := range s.pods {
		s.setPod(on(pod, "h9"), s.now)
	}
	settle := s.due(s.now).settle[0]
	s.settledWith(settle.name, settle.run, "", true, s.now)
	if work := s.due(s.now); !slices.Equal(work.release, []string{"d1"}) || len(work.settle) != 0 {
		t.Errorf("%+v", work)
	}
}

func TestADecisionWithAnotherNumberOfHostsIsReleased(t *testing.T) {
	s := newScene(t)
	s.expectAdmitted(false)
	of := s.due(s.now).asks[0]
	s.answered(of.name, of.run, []string{"h0"}, "d1", "Unavailable", "1 host")
	s.expectAdmitted(true)
	if release := s.due(s.now).release; !slices.Equal(release, []string{"d1"}) {
		t.Errorf("released: %v", release)
	}
}

func TestADecisionFromBeforeARestartEndsWithTheNextOne(t *testing.T) {
	s := newScene(t)
	matrix := ringOf("other", 2)
	matrix.Status.Decision = "d7"
	s.setMatrix(matrix, []*corev1.Pod{podOf("other", 0), podOf("other", 1)}, s.now)
	of := s.due(s.now).asks[0]
	s.answered(of.name, of.run, []string{"h0", "h1"}, "d8", "", "")
	if release := s.due(s.now).release; !slices.Equal(release, []string{"d7"}) {
		t.Errorf("released: %v", release)
	}
}

func TestTheNextRunIsPlacedAgain(t *testing.T) {
	s := newScene(t)
	s.place()
	first := s.byName["ml"]["ring"].run
	for _, pod := range s.pods {
		ended := pod.DeepCopy()
		ended.Status.Phase = corev1.PodSucceeded
		s.setPod(ended, s.now)
	}
	for index := range s.pods {
		s.pods[index] = podOf("ring", index)
		s.pods[index].UID += "-again"
	}
	s.place()
	if second := s.byName["ml"]["ring"].run; second == first {
		t.Error("both runs have one name")
	}
}

func TestTwoSchedulersGiveARunOneName(t *testing.T) {
	a, b := newScene(t), newScene(t)
	slices.Reverse(b.pods)
	a.place()
	b.place()
	if a.byName["ml"]["ring"].run != b.byName["ml"]["ring"].run {
		t.Error("the names differ")
	}
}

// restarted returns a matrix of two pods with the status that an earlier process has written.
func restarted(reason string) *v1alpha1.TrafficMatrix {
	matrix := ringOf("other", 2)
	matrix.Status.Decision = "d7"
	matrix.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: reason, ObservedGeneration: 1,
	}}
	return matrix
}

func TestADecisionThatWasNotConfirmedBeforeARestartIsReplacedByTheNodes(t *testing.T) {
	for _, reason := range []string{"Complete", "Unbound"} {
		s := newScene(t)
		s.setMatrix(restarted(reason), []*corev1.Pod{on(podOf("other", 0), "h0"), on(podOf("other", 1), "h1")}, s.now)
		settle := s.due(s.now).settle
		if len(settle) != 1 || !slices.Equal(settle[0].nodes, []string{"h0", "h1"}) {
			t.Fatalf("%s: %+v", reason, settle)
		}
		s.settledWith(settle[0].name, settle[0].run, "d8", true, s.now)
		work := s.due(s.now)
		if !slices.Equal(work.release, []string{"d7"}) || work.publish[0].status.Decision != "d8" {
			t.Errorf("%s: %+v", reason, work)
		}
		next := &v1alpha1.TrafficMatrix{
			ObjectMeta: metav1.ObjectMeta{Generation: 1}, Spec: ringOf("other", 2).Spec, Status: work.publish[0].status,
		}
		if !newApp(next, specOf(next), s.now).settled {
			t.Errorf("%s: the next process would settle it again", reason)
		}
	}
}

func TestTheStatusSaysThatTheNodeOfAReplacementDoesNotCountYet(t *testing.T) {
	s := newScene(t)
	s.setMatrix(restarted("Bound"), []*corev1.Pod{on(podOf("other", 0), "h0"), on(podOf("other", 1), "h1")}, s.now)
	s.due(s.now)
	s.dropPod(podOf("other", 0).UID, s.now)
	replacement := podOf("other", 0)
	replacement.UID += "-again"
	s.setPod(replacement, s.now)
	if work := s.due(s.now); reasons(work) != "Complete=Unbound" || work.publish[0].status.Decision != "d7" {
		t.Errorf("%s", reasons(work))
	}
}

func TestAfterARestartPodsThatRunAreNotPlacedAgain(t *testing.T) {
	s := newScene(t)
	matrix := restarted("Bound")
	s.setMatrix(matrix, []*corev1.Pod{on(podOf("other", 0), "h0"), on(podOf("other", 1), "h1")}, s.now)
	if work := s.due(s.now); len(work.asks)+len(work.settle)+len(work.release) != 0 {
		t.Errorf("%+v", work)
	}
	s.dropPod(podOf("other", 0).UID, s.now)
	if replacement := podOf("other", 0); !s.admit(replacement, s.now) {
		t.Error("a replacement waits for an app that runs")
	}
	s.dropPod(podOf("other", 0).UID, s.now)
	s.dropPod(podOf("other", 1).UID, s.now)
	if release := s.due(s.now).release; !slices.Equal(release, []string{"d7"}) {
		t.Errorf("released: %v", release)
	}
}

func TestADecisionWhosePodsEndedWhileNoSchedulerRanIsReleased(t *testing.T) {
	s := newScene(t)
	matrix := ringOf("other", 2)
	matrix.Status.Decision = "d7"
	s.setMatrix(matrix, nil, s.now)
	if release := s.due(s.now).release; !slices.Equal(release, []string{"d7"}) {
		t.Errorf("released: %v", release)
	}
}
