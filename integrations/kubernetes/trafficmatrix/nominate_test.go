package trafficmatrix

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestEachPodIsNominatedToItsHostOnce(t *testing.T) {
	s := newScene(t)
	hosts := s.place()
	work := s.due(s.now)
	if len(work.nominate) != 4 || !work.next.Equal(began.Add(s.settings.Wait)) {
		t.Fatalf("%+v", work)
	}
	for _, of := range work.nominate {
		index := slices.IndexFunc(s.pods, func(pod *corev1.Pod) bool { return pod.UID == of.pod.UID })
		if of.host != hosts[index] {
			t.Errorf("%s: %s", of.pod.Name, of.host)
		}
	}
	if again := s.due(s.now); len(again.nominate) != 0 {
		t.Error("nominated twice")
	}
	s.refused(s.pods[2].UID)
	if work := s.due(s.now); len(work.wake) != 0 {
		t.Error("a pod is woken before the others are nominated")
	}
	s.expectAdmitted(false)
	for index, pod := range s.pods {
		if index != 2 {
			s.pods[index] = nominated(pod, hosts[index])
			s.setPod(s.pods[index], s.now)
		}
	}
	s.admits()
	s.expectAdmitted(true)
}

func TestNoPodGoesBeforeTheQueueHasAllNominations(t *testing.T) {
	s := newScene(t)
	hosts := s.place()
	s.due(s.now)
	for index, pod := range s.pods {
		s.setPod(nominated(pod, hosts[index]), s.now)
	}
	// The queue has the version without a nomination of each pod, and then one new version after another.
	for index := range s.pods {
		s.expectAdmitted(false)
		if woken := len(s.due(s.now).wake); woken != 4 {
			t.Errorf("%d pods are woken after version %d", woken, index)
		}
		if again := s.due(s.now); len(again.wake) != 0 || !again.next.Equal(s.now.Add(activationInterval)) {
			t.Errorf("woken again without a pause: %+v", again)
		}
		s.pods[index] = nominated(s.pods[index], hosts[index])
		s.now = s.now.Add(activationInterval)
	}
	s.admits()
	s.expectAdmitted(true)
	if work := s.due(s.now); len(work.wake) != 0 || !work.next.IsZero() {
		t.Errorf("%+v: work although all pods have gone", work)
	}
}

func TestTheLastNominationWakesTheOthersAtOnce(t *testing.T) {
	s := newScene(t)
	hosts := s.place()
	s.due(s.now)
	for index, pod := range s.pods {
		s.pods[index] = nominated(pod, hosts[index])
		s.setPod(s.pods[index], s.now)
	}
	s.due(s.now)
	s.admits()
	if woken := len(s.due(s.now).wake); woken != 3 {
		t.Errorf("%d pods are woken", woken)
	}
}

func TestAnErasedNominationIsSentAgainUntilTheWaitIsOver(t *testing.T) {
	s := newScene(t)
	hosts := s.place()
	s.due(s.now)
	for index, pod := range s.pods {
		s.pods[index] = nominated(pod, hosts[index])
		s.setPod(s.pods[index], s.now)
	}
	s.admits()
	s.expectAdmitted(true)
	// The scheduler reserves a node for two pods, and gives up: the cycle of their group had too few pods.
	erase := func(index int) []nomination {
		pod := s.pods[index]
		s.reserve(pod.UID, hosts[index])
		s.setPod(nominated(pod, ""), s.now)
		if early := s.due(s.now).nominate; len(early) != 0 {
			t.Errorf("nominated while the scheduler has a node: %v", early)
		}
		s.reserve(pod.UID, "")
		again := s.due(s.now).nominate
		s.setPod(pod, s.now)
		return again
	}
	for _, index := range []int{1, 3} {
		again := erase(index)
		if len(again) != 1 || again[0].pod.UID != s.pods[index].UID || again[0].host != hosts[index] {
			t.Errorf("pod %d: %v", index, again)
		}
	}
	s.setPod(nominated(s.pods[0], "another"), s.now)
	if work := s.due(s.now); len(work.nominate) != 0 {
		t.Error("the nomination of the preemption is overwritten")
	}
	s.setPod(on(s.pods[2], hosts[2]), s.now)
	if work := s.due(s.now); len(work.nominate) != 0 {
		t.Error("a bound pod is nominated")
	}
	s.now = began.Add(s.settings.Wait)
	if again := erase(1); len(again) != 0 {
		t.Errorf("nominated after the wait: %v", again)
	}
}

func TestThePodsGoWithoutNominationsOnceTheWaitIsOver(t *testing.T) {
	s := newScene(t)
	hosts := s.place()
	s.due(s.now)
	// Only a part of the nominations arrives.
	s.pods[0] = nominated(s.pods[0], hosts[0])
	s.setPod(s.pods[0], s.now)
	s.expectAdmitted(false)
	work := s.due(s.now)
	if len(work.wake) != 0 || !work.next.Equal(began.Add(s.settings.Wait)) {
		t.Errorf("%+v", work)
	}
	s.now = began.Add(s.settings.Wait + time.Millisecond)
	if work := s.due(s.now); len(work.wake) != 4 {
		t.Errorf("%d pods are woken", len(work.wake))
	}
	s.expectAdmitted(true)
}
