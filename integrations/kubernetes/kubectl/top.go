package kubectl

import (
	"cmp"
	"context"
	"flag"
	"io"
	"slices"
	"strconv"

	"leeward.dev/kubernetes/httpapi"
)

var topCommand = command{
	name: "top", summary: "Racks or nodes by the load of their links, the fullest first.",
	examples: []string{"top", "top --nodes --limit 50", "top -o json"},
	flags: func(set *flag.FlagSet, o *options) {
		set.BoolVar(&o.nodes, "nodes", false, "list nodes instead of racks")
		set.IntVar(&o.limit, "limit", 20, "largest `number` of lines, 0 for all")
	},
	run: top,
}

// Top lists racks or nodes.
type Top struct {
	// Of is racks or nodes.
	Of    string    `json:"of"`
	Items []TopItem `json:"items"`
	// Total is the number of racks or nodes.
	Total int `json:"total"`
}

// TopItem is a rack or a node. Rates are in bit/s; nil stands for unknown.
type TopItem struct {
	Name string `json:"name"`
	// Rack is that of a node, and Nodes the number of nodes of a rack.
	Rack  string    `json:"rack,omitempty"`
	Nodes int       `json:"nodes,omitempty"`
	Out   Direction `json:"out"`
	In    Direction `json:"in"`
}

// Direction is the link in one direction.
type Direction struct {
	Link        string   `json:"link"`
	Capacity    float64  `json:"capacity_bps"`
	Measured    *float64 `json:"measured_bps"`
	Utilization *float64 `json:"utilization"`
	HotSince    *string  `json:"hot_since"`
	// Derived is true if the load is the sum of the nodes below, with traffic within the rack.
	Derived bool `json:"derived"`
}

func directionOf(link *httpapi.Link) Direction {
	if link == nil {
		return Direction{}
	}
	return Direction{
		Link: link.Link, Capacity: link.Capacity, Measured: link.Measured, Utilization: link.Utilization, HotSince: link.HotSince,
		Derived: link.Derived,
	}
}

func top(ctx context.Context, from *Sources, o *options) (record, error) {
	if len(o.arguments) > 0 {
		return nil, usage("top: %q: expected no argument", o.arguments[0])
	}
	if o.limit < 0 {
		return nil, usage("--limit: %d: expected at least 0", o.limit)
	}
	result := &Top{Of: "racks"}
	if o.nodes {
		hosts, err := from.Service.Hosts(ctx)
		if err != nil {
			return nil, err
		}
		result.Of = "nodes"
		for _, host := range hosts {
			result.Items = append(result.Items, TopItem{
				Name: host.Host, Rack: host.Rack, Out: directionOf(host.Egress), In: directionOf(host.Ingress),
			})
		}
	} else {
		racks, err := from.Service.Racks(ctx)
		if err != nil {
			return nil, err
		}
		for _, rack := range racks {
			result.Items = append(result.Items, TopItem{
				Name: rack.Rack, Nodes: rack.Hosts, Out: directionOf(rack.Up), In: directionOf(rack.Down),
			})
		}
	}
	result.Total = len(result.Items)
	slices.SortStableFunc(result.Items, func(a, b TopItem) int {
		return cmp.Or(cmp.Compare(b.fullness(), a.fullness()), cmp.Compare(a.Name, b.Name))
	})
	if o.limit > 0 && len(result.Items) > o.limit {
		result.Items = result.Items[:o.limit]
	}
	return result, nil
}

// fullness returns the utilization of the fuller direction, below 0 if both are unknown.
func (t TopItem) fullness() float64 {
	fullest := -1.0
	for _, direction := range [...]Direction{t.Out, t.In} {
		if direction.Utilization != nil {
			fullest = max(fullest, *direction.Utilization)
		}
	}
	return fullest
}

// load returns the utilization, with a mark if it is a sum.
func (d Direction) load() string {
	return marked(percent(d.Utilization), d.Derived && d.Utilization != nil)
}

func (d Direction) hot() string {
	if d.HotSince == nil {
		return none
	}
	return *d.HotSince
}

func (t *Top) table(to io.Writer) {
	header := "RACK, NODES, OUT, IN, CAPACITY, OUT HOT SINCE, IN HOT SINCE"
	if t.Of == "nodes" {
		header = "NODE, RACK, OUT, IN, CAPACITY, OUT HOT SINCE, IN HOT SINCE"
	}
	var lines [][]string
	derived := false
	for _, item := range t.Items {
		derived = derived || item.Out.Derived || item.In.Derived
		second := strconv.Itoa(item.Nodes)
		if t.Of == "nodes" {
			second = word(item.Rack)
		}
		capacity := rate(item.Out.Capacity)
		if item.Out.Capacity != item.In.Capacity {
			capacity += ", " + rate(item.In.Capacity)
		}
		lines = append(lines, []string{
			item.Name, second, item.Out.load(), item.In.load(), capacity, item.Out.hot(),
			item.In.hot(),
		})
	}
	rows(to, header, lines)
	if len(t.Items) < t.Total {
		_, _ = io.WriteString(to, "... "+strconv.Itoa(t.Total-len(t.Items))+" more; --limit 0 lists all\n")
	}
	if derived {
		_, _ = io.WriteString(to, sumNote)
	}
}
