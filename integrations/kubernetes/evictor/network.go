package evictor

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"leeward.dev/kubernetes/snapshot"
)

// Directions of traffic, as positions in pairs.
const (
	out = iota
	in
)

// Link is one direction of a rack's link, or of the link of a pod of racks. Rates are in bit/s.
type Link struct {
	Name     string
	Capacity float64
	// Derived is true if the loads are the sum of those of the nodes, with traffic within the rack.
	Derived bool
	// Mean is the mean load over the last window, NaN if it is unknown. Hot counts hot windows in a row.
	Mean float64
	Hot  int
	// Load is the load by the service, with placed work that telemetry does not show; NaN if it is unknown.
	Load float64
}

// Rack is a rack with its links, out of it and into it; nil for a link that the cluster does not have.
type Rack struct {
	Name  string
	Links [2]*Link
	// Pod is the pod of racks, empty without one, and PodLinks are its links.
	Pod      string
	PodLinks [2]*Link
}

// network returns the racks of a snapshot, by name. Racks of a pod share its links.
func network(s *snapshot.Snapshot, windows *Windows) []Rack {
	names := s.Names()
	shared := map[int32]*Link{}
	link := func(row int32) *Link {
		if row == snapshot.None {
			return nil
		}
		if known := shared[row]; known != nil {
			return known
		}
		result := &Link{
			Name: names.LinkName(row), Capacity: float64(s.Capacities()[row]), Derived: s.IsDerived(row), Load: math.NaN(),
		}
		result.Mean, result.Hot = windows.Mean(result.Name)
		if measured := s.Measured()[row]; measured != snapshot.Unknown {
			result.Load = float64(measured)
			if pending := s.Pending()[row]; pending != snapshot.Unknown {
				result.Load = max(result.Load+float64(pending), 0)
			}
		}
		shared[row] = result
		return result
	}
	byName := map[string]Rack{}
	for _, host := range names.HostLinks() {
		if host.Rack == snapshot.None {
			continue
		}
		name := names.RackName(host.Rack)
		if _, known := byName[name]; known {
			continue
		}
		byName[name] = Rack{
			Name:     name,
			Links:    [2]*Link{link(host.Uplink), link(host.Downlink)},
			Pod:      names.RackPod(host.Rack),
			PodLinks: [2]*Link{link(host.PodUplink), link(host.PodDownlink)},
		}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b Rack) int { return cmp.Compare(a.Name, b.Name) })
}

// loads are the loads of racks' links with all evictions that telemetry does not show, and those of a round.
type loads struct {
	settings Settings
	racks    map[string]*Rack
	// relief is the traffic that leaves a link, and arrival the traffic that comes to it, in bit/s. unreported is the part of the
	// arrival that the service does not know.
	relief, arrival, unreported map[*Link]float64
}

// newLoads returns the loads beside earlier evictions.
func newLoads(request *Request) *loads {
	l := &loads{
		settings: request.Settings, racks: make(map[string]*Rack, len(request.Racks)),
		relief: map[*Link]float64{}, arrival: map[*Link]float64{}, unreported: map[*Link]float64{},
	}
	for i := range request.Racks {
		l.racks[request.Racks[i].Name] = &request.Racks[i]
	}
	for i := range request.Records {
		record := &request.Records[i]
		if request.Now.Sub(record.At) > request.Settings.Lasts {
			continue
		}
		if record.relieves(request.Start) {
			l.leave(record.Source, record.Rates)
		}
		if rack, arrives := record.arrives(request.Start); arrives {
			l.arrive(record.Source, rack, record.Rates, record.isReported())
		}
	}
	return l
}

func (l *loads) leave(rack string, rates [2]int64) {
	if from := l.racks[rack]; from != nil {
		for side, link := range from.Links {
			if link != nil {
				l.relief[link] += float64(rates[side])
			}
		}
	}
}

func (l *loads) arrive(source, rack string, rates [2]int64, isReported bool) {
	to := l.racks[rack]
	if to == nil {
		return
	}
	for side, link := range to.links(l.racks[source]) {
		if link != nil {
			l.arrival[link] += float64(rates[side%2])
			if !isReported {
				l.unreported[link] += float64(rates[side%2])
			}
		}
	}
}

// links returns the links that traffic crosses in addition if it moves from a source: those of the rack and, unless both
// racks are in one pod, of its pod. Even positions lead out.
func (r *Rack) links(source *Rack) [4]*Link {
	links := [4]*Link{r.Links[out], r.Links[in], nil, nil}
	if source == nil || source.Pod != r.Pod {
		links[2], links[3] = r.PodLinks[out], r.PodLinks[in]
	}
	return links
}

// projected returns the load of a hot link without the pods that leave, NaN if it is unknown. Pods that come are left out:
// another pod must not leave because of them.
func (l *loads) projected(link *Link) float64 { return max(link.Mean-l.relief[link], 0) }

// expected returns the load of a link with the pods that come. The larger of two loads counts: the window's mean with all of
// them, and the service's load with those that the service does not know. Pods that leave still count.
func (l *loads) expected(link *Link) float64 {
	return max(link.Mean+l.arrival[link], link.Load+l.unreported[link])
}

// isDerived returns true if the load of a link of a rack, or of its pod of racks, is the sum of its nodes.
func (l *loads) isDerived(rack, link string) bool {
	of := l.racks[rack]
	if of == nil {
		return false
	}
	for _, own := range of.links(nil) {
		if own != nil && own.Name == link {
			return own.Derived
		}
	}
	return false
}

// isHot returns true if pods must leave a link.
func (l *loads) isHot(link *Link) bool {
	return link.Hot >= l.settings.HotWindows && l.projected(link) > l.settings.Threshold*link.Capacity
}

// fullness returns the utilization of the fullest link that traffic from a source adds to, with it. It returns false if a
// link would exceed the limit, or if its load is unknown.
func (l *loads) fullness(rack, source *Rack, rates [2]int64) (float64, bool) {
	fullest := 0.0
	for side, link := range rack.links(source) {
		if link == nil {
			continue
		}
		load := l.expected(link) + float64(rates[side%2])
		// An unknown load is never below the limit.
		if !(load <= l.settings.limit(link.Capacity)) || link.Capacity <= 0 {
			return 0, false
		}
		fullest = max(fullest, load/link.Capacity)
	}
	return fullest, true
}

// isKnown returns true if the loads of all links of a rack are known.
func (l *loads) isKnown(rack *Rack) bool {
	for _, link := range rack.links(nil) {
		if link != nil && math.IsNaN(l.expected(link)) {
			return false
		}
	}
	return true
}
