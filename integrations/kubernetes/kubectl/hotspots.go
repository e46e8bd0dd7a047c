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
	examples: []string{"hotspots", "hotspots -o json"},
	run:      hotspots,
}

// mostPods is the number of pods that are listed for a link.
const mostPods = 5

// Hotspots lists hot links.
type Hotspots struct {
	Items []Hotspot `json:"items"`
}

// Hotspot is a hot link.
type Hotspot struct {
	Link        string   `json:"link"`
	Since       string   `json:"since"`
	AgeS        float64  `json:"age_s"`
	Utilization *float64 `json:"utilization"`
	// NoMove is the reason for which the service advises no move, by docs/reference/http-api.md.
	NoMove *string `json:"no_move"`
	// Pods have the largest peak demand over the link, the largest first.
	Pods []HotPod `json:"pods"`
	// Others is the number of further pods with a known demand.
	Others int `json:"others"`
}

// HotPod is a pod whose traffic crosses a hot link.
type HotPod struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Node      string `json:"node"`
	Peak      int64  `json:"peak_bps"`
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
	places, err := from.places(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, link := range hot {
		result.Items = append(result.Items, hotspotOf(link, names, places))
	}
	return result, nil
}

// hotspotOf adds the pods below a link.
func hotspotOf(link httpapi.Hotspot, names *snapshot.Names, places evictor.Places) Hotspot {
	item := Hotspot{
		Link: link.Link, Since: link.Since, AgeS: link.Age, Utilization: link.Utilization, NoMove: link.NoMove, Pods: []HotPod{},
	}
	crosses, side := below(names, link.Link)
	for i := range places.Pods {
		pod := &places.Pods[i]
		if !crosses[pod.Node] || pod.Rates[side] == 0 {
			continue
		}
		stays := string(pod.Stays)
		if stays == "" && pod.Budget != "" && places.Disruptions[pod.Budget] <= 0 {
			stays = string(evictor.BudgetSpent)
		}
		item.Pods = append(item.Pods, HotPod{pod.Namespace, pod.Name, pod.Node, pod.Rates[side], stays})
	}
	slices.SortFunc(item.Pods, func(a, b HotPod) int {
		return cmp.Or(cmp.Compare(b.Peak, a.Peak), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod))
	})
	item.Others = max(len(item.Pods)-mostPods, 0)
	item.Pods = item.Pods[:min(len(item.Pods), mostPods)]
	return item
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
	for _, item := range h.Items {
		first := []string{item.Link, percent(item.Utilization), age(item.AgeS)}
		if len(item.Pods) == 0 {
			lines = append(lines, append(first, "no pod with a known demand", "", "", ""))
		}
		for _, pod := range item.Pods {
			lines = append(lines, append(first, pod.Namespace+"/"+pod.Pod, pod.Node, rate(float64(pod.Peak)), mayMove(pod)))
			first = []string{"", "", ""}
		}
	}
	rows(to, "LINK, LOAD, HOT FOR, POD, NODE, PEAK, MAY MOVE", lines)
}

func mayMove(pod HotPod) string {
	if pod.Stays == "" {
		return "yes"
	}
	return "no: " + strings.ReplaceAll(pod.Stays, "_", " ")
}
