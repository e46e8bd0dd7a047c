package main

import (
	"fmt"

	"leeward.dev/kubernetes/scheduler/controlplane"
	"leeward.dev/kubernetes/snapshot"
)

// Directions of traffic, as positions in pairs: out of a rack, and into it.
const (
	out = iota
	in
)

// link is one direction of the link of a rack. Rates are in bit/s.
type link struct {
	name     string
	capacity float64
	// requested is the sum of the rates of the rack's tasks, and share the carried part of each.
	requested int64
	share     float64
}

// carried returns the load of the link.
func (l *link) carried() float64 { return float64(l.requested) * l.share }

// fabric has the links between racks and the core.
//
// All traffic of a task crosses the link of its rack and no other link that can be full. So the max-min rates have a
// closed form: a link carries the sum of the rates, or its capacity. This is also the model of the simulator of cells.
type fabric struct {
	racks  []string
	rackOf map[string]int
	links  [2][]link
}

// newFabric returns the links of the racks of nodes, as the service knows them.
func newFabric(s *snapshot.Snapshot, nodes []controlplane.Node) (*fabric, error) {
	names := s.Names()
	f := &fabric{rackOf: make(map[string]int, len(nodes))}
	numbers := map[int32]int{}
	for _, node := range nodes {
		host := names.Host(node.Name)
		if host == snapshot.None {
			return nil, fmt.Errorf("node %s: the service has no host of this name", node.Name)
		}
		of := names.HostLinks()[host]
		switch {
		case of.Rack == snapshot.None || of.Uplink == snapshot.None || of.Downlink == snapshot.None:
			return nil, fmt.Errorf("node %s: the service has no links of its rack", node.Name)
		case of.PodUplink != snapshot.None || of.PodDownlink != snapshot.None:
			return nil, fmt.Errorf("node %s: its rack is in a pod: expected racks that end at the core", node.Name)
		case names.RackName(of.Rack) != node.Rack:
			return nil, fmt.Errorf("node %s: rack %q: the service has it in %q", node.Name, node.Rack, names.RackName(of.Rack))
		}
		number, known := numbers[of.Rack]
		if !known {
			number = len(f.racks)
			numbers[of.Rack] = number
			f.racks = append(f.racks, node.Rack)
			for side, row := range [...]int32{of.Uplink, of.Downlink} {
				f.links[side] = append(f.links[side], link{
					name: names.LinkName(row), capacity: float64(s.Capacities()[row]), share: 1,
				})
			}
		}
		f.rackOf[node.Name] = number
	}
	return f, nil
}

// clear removes all rates.
func (f *fabric) clear() {
	for side := range f.links {
		for rack := range f.links[side] {
			f.links[side][rack].requested = 0
		}
	}
}

// add adds the rates of a task in a rack.
func (f *fabric) add(rack int, rates [2]int64) {
	for side, rate := range rates {
		f.links[side][rack].requested += rate
	}
}

// settle computes the carried shares.
func (f *fabric) settle() {
	for side := range f.links {
		for rack := range f.links[side] {
			of := &f.links[side][rack]
			of.share = 1
			if requested := float64(of.requested); requested > of.capacity {
				of.share = of.capacity / requested
			}
		}
	}
}

// loads returns the carried loads of all links, by direction and rack.
func (f *fabric) loads() [2][]int64 {
	var loads [2][]int64
	for side := range f.links {
		for rack := range f.links[side] {
			loads[side] = append(loads[side], int64(f.links[side][rack].carried()+0.5))
		}
	}
	return loads
}
