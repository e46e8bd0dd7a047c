// Package clustersync writes the nodes of a Kubernetes cluster into the cluster of the service, and shows where both differ.
//
// A node becomes a host of the rack that its label names. Its speed is that of an annotation, or else the one that its agent
// reports, or a setting. Taints become tags. A node is a draining host as long as it is cordoned. Hosts that the sync added have a
// label. It changes and removes no others in the cluster, so storage servers and switches that an operator described stay as they are.
//
// [Plan] is a pure function from the service's cluster and the nodes to a patch, changes and findings. A [Syncer] applies it.
package clustersync

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/ledger"
)

// RackLabels are the labels of nodes that name a rack. The first one that a node has counts.
var RackLabels = [...]string{"leeward.dev/rack", "fabric.topograph.run/tier-0", "topology.kubernetes.io/rack"}

// Annotations of nodes.
const (
	// NIC is the rate of the node's interface in both directions: a quantity in bit/s, such as 25G.
	NIC = "leeward.dev/nic"
	// RackLink is the rate of the uplink and of the downlink of the node's rack. The largest one of a rack's nodes counts.
	RackLink = "leeward.dev/rack-link"
)

// RackOf returns the rack that a node's labels name, empty without a label. The label is that which counts.
func RackOf(node *corev1.Node) (rack, label string) {
	for _, label := range RackLabels {
		if rack := node.Labels[label]; rack != "" {
			return rack, label
		}
	}
	return "", ""
}

// isName returns true for a valid name of a rack or host in the service.
func isName(text string) bool {
	return text != "" && strings.IndexFunc(text, func(c rune) bool {
		letter := (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
		return !letter && !strings.ContainsRune("._-", c)
	}) < 0
}

// rateOf returns the rate of an annotation in bit/s, 0 without one.
func rateOf(node *corev1.Node, annotation string) (int64, error) {
	text, ok := node.Annotations[annotation]
	if !ok {
		return 0, nil
	}
	rate, ok := demand.ParseRate(text, 1, ledger.MaxRate)
	if !ok {
		return 0, fmt.Errorf("node %s: annotation %s: %.80q: expected a rate in bit/s such as 25G", node.Name, annotation, text)
	}
	return rate, nil
}

// tagPrefix begins the tags that stand for taints.
const tagPrefix = "taint:"

// tagsOf returns the tags for the taints that keep pods away. Taints of the node's lifecycle come and go with its state.
func tagsOf(node *corev1.Node) []string {
	var tags []string
	for _, taint := range node.Spec.Taints {
		isLifecycle := strings.HasPrefix(taint.Key, "node.kubernetes.io/") || strings.HasPrefix(taint.Key, "node.cloudprovider.")
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || isLifecycle {
			continue
		}
		tag := tagPrefix + taint.Key
		if taint.Value != "" {
			tag += "=" + taint.Value
		}
		tags = append(tags, tag+":"+string(taint.Effect))
	}
	return tags
}
