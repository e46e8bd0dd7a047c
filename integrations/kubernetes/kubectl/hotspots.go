package kubectl

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"leeward.dev/kubernetes/evictor"
	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/snapshot"
)

var hotspotsCommand = command{
	name: "hotspots", summary: "Hot links, and the pods that send or receive most there.",
	examples: []string{"hotspots", "hotspots -o json", "hotspots --scheduler default-scheduler"},
	flags:    evictorFlags,
	run:      hotspots,
}

// mostPods is the number of pods that are listed for a link.
const mostPods = 5

// Hotspots lists hot links.
type Hotspots struct {
	Items []Hotspot `json:"items"`
	// Problem says why the state of the evictor is unknown, empty if it is known.
	Problem string `json:"problem,omitempty"`
}

// Hotspot is a hot link.
type Hotspot struct {
	Link        string   `json:"link"`
	Since       string   `json:"since"`
	AgeS        float64  `json:"age_s"`
	Utilization *float64 `json:"utilization"`
	// Derived is true if the load is the sum of the nodes below, with traffic within the rack.
	Derived bool `json:"derived"`
	// NoMove is the reason for which the service advises no move, by docs/reference/http-api.md.
	NoMove *string `json:"no_move"`
	// Pods have the largest peak demand over the link, the largest first. Migratable pods of unknown demand follow.
	Pods []HotPod `json:"pods"`
	// Others is the number of further such pods.
	Others int `json:"others"`
}

// HotPod is a pod whose traffic crosses a hot link.
type HotPod struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Node      string `json:"node"`
	// Peak is nil if it is unknown.
	Peak *int64 `json:"peak_bps"`
	// Stays is the reason for which the evictor leaves the pod, empty if it may move it.
	Stays string `json:"stays,omitempty"`
}

func hotspots(ctx context.Context, from *Sources, o *options) (record, error) {
	if len(o.arguments) > 0 {
		return nil, usage("hotspots: %q: expected no argument", o.arguments[0])
	}
	hot, err := from.Service.Hotspots(ctx)
	if err != nil {
		return nil, err
	}
	result := &Hotspots{Items: []Hotspot{}}
	if len(hot) == 0 {
		return result, nil
	}
	view, err := from.view(ctx)
	if err != nil {
		return nil, err
	}
	names := view.Snapshot().Names()
	places, err := from.places(ctx, names, o.schedulers())
	if err != nil {
		return nil, err
	}
	state, problem, err := from.evictorState(ctx, o)
	if err != nil {
		return nil, err
	}
	result.Problem = problem
	judge := evictor.NewJudge(state, places, from.Now)
	for _, link := range hot {
		result.Items = append(result.Items, hotspotOf(link, view.Snapshot(), places, judge))
	}
	return result, nil
}

// hotspotOf adds the pods below a link.
func hotspotOf(link httpapi.Hotspot, network *snapshot.Snapshot, places evictor.Places, judge evictor.Judge) Hotspot {
	names := network.Names()
	item := Hotspot{
		Link: link.Link, Since: link.Since, AgeS: link.Age, Utilization: link.Utilization, NoMove: link.NoMove, Pods: []HotPod{},
	}
	if row := names.Link(link.Link); row != snapshot.None {
		item.Derived = network.IsDerived(row)
	}
	crosses, side := below(names, link.Link)
	for i := range places.Pods {
		pod := &places.Pods[i]
		isUnknown := pod.Unknown[side] && pod.Stays == ""
		if !crosses[pod.Node] || (pod.Rates[side] == 0 && !isUnknown) {
			continue
		}
		listed := HotPod{Namespace: pod.Namespace, Pod: pod.Name, Node: pod.Node}
		if !isUnknown {
			listed.Peak = &pod.Rates[side]
		}
		listed.Stays = string(judge.Stays(pod, !isUnknown, item.Derived))
		item.Pods = append(item.Pods, listed)
	}
	slices.SortFunc(item.Pods, func(a, b HotPod) int {
		return cmp.Or(cmp.Compare(b.peak(), a.peak()), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
	})
	item.Others = max(len(item.Pods)-mostPods, 0)
	item.Pods = item.Pods[:min(len(item.Pods), mostPods)]
	return item
}

// peak returns the peak rate, below 0 if it is unknown.
func (p HotPod) peak() int64 {
	if p.Peak == nil {
		return -1
	}
	return *p.Peak
}

// below returns the nodes whose traffic crosses a link, and the direction as a position in rates.
func below(names *snapshot.Names, link string) (map[string]bool, int) {
	row, nodes := names.Link(link), map[string]bool{}
	side := 0
	for host, links := range names.HostLinks() {
		for _, out := range [...]int32{links.Egress, links.Uplink, links.PodUplink} {
			if row != snapshot.None && out == row {
				nodes[names.HostName(int32(host))] = true
			}
		}
		for _, in := range [...]int32{links.Ingress, links.Downlink, links.PodDownlink} {
			if row != snapshot.None && in == row {
				nodes[names.HostName(int32(host))], side = true, 1
			}
		}
	}
	return nodes, side
}

func (h *Hotspots) table(to io.Writer) {
	if len(h.Items) == 0 {
		_, _ = io.WriteString(to, "No link is hot.\n")
		return
	}
	var lines [][]string
	derived := false
	for _, item := range h.Items {
		derived = derived || item.Derived
		first := []string{marked(item.Link, item.Derived), percent(item.Utilization), age(item.AgeS)}
		if len(item.Pods) == 0 {
			lines = append(lines, append(first, "no pod with a known demand or that may move", "", "", ""))
		}
		for _, pod := range item.Pods {
			peak := "unknown"
			if pod.Peak != nil {
				peak = rate(float64(*pod.Peak))
			}
			lines = append(lines, append(first, pod.Namespace+"/"+pod.Pod, pod.Node, peak, mayMove(pod)))
			first = []string{"", "", ""}
		}
	}
	rows(to, "LINK, LOAD, HOT FOR, POD, NODE, PEAK, MAY MOVE", lines)
	if derived {
		_, _ = io.WriteString(to, sumNote)
	}
	if h.Problem != "" {
		_, _ = io.WriteString(to, h.Problem+"\n")
	}
}

func mayMove(pod HotPod) string {
	if pod.Stays == "" {
		return "yes"
	}
	return "no: " + strings.ReplaceAll(pod.Stays, "_", " ")
}
