package trafficmatrix

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"leeward.dev/kubernetes/api/v1alpha1"
)

// phase is the state of an app.
type phase int

const (
	// idle means that the app has no pods.
	idle phase = iota
	// gathering means that pods wait for the others.
	gathering
	// asking means that the controller chooses hosts.
	asking
	// placed means that each pod has a host.
	placed
	// single means that pods are placed one by one.
	single
)

// indexLabels are the labels in which Jobs and StatefulSets number their pods.
var indexLabels = [...]string{"batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index"}

// reasonBound is the reason of the condition Complete once the decision has the nodes of all pods.
const reasonBound = "Bound"

// reasonNoPods is the reason of the condition Complete while no pod has ever belonged to the matrix.
const reasonNoPods = "NoPods"

// noTask marks a pod that is no task of its app: all tasks of its group have a pod.
const noTask int32 = -1

// member is a pod of an app.
type member struct {
	pod   *corev1.Pod
	group int
	task  int32
	// reserved is the node that the scheduler has chosen, before the pod is bound.
	reserved string
	// admitted is true once the pod has gone to the scheduling queue.
	admitted bool
	// woken is true once the queue was asked to look at the pod again.
	woken bool
	// nominated is true once the nomination of the pod was sent, and refused if the API server did not take it.
	nominated, refused bool
	// known is true if the queue has a version of the pod with a nomination.
	known bool
}

// node returns the node of the pod, empty before the scheduler has chosen one.
func (m *member) node() string { return cmp.Or(m.pod.Spec.NodeName, m.reserved) }

// app is the state of a matrix and of its pods.
type app struct {
	matrix *v1alpha1.TrafficMatrix
	spec
	members map[types.UID]*member

	phase phase
	// since is the time at which this process took in the spec. seen is true once a pod has belonged to the matrix, and absent
	// once the matrix was reported because none has.
	since        time.Time
	seen, absent bool
	// own is true if this profile of the scheduler places a pod, and foreign is a pod that another one places, nil without one.
	own     bool
	foreign *corev1.Pod
	// deadline is the end of waiting.
	deadline time.Time
	// run identifies the request to the controller.
	run string
	// hosts has the host of each task in the phase placed.
	hosts []string
	// wakeAt is the time from which pods with nominations are woken again.
	wakeAt time.Time
	// decision is the controller's decision about the pods, empty without one. It is settled once it has their nodes.
	decision string
	settled  bool
	// settling is true while a request about that runs. After a failure it is sent again at retry, which is a pause later.
	settling bool
	retry    time.Time
	pause    time.Duration
	// unsure is true if such a request of this run had no answer, so that the service may count its nodes.
	unsure bool
	// reports are the conditions of the matrix that changed, and status is the status without them. One request at a time
	// writes it, so that none overtakes another. After a failure it is written again at publishAt.
	reports    []report
	status     v1alpha1.TrafficMatrixStatus
	publishing bool
	publishAt  time.Time
}

// report is a condition of a matrix; an important one is also an event.
type report struct {
	condition, reason, message string
	holds, important           bool
}

// newApp returns the app of a matrix. A scheduler that starts again finds the decision of the pods that run in its status. The
// decision counts once all pods are bound to its nodes; before, the service only holds it for a while.
func newApp(matrix *v1alpha1.TrafficMatrix, of spec, now time.Time) *app {
	decision := matrix.Status.Decision
	a := &app{members: map[types.UID]*member{}, status: matrix.Status.DeepCopy(), decision: decision}
	a.setSpec(matrix, of, now)
	complete := presentCondition(matrix, v1alpha1.ConditionComplete)
	a.settled = decision != "" && complete != nil && complete.Reason == reasonBound
	a.absent = complete != nil && complete.Reason == reasonNoPods
	a.seen = !a.absent && (complete != nil || presentCondition(matrix, v1alpha1.ConditionPlaced) != nil)
	return a
}

// presentCondition returns a condition of the present generation of a matrix, nil without one.
func presentCondition(matrix *v1alpha1.TrafficMatrix, name string) *metav1.Condition {
	condition := meta.FindStatusCondition(matrix.Status.Conditions, name)
	if condition == nil || condition.ObservedGeneration != matrix.Generation {
		return nil
	}
	return condition
}

// setSpec replaces the matrix by one of another generation. Hosts that were chosen for the earlier one count no longer.
func (a *app) setSpec(matrix *v1alpha1.TrafficMatrix, of spec, now time.Time) {
	a.matrix, a.spec, a.hosts = matrix, of, nil
	a.since, a.seen, a.absent = now, false, false
	if a.phase != idle {
		a.phase = single
	}
	if a.problem != nil {
		a.report(report{condition: v1alpha1.ConditionValid, reason: "InvalidMatrix", message: a.problem.Error(), important: true})
		return
	}
	a.report(report{condition: v1alpha1.ConditionValid, reason: "Valid", holds: true,
		message: fmt.Sprintf("%d pods, %d pairs with traffic", len(a.traffic.Tasks), len(a.traffic.Pairs))})
}

func (a *app) report(r report) {
	a.reports = slices.DeleteFunc(a.reports, func(earlier report) bool { return earlier.condition == r.condition })
	a.reports = append(a.reports, r)
}

// indexOf returns the number of a pod in its group, and false if the pod has none.
func (a *app) indexOf(m *member) (int32, bool) {
	group := &a.groups[m.group]
	if len(group.Pods) > 0 {
		return int32(slices.Index(group.Pods, m.pod.Name)), true
	}
	names := indexLabels[:]
	if group.IndexLabel != "" {
		names = []string{group.IndexLabel}
	}
	for _, name := range names {
		if text, ok := m.pod.Labels[name]; ok {
			index, err := strconv.ParseInt(text, 10, 32)
			return int32(index), err == nil
		}
	}
	return 0, false
}

// number gives each pod its task: first pods with an index, then the others in the order of their names. A pod keeps its
// task until it ends.
func (a *app) number() {
	taken := map[int32]bool{}
	var rest []*member
	for _, m := range a.members {
		if m.task != noTask {
			taken[m.task] = true
		} else {
			rest = append(rest, m)
		}
	}
	slices.SortFunc(rest, func(a, b *member) int {
		return cmp.Or(cmp.Compare(a.pod.Name, b.pod.Name), cmp.Compare(a.pod.UID, b.pod.UID))
	})
	for _, withIndex := range [...]bool{true, false} {
		for _, m := range rest {
			index, ok := a.indexOf(m)
			if m.task != noTask || ok != withIndex {
				continue
			}
			first, count := a.traffic.Group(m.group)
			for candidate := range count {
				if task := first + candidate; !taken[task] && (!ok || candidate == index) {
					m.task, taken[task] = task, true
					break
				}
			}
		}
	}
}

// byTask returns the pod of each task, nil for a task without one.
func (a *app) byTask() []*member {
	result := make([]*member, len(a.traffic.Tasks))
	for _, m := range a.members {
		if m.task != noTask {
			result[m.task] = m
		}
	}
	return result
}

// missing names the groups whose pods are not all there, empty if the app is complete.
func (a *app) missing() string {
	counts := make([]int32, len(a.groups))
	for _, m := range a.members {
		if m.task != noTask {
			counts[m.group]++
		}
	}
	var parts []string
	for i, has := range counts {
		if _, count := a.traffic.Group(i); has < count {
			parts = append(parts, fmt.Sprintf("%s: %d of %d pods", a.groups[i].Name, has, count))
		}
	}
	return strings.Join(parts, ", ")
}

// runOf returns the name of a run: the matrix and its pods. Two schedulers find the same name, so the controller answers both
// with one decision.
func (a *app) runOf(tasks []*member) string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %d", a.matrix.UID, a.matrix.Generation)
	for _, m := range tasks {
		fmt.Fprintf(hash, " %s", m.pod.UID)
	}
	return "trafficmatrix-" + hex.EncodeToString(hash.Sum(nil))[:40]
}

// nodes returns the node of each task, and false unless all pods are bound.
func (a *app) nodes() ([]string, bool) {
	var nodes []string
	for _, m := range a.byTask() {
		if m == nil || m.pod.Spec.NodeName == "" {
			return nil, false
		}
		nodes = append(nodes, m.pod.Spec.NodeName)
	}
	return nodes, true
}
