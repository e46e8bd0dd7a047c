package evictor

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"leeward.dev/kubernetes/fit"
)

// Node is a node that could run a pod.
type Node struct {
	Name, Rack string
	// Free are the resources that no pod has requested.
	Free fit.Resources
	// Labels and Taints are those of the node, for the constraints of pods.
	Labels map[string]string
	Taints []corev1.Taint
	// Accepts is true for a node that is ready and not cordoned.
	Accepts bool
}

// takes returns true if the node accepts a pod and has room for it. Affinities between pods are left to the scheduler.
func (n *Node) takes(pod *Pod, free fit.Resources) bool {
	return n.Accepts && pod.Requests.Fit(free) && pod.Constraints.Allow(n.Name, n.Labels, n.Taints)
}

// room has the free resources of nodes in a round.
type room struct {
	byRack map[string][]*Node
	taken  map[*Node]fit.Resources
}

func newRoom(nodes []Node) *room {
	r := &room{byRack: map[string][]*Node{}, taken: map[*Node]fit.Resources{}}
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
	if r.taken[node] == nil {
		r.taken[node] = maps.Clone(node.Free)
	}
	r.taken[node].Take(pod.Requests)
}
