package evictor

// Resources are amounts by the name of the resource: processors in thousandths, all others in their own unit.
type Resources map[string]int64

// fit returns true if all amounts fit into free ones.
func (r Resources) fit(free Resources) bool {
	for name, amount := range r {
		if amount > free[name] {
			return false
		}
	}
	return true
}

// Node is a node that could run a pod.
type Node struct {
	Name, Rack string
	// Free are the resources that no pod has requested.
	Free Resources
	// Labels are those of the node, for node selectors.
	Labels map[string]string
	// Accepts is true for a node that is ready and not cordoned.
	Accepts bool
}

// takes returns true if the node has room for a pod. Taints and affinities are left to the scheduler.
func (n *Node) takes(pod *Pod, free Resources) bool {
	if !n.Accepts || !pod.Requests.fit(free) {
		return false
	}
	for key, value := range pod.Selector {
		if n.Labels[key] != value {
			return false
		}
	}
	return true
}

// room has the free resources of nodes in a round.
type room struct {
	byRack map[string][]*Node
	taken  map[*Node]Resources
}

func newRoom(nodes []Node) *room {
	r := &room{byRack: map[string][]*Node{}, taken: map[*Node]Resources{}}
	for i := range nodes {
		r.byRack[nodes[i].Rack] = append(r.byRack[nodes[i].Rack], &nodes[i])
	}
	return r
}

// node returns a node of a rack with room for a pod, nil without one.
func (r *room) node(rack string, pod *Pod) *Node {
	for _, node := range r.byRack[rack] {
		free := node.Free
		if taken := r.taken[node]; taken != nil {
			free = taken
		}
		if node.takes(pod, free) {
			return node
		}
	}
	return nil
}

// take takes the room for a pod on a node.
func (r *room) take(node *Node, pod *Pod) {
	free := r.taken[node]
	if free == nil {
		free = make(Resources, len(node.Free))
		for name, amount := range node.Free {
			free[name] = amount
		}
		r.taken[node] = free
	}
	for name, amount := range pod.Requests {
		free[name] -= amount
	}
}
