package kubectl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"leeward.dev/kubernetes/api/v1alpha1"
	"leeward.dev/kubernetes/clustersync"
	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/evictor"
	"leeward.dev/kubernetes/snapshot"
)

var checkCommand = command{
	name: "check", summary: "Problems of the cluster, its nodes and pods, and the service.",
	examples: []string{"check", "check --scheduler default-scheduler", "check --evictor leeward/leeward-evictor -o json"},
	flags:    evictorFlags,
	run:      check,
}

// mostLines is the number of findings of one kind that are listed one by one.
const mostLines = 10

// Check is the result of a check.
type Check struct {
	// OK is true if nothing is wrong.
	OK    bool   `json:"ok"`
	Lines []Line `json:"lines"`
}

// State is the result of a line.
type State string

// States of lines.
const (
	// Fine means that all is as it should be.
	Fine State = "ok"
	// Note is something to know that is not wrong.
	Note State = "note"
	// Wrong needs a remedy, which the text has.
	Wrong State = "wrong"
)

// Line is a line of a check.
type Line struct {
	State State `json:"state"`
	// Subject is the checked thing.
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

func (c *Check) add(state State, subject, format string, arguments ...any) {
	c.Lines = append(c.Lines, Line{state, subject, fmt.Sprintf(format, arguments...)})
}

func check(ctx context.Context, from *Sources, o *options) (record, error) {
	if len(o.arguments) > 0 {
		return nil, usage("check: %q: expected no argument", o.arguments[0])
	}
	namespace, name, err := o.evictorName()
	if err != nil {
		return nil, err
	}
	result := &Check{}
	result.checkService(ctx, from)
	nodes, err := from.nodes(ctx)
	if err != nil {
		return nil, err
	}
	result.checkNodes(ctx, from, nodes)
	pods, err := from.pods(ctx)
	if err != nil {
		return nil, err
	}
	result.checkPods(ctx, from, pods)
	result.checkSchedulers(pods, o.schedulers())
	result.checkMatrices(ctx, from)
	result.checkEvictor(ctx, from, namespace, name)
	result.OK = true
	for _, line := range result.Lines {
		result.OK = result.OK && line.State != Wrong
	}
	return result, nil
}

// checkService checks that the service answers and sees its links.
func (c *Check) checkService(ctx context.Context, from *Sources) {
	status, err := from.Service.Status(ctx)
	if err != nil {
		c.add(Wrong, "service", "%s: check the address and the token, and that the service runs", err)
		return
	}
	c.add(Fine, "service", "version %s, cluster %s, %s", status.Version, status.Cluster, status.Role)
	if status.Stalled != nil {
		c.add(Wrong, "service", "it stores nothing: %s", *status.Stalled)
	}
	for _, warning := range status.Warnings {
		c.add(Note, "service", "%s", warning)
	}
	agents := status.Agents
	switch {
	case agents.Silent > 0:
		c.add(Wrong, "agents", "%d of %d are silent, such as %v: links of unknown load are no targets", agents.Silent,
			agents.Silent+agents.Reporting+agents.Absent, some(agents.SilentHosts))
	case agents.Reporting == 0:
		c.add(Note, "agents", "none reports: loads come from elsewhere, or are unknown")
	default:
		c.add(Fine, "agents", "%d report, %d are absent", agents.Reporting, agents.Absent)
	}
	next, err := from.Snapshots.Get(ctx, nil, true)
	if err != nil {
		c.add(Wrong, "snapshot", "%s", err)
		return
	}
	if away := from.Now.Sub(time.Unix(0, next.Time())).Abs(); away > time.Minute {
		c.add(Wrong, "clock", "the service's clock and this one differ by %v: set both by NTP", away.Round(time.Second))
	}
	c.checkDerived(next)
}

// checkDerived notes the links of racks and pods whose load is a sum.
func (c *Check) checkDerived(next *snapshot.Snapshot) {
	names := next.Names()
	derived := map[string]bool{}
	for _, host := range names.HostLinks() {
		for _, row := range [...]int32{host.Uplink, host.Downlink, host.PodUplink, host.PodDownlink} {
			if row != snapshot.None && next.IsDerived(row) {
				derived[names.LinkName(row)] = true
			}
		}
	}
	sums := slices.Sorted(maps.Keys(derived))
	const meaning = "traffic within the rack counts, and without --derived-links the evictor moves no pod off; report counters of the switch"
	switch len(sums) {
	case 0:
	case 1:
		c.add(Note, "links", "%s is the sum of its nodes: %s", sums[0], meaning)
	default:
		c.add(Note, "links", "%s and %d more are sums of their nodes: %s", sums[0], len(sums)-1, meaning)
	}
}

func some(names []string) []string { return names[:min(len(names), 3)] }

// checkNodes compares the nodes with the hosts of the service.
func (c *Check) checkNodes(ctx context.Context, from *Sources, nodes []*corev1.Node) {
	settings := clustersync.DefaultSettings()
	result, _, err := clustersync.Compare(ctx, from.Service, nodes, settings)
	if err != nil {
		c.add(Wrong, "nodes", "%s", err)
		return
	}
	hosts, err := from.Service.Hosts(ctx)
	if err != nil {
		c.add(Wrong, "nodes", "%s", err)
		return
	}
	differences := append(result.Findings, result.Changes...)
	for _, cordon := range clustersync.Cordons(hosts, nodes) {
		differences = append(differences, clustersync.Difference{
			Kind: clustersync.Drain, Object: cordon.Host,
			Problem: fmt.Sprintf("cordoned: %v; the service has the host as draining: %v", cordon.Draining, !cordon.Draining),
		})
	}
	if len(differences) == 0 {
		c.add(Fine, "nodes", "%d nodes are hosts of the service, in the racks of their labels", len(nodes))
		return
	}
	listed := map[clustersync.Kind]int{}
	for _, difference := range differences {
		if listed[difference.Kind]++; listed[difference.Kind] <= mostLines {
			state := Wrong
			if difference.Kind == clustersync.NoNode {
				// A cluster of the service may have hosts outside Kubernetes.
				state = Note
			}
			c.add(state, string(difference.Kind), "%s: %s", difference.Object, difference.Problem)
		}
	}
	for _, kind := range append(clustersync.Findings[:], clustersync.Changes[:]...) {
		if listed[kind] > mostLines {
			c.add(Note, string(kind), "... %d more", listed[kind]-mostLines)
		}
	}
}

// checkPods counts demands, and lists invalid annotations.
func (c *Check) checkPods(ctx context.Context, from *Sources, pods []*corev1.Pod) {
	known, measured, migratable, invalid := 0, 0, 0, 0
	table, err := from.peaks(ctx)
	if err != nil {
		c.add(Wrong, "peaks", "%s", errorLine(err))
	}
	for _, pod := range pods {
		needs, err := demand.Of(pod, table.Peaks)
		if needs.IsKnown() {
			known++
		}
		if needs.Egress.Source == demand.FromHistory || needs.Ingress.Source == demand.FromHistory {
			measured++
		}
		if needs.Migratable {
			migratable++
		}
		if err != nil {
			if invalid++; invalid <= mostLines {
				c.add(Wrong, "annotation", "%s", errorLine(err))
			}
		}
	}
	if invalid > mostLines {
		c.add(Note, "annotation", "... %d more pods", invalid-mostLines)
	}
	state := Fine
	if known == 0 && len(pods) > 0 {
		state = Note
	}
	c.add(state, "pods", "%d of %d pods have a known demand, %d of them a measured one; %d may be moved",
		known, len(pods), measured, migratable)
}

// checkSchedulers counts the pods with a declared peak that a scheduler without the plugins places. Without names, all have them.
func (c *Check) checkSchedulers(pods []*corev1.Pod, ours []string) {
	if ours == nil {
		return
	}
	var others []string
	for _, pod := range pods {
		_, egress := pod.Annotations[demand.PeakEgress]
		_, ingress := pod.Annotations[demand.PeakIngress]
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		name := cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)
		if (egress || ingress) && !ended && !slices.Contains(ours, name) {
			others = append(others, pod.Namespace+"/"+pod.Name+" ("+name+")")
		}
	}
	if len(others) > 0 {
		c.add(Note, "scheduler", "%d pods with a peak have another schedulerName than %s, such as %s: set it, or name their scheduler"+
			" with --scheduler", len(others), strings.Join(ours, ", "), others[0])
	}
}

// checkMatrices lists the traffic matrices that are no app, or whose pods did not come, by the conditions that the scheduler writes.
func (c *Check) checkMatrices(ctx context.Context, from *Sources) {
	matrices, err := from.matrices(ctx)
	if err != nil {
		c.add(Wrong, "matrix", "%s", err)
		return
	}
	listed := 0
	for _, matrix := range matrices {
		state, problem := problemOf(matrix)
		if problem == "" {
			continue
		}
		if listed++; listed <= mostLines {
			c.add(state, "matrix", "%s/%s: %s", matrix.Namespace, matrix.Name, problem)
		}
	}
	if listed > mostLines {
		c.add(Note, "matrix", "... %d more", listed-mostLines)
	}
	if len(matrices) > 0 && listed == 0 {
		c.add(Fine, "matrix", "%d traffic matrices are valid", len(matrices))
	}
}

// problemOf returns the problem of a traffic matrix, empty without one.
func problemOf(matrix *v1alpha1.TrafficMatrix) (State, string) {
	conditions := matrix.Status.Conditions
	valid := meta.FindStatusCondition(conditions, v1alpha1.ConditionValid)
	complete := meta.FindStatusCondition(conditions, v1alpha1.ConditionComplete)
	placed := meta.FindStatusCondition(conditions, v1alpha1.ConditionPlaced)
	switch {
	case valid == nil || valid.ObservedGeneration != matrix.Generation:
		return Note, "no scheduler with the plugin TrafficMatrix has read it"
	case valid.Status == metav1.ConditionFalse:
		return Wrong, valid.Message
	case complete != nil && complete.Reason == "NoPods":
		return Wrong, complete.Message
	case placed != nil && placed.Reason == "Ended":
		return Fine, ""
	case complete != nil && complete.Reason == "Unbound":
		return Note, complete.Message
	case complete != nil && complete.Status == metav1.ConditionFalse:
		return Wrong, "pods are missing: " + complete.Message
	case placed != nil && placed.Status == metav1.ConditionFalse:
		if placed.Reason == "Rejected" || placed.Reason == "OtherScheduler" {
			return Wrong, placed.Message
		}
		// The pods run, each placed by itself.
		return Note, placed.Message
	case complete == nil && placed == nil:
		return Note, "none of its pods has come: check its selectors and names"
	}
	return Fine, ""
}

// errorLine returns joined errors on one line.
func errorLine(err error) string {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return err.Error()
	}
	text := ""
	for _, part := range joined.Unwrap() {
		if text != "" {
			text += "; "
		}
		text += errorLine(part)
	}
	return text
}

// checkEvictor reads the evictor's ConfigMap.
func (c *Check) checkEvictor(ctx context.Context, from *Sources, namespace, name string) {
	read, err := from.Kube.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		c.add(Note, "evictor", "configmap %s/%s: not found: no evictor with the mode evict has run", namespace, name)
	case err != nil:
		c.add(Wrong, "evictor", "configmap %s/%s: %s", namespace, name, err)
	default:
		state, err := evictor.StateOf(read)
		switch {
		case err != nil:
			c.add(Wrong, "evictor", "configmap %s/%s: %s", namespace, name, err)
		case state.IsStopped:
			c.add(Note, "evictor", "stopped by the annotation %s of configmap %s/%s", evictor.StopAnnotation, namespace, name)
		default:
			c.add(Fine, "evictor", "%d evictions in the last hour", state.InHour(from.Now))
		}
	}
}

func (c *Check) table(to io.Writer) {
	var lines [][]string
	for _, line := range c.Lines {
		lines = append(lines, []string{string(line.State), line.Subject, line.Text})
	}
	rows(to, "STATE, SUBJECT, FINDING", lines)
}
