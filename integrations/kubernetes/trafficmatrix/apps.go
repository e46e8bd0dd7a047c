package trafficmatrix

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"leeward.dev/kubernetes/api/v1alpha1"
)

// Pauses after failed requests about the nodes of an app double from firstPause to longestPause. Releases are sent again after
// firstPause.
const (
	firstPause   = 10 * time.Second
	longestPause = 5 * time.Minute
)

// apps are the apps of all matrices. Methods take the time, send nothing, and return at once. The scheduler calls them with
// its queue locked, so nothing that takes that lock may be called with the mutex held.
type apps struct {
	settings Settings
	// profile is the name of the scheduler whose pods are placed.
	profile string
	// ready returns true if the controller answers: pods wait for nothing else.
	ready func(now time.Time) bool

	mutex sync.Mutex
	// byName has the apps of each namespace by the name of the matrix.
	byName map[string]map[string]*app
	byPod  map[types.UID]*app
	index  index
	// ended are decisions whose pods have ended, or have another decision. They are not released before releaseAt.
	ended     []string
	releaseAt time.Time
	// lost are requests without an answer, whose decisions nothing else would release. They are not looked up before findAt.
	lost   []lookup
	findAt time.Time
	// freed are pods that waited and have no matrix any more.
	freed []*corev1.Pod
}

func newApps(settings Settings, profile string, ready func(now time.Time) bool) *apps {
	return &apps{
		settings: settings, profile: profile, ready: ready,
		byName: map[string]map[string]*app{}, byPod: map[types.UID]*app{}, index: index{},
	}
}

// setMatrix adds a matrix or replaces it. pods are the pods of its namespace. One goroutine calls it and dropMatrix.
func (as *apps) setMatrix(matrix *v1alpha1.TrafficMatrix, pods []*corev1.Pod, now time.Time) {
	if as.isCurrent(matrix) {
		return
	}
	of := specOf(matrix)
	own := make([]*corev1.Pod, 0, len(pods))
	for _, pod := range pods {
		if of.groupOf(pod) >= 0 {
			own = append(own, pod)
		}
	}
	as.mutex.Lock()
	defer as.mutex.Unlock()
	a := as.byName[matrix.Namespace][matrix.Name]
	if a != nil && a.matrix.UID != matrix.UID {
		as.drop(a, now)
		a = nil
	}
	if a == nil {
		a = as.add(matrix, of, now)
	} else {
		as.change(a, matrix, of, now)
	}
	if len(own)+len(a.members) > 0 {
		// Pods that have ended show too that the selectors and the names are right.
		a.see(now)
	}
	for _, pod := range own {
		as.setPodLocked(pod, now)
	}
	if len(a.members) == 0 {
		as.end(a, now)
	}
}

// isCurrent takes in another version of a matrix, and returns true if it has the same spec.
func (as *apps) isCurrent(matrix *v1alpha1.TrafficMatrix) bool {
	as.mutex.Lock()
	defer as.mutex.Unlock()
	a := as.byName[matrix.Namespace][matrix.Name]
	if a == nil || a.matrix.UID != matrix.UID || a.matrix.Generation != matrix.Generation {
		return false
	}
	a.matrix = matrix
	return true
}

func (as *apps) add(matrix *v1alpha1.TrafficMatrix, of spec, now time.Time) *app {
	if as.byName[matrix.Namespace] == nil {
		as.byName[matrix.Namespace] = map[string]*app{}
	}
	a := newApp(matrix, of, now)
	as.byName[matrix.Namespace][matrix.Name] = a
	as.index.add(a)
	return a
}

// change replaces the spec of a matrix. Its pods may belong to other groups, or to none.
func (as *apps) change(a *app, matrix *v1alpha1.TrafficMatrix, of spec, now time.Time) {
	as.endRun(a, now)
	as.index.remove(a)
	a.setSpec(matrix, of, now)
	as.index.add(a)
	for uid, m := range a.members {
		if m.group, m.task = a.groupOf(m.pod), noTask; m.group < 0 {
			as.leave(a, uid, now)
		}
	}
}

// endRun ends a run, whose pods have changed. A commitment without an answer is looked up later.
func (as *apps) endRun(a *app, now time.Time) {
	if a.unsure {
		as.lose(commitmentOf(a.run), now)
	}
	a.settled, a.settling, a.unsure, a.run = false, false, false, ""
}

// lose looks up the decision of a request later, when a request that is still under way has reached the service.
func (as *apps) lose(of lookup, now time.Time) {
	as.lost, as.findAt = append(as.lost, of), now.Add(firstPause)
}

// dropMatrix removes a matrix. Its pods are then placed without it.
func (as *apps) dropMatrix(name types.NamespacedName, now time.Time) {
	as.mutex.Lock()
	defer as.mutex.Unlock()
	if a := as.byName[name.Namespace][name.Name]; a != nil {
		as.drop(a, now)
	}
}

func (as *apps) drop(a *app, now time.Time) {
	for uid := range a.members {
		as.leave(a, uid, now)
	}
	as.end(a, now)
	as.index.remove(a)
	of := as.byName[a.matrix.Namespace]
	if delete(of, a.matrix.Name); len(of) == 0 {
		delete(as.byName, a.matrix.Namespace)
	}
}

// setPod takes in a pod as it is now. It returns true if the pod belongs, or belonged, to an app, or may do so once its gates open.
func (as *apps) setPod(pod *corev1.Pod, now time.Time) bool {
	as.mutex.Lock()
	defer as.mutex.Unlock()
	before := as.byPod[pod.UID]
	return as.setPodLocked(pod, now) != nil || before != nil || len(pod.Spec.SchedulingGates) > 0
}

func (as *apps) setPodLocked(pod *corev1.Pod, now time.Time) *app {
	hasEnded := pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	a := as.byPod[pod.UID]
	if hasEnded {
		if a != nil {
			as.leave(a, pod.UID, now)
		}
		return nil
	}
	if a == nil {
		if a = as.find(pod); a == nil {
			return nil
		}
		a.see(now)
		if len(pod.Spec.SchedulingGates) > 0 {
			// Such a pod may stay outside of the queue for hours, so it is not there yet.
			return nil
		}
		as.join(a, pod, now)
		return a
	}
	a.members[pod.UID].set(pod)
	if a.phase == gathering && pod.Spec.NodeName != "" {
		a.runsInPart()
	}
	return a
}

// runsInPart ends the waiting for an app of which some pods run already: it cannot be placed as a whole.
func (a *app) runsInPart() {
	a.placeSingly("RunsInPart", "some pods of the app have nodes already, so the others are placed one by one")
}

// find returns the app of a pod: that of the first matrix by name which has a group for it.
func (as *apps) find(pod *corev1.Pod) *app {
	var result *app
	for a := range as.index.candidates(pod) {
		if (result == nil || a.matrix.Name < result.matrix.Name) && a.groupOf(pod) >= 0 {
			result = a
		}
	}
	return result
}

// join adds a pod. The first pod of an app begins a run, and waits for the others unless it runs already.
func (as *apps) join(a *app, pod *corev1.Pod, now time.Time) {
	a.members[pod.UID] = &member{pod: pod, group: a.groupOf(pod), task: noTask}
	as.byPod[pod.UID] = a
	as.joinProfile(a, pod)
	if (a.settled || a.settling || a.unsure) && pod.Spec.NodeName == "" {
		// It replaces another pod, and may get another node. The answer to a request about the other one comes too late.
		as.endRun(a, now)
		a.report(report{condition: v1alpha1.ConditionComplete, reason: "Unbound", message: "a pod that replaces another one has no node yet"})
	}
	switch {
	case a.foreign != nil && (a.phase == gathering || a.phase == asking):
		a.phase, a.run = single, ""
	case a.phase == gathering && pod.Spec.NodeName != "":
		a.runsInPart()
	case a.phase != idle:
	case a.foreign != nil || pod.Spec.NodeName != "" || as.settings.Wait == 0:
		a.phase = single
	case !as.ready(now):
		a.placeSingly("Unavailable", "there is no fresh snapshot of the network, so the pods are placed one by one")
	default:
		a.phase, a.deadline = gathering, now.Add(as.settings.Wait)
	}
}

// joinProfile notes which scheduler places a pod. An app of several schedulers is not placed as a whole. An app of another one
// alone is its business: that scheduler may have this plugin too.
func (as *apps) joinProfile(a *app, pod *corev1.Pod) {
	wasMixed := a.own && a.foreign != nil
	if pod.Spec.SchedulerName == as.profile {
		a.own = true
	} else if a.foreign == nil {
		a.foreign = pod
	}
	if a.own && a.foreign != nil && !wasMixed {
		a.report(report{condition: v1alpha1.ConditionPlaced, reason: "OtherScheduler", important: true, message: fmt.Sprintf(
			"pod %s has schedulerName %s, so the pods are placed one by one", a.foreign.Name, a.foreign.Spec.SchedulerName)})
	}
}

// dropPod removes a pod that no longer exists.
func (as *apps) dropPod(uid types.UID, now time.Time) {
	as.mutex.Lock()
	defer as.mutex.Unlock()
	if a := as.byPod[uid]; a != nil {
		as.leave(a, uid, now)
	}
}

func (as *apps) leave(a *app, uid types.UID, now time.Time) {
	if m := a.members[uid]; !m.admitted {
		as.freed = append(as.freed, m.pod)
	}
	delete(a.members, uid)
	delete(as.byPod, uid)
	if len(a.members) == 0 {
		as.end(a, now)
	}
}

// end ends a run: its decision is released, and the next pod begins another.
func (as *apps) end(a *app, now time.Time) {
	if a.decision != "" {
		a.report(report{condition: v1alpha1.ConditionPlaced, reason: "Ended", message: "the pods have ended"})
	}
	as.decide(a, "")
	as.endRun(a, now)
	a.phase, a.own, a.foreign, a.hosts, a.retry, a.pause = idle, false, nil, nil, time.Time{}, 0
}

// decide replaces the decision of an app, and releases the earlier one. Requests for one app may overlap, so only this state
// knows which decision counts; the requests release nothing themselves.
func (as *apps) decide(a *app, decision string) {
	if a.decision != "" && a.decision != decision {
		as.ended = append(as.ended, a.decision)
	}
	a.decision = decision
}

// reserve says that the scheduler has chosen a node for a pod, or with an empty node that it has given up its choice.
func (as *apps) reserve(uid types.UID, node string) {
	as.mutex.Lock()
	defer as.mutex.Unlock()
	if a := as.byPod[uid]; a != nil {
		a.members[uid].reserved = node
	}
}

// isMember returns true if a pod belongs to an app.
func (as *apps) isMember(pod *corev1.Pod) bool {
	as.mutex.Lock()
	defer as.mutex.Unlock()
	return as.byPod[pod.UID] != nil || as.find(pod) != nil
}

// peer is a node with pods that a pod exchanges data with.
type peer struct {
	node string
	// out are the bytes to those pods, and in those from them.
	out, in int64
}

// situation is the state of an app for a pod that is scored.
type situation struct {
	// host is the host that the controller chose, empty without one.
	host  string
	peers []peer
}

// situationOf returns the situation of a pod, and false if it is no task of an app. A peer without a node counts on the host
// that the controller chose for it.
func (as *apps) situationOf(uid types.UID) (situation, bool) {
	as.mutex.Lock()
	defer as.mutex.Unlock()
	a := as.byPod[uid]
	if a == nil || a.traffic == nil {
		return situation{}, false
	}
	a.number()
	own := a.members[uid].task
	if own == noTask {
		return situation{}, false
	}
	var result situation
	if a.phase == placed {
		result.host = a.hosts[own]
	}
	tasks := a.byTask()
	at := func(task int32) string {
		node := ""
		if tasks[task] != nil {
			node = tasks[task].node()
		}
		if node == "" && a.phase == placed {
			node = a.hosts[task]
		}
		return node
	}
	for _, pair := range a.traffic.Pairs {
		if pair.From == own {
			result.peers = append(result.peers, peer{node: at(pair.To), out: pair.Bytes})
		} else if pair.To == own {
			result.peers = append(result.peers, peer{node: at(pair.From), in: pair.Bytes})
		}
	}
	result.peers = slices.DeleteFunc(result.peers, func(p peer) bool { return p.node == "" })
	slices.SortFunc(result.peers, func(a, b peer) int { return cmp.Compare(a.node, b.node) })
	return result, true
}
