package trafficmatrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"leeward.dev/kubernetes/api/v1alpha1"
)

// steps is the work that is due. It is done without the mutex of the apps.
type steps struct {
	asks     []ask
	nominate []nomination
	wake     []*corev1.Pod
	settle   []settlement
	release  []string
	// find are requests whose decisions are looked up, and then released.
	find    []lookup
	publish []publication
	// next is the time of the next work, zero if only an event brings some.
	next time.Time
}

// ask is a complete app that needs hosts until a deadline.
type ask struct {
	name    types.NamespacedName
	run     string
	traffic *v1alpha1.App
	// pods has the pod of each task.
	pods     []*corev1.Pod
	deadline time.Time
}

// nomination is a pod with its host.
type nomination struct {
	pod  *corev1.Pod
	host string
}

// settlement is an app whose pods are all bound. The decision counts if it has these nodes; else the nodes are committed.
type settlement struct {
	ask
	nodes    []string
	decision string
	same     bool
}

// lookup is a request without an answer: the service may have a decision with its key.
type lookup struct {
	key string
	// held is true for chosen hosts. Another replica of the scheduler has asked for the same ones, and may use them: they are
	// released only while the service holds them without a confirmation.
	held bool
}

// commitmentOf returns the commitment of the nodes of a run.
func commitmentOf(run string) lookup { return lookup{key: keyOf(run)} }

// publication is a changed status of a matrix.
type publication struct {
	matrix *v1alpha1.TrafficMatrix
	status v1alpha1.TrafficMatrixStatus
	// reports are the conditions that changed.
	reports []report
}

func (s *steps) at(next time.Time) {
	if s.next.IsZero() || next.Before(s.next) {
		s.next = next
	}
}

// due returns the work that is due.
func (as *apps) due(now time.Time) steps {
	as.mutex.Lock()
	defer as.mutex.Unlock()
	result := steps{wake: as.freed}
	as.freed = nil
	if len(as.ended) > 0 && now.Before(as.releaseAt) {
		result.at(as.releaseAt)
	} else {
		result.release, as.ended = as.ended, nil
	}
	if len(as.lost) > 0 && now.Before(as.findAt) {
		result.at(as.findAt)
	} else {
		result.find, as.lost = as.lost, nil
	}
	for _, namespace := range slices.Sorted(maps.Keys(as.byName)) {
		of := as.byName[namespace]
		for _, name := range slices.Sorted(maps.Keys(of)) {
			as.advance(of[name], now, &result)
		}
	}
	return result
}

func (as *apps) advance(a *app, now time.Time, result *steps) {
	defer a.publish(now, result)
	if a.settled {
		// All pods have nodes, so nothing waits. Most apps are in this state.
		return
	}
	if a.problem == nil && a.foreign == nil {
		switch a.phase {
		case idle:
			as.miss(a, now, result)
		case gathering:
			as.gather(a, now, result)
		case asking:
			if !now.Before(a.deadline) {
				a.placeSingly("Late", "the controller did not choose hosts in time")
			} else {
				result.at(a.deadline)
			}
		case placed:
			a.nominate(now, result)
		}
		if a.phase == placed || a.phase == single {
			a.settle(now, result)
		}
	}
	a.wakeUp(now, result)
}

// publish writes the status of the matrix if it has changed, or could not be written.
func (a *app) publish(now time.Time, result *steps) {
	isUnwritten := !a.publishAt.IsZero()
	switch {
	case a.publishing || len(a.reports) == 0 && !isUnwritten:
		return
	case now.Before(a.publishAt):
		result.at(a.publishAt)
		return
	}
	status, changed := a.next(now)
	if len(changed) > 0 || status.Decision != a.status.Decision || isUnwritten {
		a.publishing = true
		result.publish = append(result.publish, publication{matrix: a.matrix, status: status.DeepCopy(), reports: changed})
	}
	a.reports, a.status, a.publishAt = nil, status, time.Time{}
}

// published says that a request with the status of a matrix has ended, or with ok false that it failed. A scheduler that starts
// again needs the decision in the status, so the request is then sent again.
func (as *apps) published(of *v1alpha1.TrafficMatrix, ok bool, now time.Time) {
	as.mutex.Lock()
	defer as.mutex.Unlock()
	a := as.byName[of.Namespace][of.Name]
	if a == nil || a.matrix.UID != of.UID {
		return
	}
	a.publishing = false
	if !ok {
		a.publishAt = now.Add(firstPause)
	}
}

// gather begins the request for a complete app, and ends the waiting of one that does not become complete.
func (as *apps) gather(a *app, now time.Time, result *steps) {
	a.number()
	missing := a.missing()
	switch {
	case missing == "":
		a.report(report{condition: v1alpha1.ConditionComplete, reason: "Complete", message: "all pods are there", holds: true})
		tasks := a.byTask()
		a.phase, a.run = asking, a.runOf(tasks)
		result.asks = append(result.asks, a.askFor(tasks))
		result.at(a.deadline)
	case !now.Before(a.deadline):
		a.report(report{condition: v1alpha1.ConditionComplete, reason: "MissingPods", message: missing, important: true})
		a.placeSingly("Incomplete", "not all pods came in time, so each is placed by itself")
	default:
		result.at(a.deadline)
	}
}

// miss reports a matrix that no pod has ever belonged to: its selectors or its names are probably wrong.
func (as *apps) miss(a *app, now time.Time, result *steps) {
	if a.seen || a.absent {
		return
	}
	if until := a.since.Add(as.settings.Absence); now.Before(until) {
		result.at(until)
		return
	}
	names := make([]string, 0, len(a.groups))
	for i := range a.groups {
		names = append(names, a.groups[i].Name)
	}
	a.absent = true
	a.report(report{condition: v1alpha1.ConditionComplete, reason: reasonNoPods, important: true, message: fmt.Sprintf(
		"no pod matches its groups: %s: check selectors and names", strings.Join(names, ", "))})
}

// see notes that a pod belongs to the matrix, and takes back the report that none does.
func (a *app) see(now time.Time) {
	a.seen, a.absent = true, false
	a.reports = slices.DeleteFunc(a.reports, func(r report) bool { return r.reason == reasonNoPods })
	complete := meta.FindStatusCondition(a.status.Conditions, v1alpha1.ConditionComplete)
	if complete != nil && complete.Reason == reasonNoPods {
		meta.RemoveStatusCondition(&a.status.Conditions, v1alpha1.ConditionComplete)
		a.publishAt = now
	}
}

func (a *app) askFor(tasks []*member) ask {
	result := ask{
		name: types.NamespacedName{Namespace: a.matrix.Namespace, Name: a.matrix.Name},
		run:  a.run, traffic: a.traffic, deadline: a.deadline,
	}
	for _, m := range tasks {
		result.pods = append(result.pods, m.pod)
	}
	return result
}

// placeSingly ends the search for hosts of the whole app.
func (a *app) placeSingly(reason, message string) {
	a.phase, a.hosts, a.run = single, nil, ""
	a.report(report{condition: v1alpha1.ConditionPlaced, reason: reason, message: message})
}

// notReleased says that the controller did not take the release of decisions, which is sent again later.
func (as *apps) notReleased(decisions []string, now time.Time) {
	as.mutex.Lock()
	defer as.mutex.Unlock()
	as.ended, as.releaseAt = append(as.ended, decisions...), now.Add(firstPause)
}

// unanswered says that a request for the hosts of a run had no answer, so that the service may hold hosts for it.
func (as *apps) unanswered(run string, now time.Time) {
	as.mutex.Lock()
	defer as.mutex.Unlock()
	as.lose(lookup{key: run, held: true}, now)
}

// found says which decision a request without an answer led to, empty if it led to none, or with ok false that the look-up
// failed and is sent again later.
func (as *apps) found(of lookup, decision string, ok bool, now time.Time) {
	as.mutex.Lock()
	defer as.mutex.Unlock()
	switch {
	case !ok:
		as.lose(of, now)
	case decision != "":
		as.ended = append(as.ended, decision)
	}
}

// answered takes in the hosts that the controller chose for a run, or the reason and the message of its refusal. If the app no
// longer waits for them, they are released.
func (as *apps) answered(name types.NamespacedName, run string, hosts []string, decision, reason, message string) {
	as.mutex.Lock()
	defer as.mutex.Unlock()
	a := as.byName[name.Namespace][name.Name]
	if a == nil || a.phase != asking || a.run != run {
		if decision != "" {
			as.ended = append(as.ended, decision)
		}
		return
	}
	as.decide(a, decision)
	if len(hosts) != len(a.traffic.Tasks) {
		as.decide(a, "")
		a.placeSingly(reason, message)
		return
	}
	a.phase, a.hosts = placed, hosts
	a.report(report{condition: v1alpha1.ConditionPlaced, reason: "Chosen", message: "the controller chose a host for each pod", holds: true})
}

// settle tells the controller the nodes of all pods once they are bound.
func (a *app) settle(now time.Time, result *steps) {
	if a.settled || a.settling {
		return
	}
	if now.Before(a.retry) {
		result.at(a.retry)
		return
	}
	a.number()
	nodes, ok := a.nodes()
	if !ok {
		return
	}
	tasks := a.byTask()
	if a.run == "" {
		a.run = a.runOf(tasks)
	}
	a.settling = true
	result.settle = append(result.settle, settlement{
		ask: a.askFor(tasks), nodes: nodes, decision: a.decision, same: a.phase == placed && slices.Equal(nodes, a.hosts),
	})
}

// settledWith says that the decision of a run has the nodes of the pods, or with ok false that the request failed and may be
// sent again. The decision is empty if the controller cannot count these nodes. An earlier decision of the pods is released,
// and so is a decision of a run that has ended meanwhile.
func (as *apps) settledWith(name types.NamespacedName, run, decision string, ok bool, now time.Time) {
	as.mutex.Lock()
	defer as.mutex.Unlock()
	a := as.byName[name.Namespace][name.Name]
	switch {
	case a == nil || a.run != run || !a.settling:
		switch {
		case !ok:
			as.lose(commitmentOf(run), now)
		case decision != "" && (a == nil || a.decision != decision):
			as.ended = append(as.ended, decision)
		}
		return
	case !ok:
		a.pause = min(max(2*a.pause, firstPause), longestPause)
		a.settling, a.unsure, a.retry = false, true, now.Add(a.pause)
		return
	}
	if a.unsure && decision == "" {
		// The service may have carried out an earlier request.
		as.lose(commitmentOf(run), now)
	}
	a.settling, a.settled, a.unsure = false, true, false
	as.decide(a, decision)
	// The status of the matrix keeps the decision over a restart.
	a.report(report{condition: v1alpha1.ConditionComplete, reason: reasonBound, message: "all pods have nodes", holds: true})
}
