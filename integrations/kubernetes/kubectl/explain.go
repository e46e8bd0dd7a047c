package kubectl

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/evictor"
	"leeward.dev/kubernetes/networkload"
	"leeward.dev/kubernetes/placements"
	"leeward.dev/kubernetes/score"
	"leeward.dev/kubernetes/snapshot"
)

var explainCommand = command{
	name: "explain", arguments: " pod/NAME", summary: "The demand of a pod, the links of its node, and why it may move or stays.",
	examples: []string{"explain pod/web-0", "explain pod/shop/web-0", "explain pod/web-0 -n shop -o json"},
	flags:    evictorFlags,
	run:      explain,
}

// bestNodes is the number of nodes that are listed for a pod without a node.
const bestNodes = 5

// Explanation is the network of a pod.
type Explanation struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Workload  string `json:"workload"`
	Node      string `json:"node,omitempty"`
	Rack      string `json:"rack,omitempty"`
	Egress    Demand `json:"egress"`
	Ingress   Demand `json:"ingress"`
	// Problems are invalid annotations.
	Problems []string `json:"problems,omitempty"`
	// Migratable is true if the evictor may move the pod. Stays is the reason for which it does not, empty for none.
	Migratable bool   `json:"migratable"`
	Stays      string `json:"stays,omitempty"`
	// Budget is the PodDisruptionBudget of the pod, and Disruptions the number that it allows now.
	Budget      string `json:"disruption_budget,omitempty"`
	Disruptions *int32 `json:"disruptions_allowed,omitempty"`
	// Evictor is the state of the evictor, nil for a pod without a node.
	Evictor *EvictorState `json:"evictor,omitempty"`
	// Candidates has the node of the pod, with loads that contain its traffic. For a pod without a node it has the nodes with
	// the highest scores, with the pod.
	Candidates []Candidate `json:"candidates"`
	// Events are those of Leeward on the pod, the latest last.
	Events []Event `json:"events,omitempty"`
}

// EvictorState is what the evictor remembers about a pod, by the records in its ConfigMap.
type EvictorState struct {
	// Stopped is true if the annotation stops all evictions.
	Stopped bool `json:"stopped"`
	// InHour is the number of evictions in the last hour, and HourlyBudget the largest one.
	InHour       int `json:"evictions_in_hour"`
	HourlyBudget int `json:"hourly_budget"`
	// RackCools and WorkloadCools are the seconds for which no pod leaves the rack of the pod, and none of its workload.
	RackCools     float64 `json:"rack_cools_s"`
	WorkloadCools float64 `json:"workload_cools_s"`
}

// Demand is a peak rate in bit/s and its source.
type Demand struct {
	Peak   int64  `json:"peak_bps"`
	Source string `json:"source"`
}

// Candidate is a node with its score.
type Candidate struct {
	Node  string `json:"node"`
	Rack  string `json:"rack"`
	Score int64  `json:"score"`
	// Limit is the fullest link, or the first of unknown load.
	Limit string          `json:"limit,omitempty"`
	Links []CandidateLink `json:"links"`
}

// CandidateLink is a link on the way of the pod's traffic.
type CandidateLink struct {
	Link        string   `json:"link"`
	Capacity    int64    `json:"capacity_bps"`
	Load        *float64 `json:"load_bps"`
	Demand      int64    `json:"demand_bps"`
	Utilization *float64 `json:"utilization"`
}

// Event is an event of Leeward.
type Event struct {
	Time   string `json:"time"`
	Reason string `json:"reason"`
	Note   string `json:"note"`
}

func explain(ctx context.Context, from *Sources, o *options) (record, error) {
	if len(o.arguments) != 1 {
		return nil, usage("explain: %d arguments: expected one such as pod/web-0", len(o.arguments))
	}
	namespace, name, err := podName(o.arguments[0], from.Namespace)
	if err != nil {
		return nil, err
	}
	pod, err := from.Kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("pod %s/%s: not found: name the namespace as pod/NAMESPACE/NAME or with -n", namespace, name)
	}
	if err != nil {
		return nil, fmt.Errorf("pod %s/%s: %w", namespace, name, err)
	}
	view, err := from.view(ctx)
	if err != nil {
		return nil, err
	}
	measured, err := from.peaks(ctx)
	if err != nil {
		return nil, err
	}
	needs, invalid := demand.Of(pod, measured.Peaks)
	owner := demand.WorkloadOf(pod)
	result := &Explanation{
		Namespace: namespace, Pod: name, Workload: owner.Kind + "/" + owner.Name, Node: pod.Spec.NodeName,
		Egress:     Demand{needs.Egress.Bps, string(needs.Egress.Source)},
		Ingress:    Demand{needs.Ingress.Bps, string(needs.Ingress.Source)},
		Migratable: needs.Migratable,
	}
	if invalid != nil {
		result.Problems = strings.Split(invalid.Error(), "\n")
	}
	if err := result.addEvictor(ctx, from, view, pod, o, needs.IsKnown()); err != nil {
		return nil, err
	}
	if err := result.addCandidates(ctx, from, view, needs); err != nil {
		return nil, err
	}
	return result, result.addEvents(ctx, from, pod)
}

// podName returns the namespace and the name of pod/NAME, pod/NAMESPACE/NAME or NAME.
func podName(argument, namespace string) (string, string, error) {
	parts := strings.Split(argument, "/")
	if len(parts) > 1 && (parts[0] == "pod" || parts[0] == "pods" || parts[0] == "po") {
		parts = parts[1:]
	} else if len(parts) > 1 {
		return "", "", usage("explain: %q: expected pod/NAME or pod/NAMESPACE/NAME", argument)
	}
	if len(parts) > 2 || slices.Contains(parts, "") {
		return "", "", usage("explain: %q: expected pod/NAME or pod/NAMESPACE/NAME", argument)
	}
	if len(parts) == 2 {
		return parts[0], parts[1], nil
	}
	return namespace, parts[0], nil
}

// addEvictor adds the disruption budget, the state of the evictor, and the reason for which the evictor leaves the pod.
func (e *Explanation) addEvictor(
	ctx context.Context, from *Sources, view *placements.View, pod *corev1.Pod, o *options, isKnown bool,
) error {
	budgets, err := from.budgets(ctx)
	if err != nil {
		return err
	}
	state, problem, err := from.evictorState(ctx, o)
	if err != nil {
		return err
	}
	if problem != "" {
		e.Problems = append(e.Problems, problem)
	}
	network := view.Snapshot()
	cluster := evictor.Cluster{Pods: []*corev1.Pod{pod}, Budgets: budgets, Schedulers: o.schedulers()}
	places := cluster.Places(network.Names().RackOf, nil)
	if len(places.Pods) == 0 {
		// A pod without a node cannot leave one.
		e.Stays = string(evictor.NotRunning)
		return nil
	}
	own := &places.Pods[0]
	e.Rack, e.Budget = own.Rack, own.Budget
	if allowed, ok := places.Disruptions[own.Budget]; ok {
		e.Disruptions = &allowed
	}
	rackCools, workloadCools := state.Cooldowns(own, from.Now)
	e.Evictor = &EvictorState{
		Stopped: state.IsStopped, InHour: state.InHour(from.Now), HourlyBudget: state.Settings.HourlyBudget,
		RackCools: rackCools.Seconds(), WorkloadCools: workloadCools.Seconds(),
	}
	judge := evictor.NewJudge(state, places, from.Now)
	e.Stays = string(judge.Stays(own, isKnown, linksAreDerived(network, e.Node)))
	return nil
}

// linksAreDerived returns true if the rack of a node has links, and the load of each is the sum of its nodes.
func linksAreDerived(network *snapshot.Snapshot, node string) bool {
	host := network.Names().Host(node)
	if host == snapshot.None {
		return false
	}
	links := network.Names().HostLinks()[host]
	return links.Uplink != snapshot.None && links.Downlink != snapshot.None &&
		network.IsDerived(links.Uplink) && network.IsDerived(links.Downlink)
}

func (e *Explanation) addCandidates(ctx context.Context, from *Sources, view *placements.View, needs demand.Demand) error {
	if e.Node != "" {
		// The loads contain the traffic of a running pod.
		explanation, known := score.Explain(view, e.Node, demand.Demand{})
		if known {
			e.Candidates = append(e.Candidates, candidateOf(view, explanation))
		} else {
			e.Problems = append(e.Problems, fmt.Sprintf("node %s: the service does not know it", e.Node))
		}
		return nil
	}
	nodes, err := from.nodes(ctx)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if explanation, known := score.Explain(view, node.Name, needs); known {
			e.Candidates = append(e.Candidates, candidateOf(view, explanation))
		}
	}
	slices.SortFunc(e.Candidates, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Node, b.Node))
	})
	e.Candidates = e.Candidates[:min(len(e.Candidates), bestNodes)]
	return nil
}

func candidateOf(view *placements.View, explanation score.Explanation) Candidate {
	result := Candidate{
		Node: explanation.Node, Rack: view.Snapshot().Names().RackOf(explanation.Node), Score: explanation.Score,
	}
	for _, link := range explanation.Links {
		result.Links = append(result.Links, CandidateLink{
			Link: link.Name, Capacity: link.Capacity, Load: known(link.Load), Demand: link.Demand,
			Utilization: known(link.Utilization),
		})
	}
	if explanation.Limit >= 0 {
		result.Limit = explanation.Links[explanation.Limit].Name
	}
	return result
}

// isOurs returns true for an event of Leeward. A scheduler writes events under the name of its profile, which may be any.
func isOurs(event *eventsv1.Event) bool {
	switch event.Reason {
	case networkload.InvalidAnnotation, networkload.Unavailable, evictor.EventEvicted, evictor.EventDryRun, evictor.EventBudgetSpent:
		return true
	}
	return strings.HasPrefix(event.ReportingController, "leeward")
}

// addEvents adds the events of Leeward's components on the pod.
func (e *Explanation) addEvents(ctx context.Context, from *Sources, pod *corev1.Pod) error {
	selector := "regarding.name=" + pod.Name + ",regarding.uid=" + string(pod.UID)
	list, err := from.Kube.EventsV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: selector, Limit: pageSize})
	if err != nil {
		return fmt.Errorf("events of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	for _, event := range list.Items {
		if isOurs(&event) && event.Regarding.UID == pod.UID {
			e.Events = append(e.Events, Event{event.EventTime.UTC().Format("2006-01-02T15:04:05Z"), event.Reason, event.Note})
		}
	}
	slices.SortStableFunc(e.Events, func(a, b Event) int { return cmp.Compare(a.Time, b.Time) })
	return nil
}

func (e *Explanation) table(to io.Writer) {
	demandOf := func(d Demand) string {
		if d.Source == string(demand.Unknown) {
			return "unknown"
		}
		return rate(float64(d.Peak)) + " (" + d.Source + ")"
	}
	lines := [][]string{
		{"Workload", e.Workload}, {"Node", word(e.Node)}, {"Rack", word(e.Rack)},
		{"Peak egress", demandOf(e.Egress)}, {"Peak ingress", demandOf(e.Ingress)},
		{"Migratable", fmt.Sprint(e.Migratable)}, {"Stays because", word(e.Stays)},
	}
	if e.Budget != "" {
		lines = append(lines, []string{"Disruption budget", fmt.Sprintf("%s allows %d now", e.Budget, *e.Disruptions)})
	}
	if state := e.Evictor; state != nil {
		spent := fmt.Sprintf("%d of %d in the last hour", state.InHour, state.HourlyBudget)
		if state.Stopped {
			spent += "; stopped by the annotation " + evictor.StopAnnotation
		}
		lines = append(lines, []string{"Evictions", spent})
		for _, cooldown := range []struct {
			name    string
			seconds float64
		}{{"Rack cools for", state.RackCools}, {"Workload cools for", state.WorkloadCools}} {
			if cooldown.seconds > 0 {
				lines = append(lines, []string{cooldown.name, age(cooldown.seconds)})
			}
		}
	}
	for _, problem := range e.Problems {
		lines = append(lines, []string{"Problem", problem})
	}
	rows(to, "Pod, "+e.Namespace+"/"+e.Pod, lines)
	fmt.Fprintln(to)
	var links [][]string
	for _, candidate := range e.Candidates {
		for i, link := range candidate.Links {
			node, points := "", ""
			if i == 0 {
				node, points = candidate.Node, fmt.Sprint(candidate.Score)
			}
			load, mark := none, ""
			if link.Load != nil {
				load = rate(*link.Load)
			}
			if link.Link == candidate.Limit {
				mark = "fullest"
			}
			links = append(links, []string{
				node, points, link.Link, rate(float64(link.Capacity)), load, rate(float64(link.Demand)), percent(link.Utilization), mark,
			})
		}
	}
	rows(to, "NODE, SCORE, LINK, CAPACITY, LOAD, ADDED, WITH IT, ", links)
	if len(e.Events) > 0 {
		fmt.Fprintln(to)
		var events [][]string
		for _, event := range e.Events {
			events = append(events, []string{event.Time, event.Reason, event.Note})
		}
		rows(to, "TIME, REASON, EVENT", events)
	}
}
