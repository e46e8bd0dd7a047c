package clustersync

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Settings say how nodes become hosts.
type Settings struct {
	// NIC is the rate in bit/s of the interface of a node without a known speed; 0 for that of the cluster file.
	NIC int64
	// RackLink is the rate in bit/s of the link of a new rack without an annotation; 0 for that of the cluster file.
	RackLink int64
	// Adopt is true if hosts of the cluster file that are nodes become managed hosts.
	Adopt bool
	// MostRemoved is the largest share of managed hosts that one change may remove.
	MostRemoved float64
}

// DefaultSettings returns the default of each setting.
func DefaultSettings() Settings { return Settings{MostRemoved: 0.2} }

// Check returns an error that names an invalid setting.
func (s Settings) Check() error {
	if s.NIC < 0 || s.RackLink < 0 {
		return fmt.Errorf("nic, rack-link: %d, %d: expected rates in bit/s", s.NIC, s.RackLink)
	}
	if math.IsNaN(s.MostRemoved) || s.MostRemoved < 0 || s.MostRemoved > 1 {
		return fmt.Errorf("most removed: %v: expected a share from 0 to 1", s.MostRemoved)
	}
	return nil
}

// Kind is a kind of a change or of a finding. The texts are values of metrics.
type Kind string

// Kinds of changes.
const (
	AddHost    Kind = "add_host"
	RemoveHost Kind = "remove_host"
	MoveHost   Kind = "move_host"
	AdoptHost  Kind = "adopt_host"
	SetNIC     Kind = "set_nic"
	SetLink    Kind = "set_rack_link"
	SetRoom    Kind = "set_room"
	SetTaints  Kind = "set_taints"
	Drain      Kind = "drain"
)

// Kinds of findings: differences that the sync does not change by itself.
const (
	NoRack            Kind = "no_rack_label"
	InvalidRack       Kind = "invalid_rack"
	OtherRack         Kind = "other_rack"
	NoNode            Kind = "host_without_node"
	InvalidAnnotation Kind = "invalid_annotation"
	ManyTags          Kind = "too_many_tags"
	ManyRemovals      Kind = "too_many_removals"
	LastHost          Kind = "last_host"
)

// Changes and Findings list all kinds.
var (
	Changes  = [...]Kind{AddHost, RemoveHost, MoveHost, AdoptHost, SetNIC, SetLink, SetRoom, SetTaints, Drain}
	Findings = [...]Kind{NoRack, InvalidRack, OtherRack, NoNode, InvalidAnnotation, ManyTags, ManyRemovals, LastHost}
)

// Difference is a change that brings the service's cluster into step, or a finding.
type Difference struct {
	Kind Kind `json:"kind"`
	// Object is the name of a node or host, or of a rack for its link; empty for the whole cluster.
	Object string `json:"object,omitempty"`
	// Problem says both sides, and for a finding the remedy.
	Problem string `json:"problem"`
}

// Result is a plan.
type Result struct {
	// Racks are the new racks of the cluster, nil if nothing changes.
	Racks    []any
	Changes  []Difference
	Findings []Difference
}

// Plan compares the service's cluster with the nodes. speeds are the rates in bit/s that agents report by host. The document
// does not change. Equal inputs have equal results.
func Plan(document map[string]any, nodes []*corev1.Node, speeds map[string]int64, settings Settings) (Result, error) {
	f, err := readFile(document)
	if err != nil {
		return Result{}, err
	}
	p := &plan{file: f, settings: settings, speeds: speeds, nodes: map[string]*corev1.Node{}, links: map[string]int64{}}
	for _, node := range nodes {
		p.nodes[node.Name] = node
	}
	for _, name := range slices.Sorted(maps.Keys(p.nodes)) {
		p.place(p.nodes[name])
	}
	p.setLinks()
	p.removeHosts()
	p.checkTags()
	byObject := func(a, b Difference) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Object, b.Object)) }
	slices.SortStableFunc(p.result.Changes, byObject)
	slices.SortStableFunc(p.result.Findings, byObject)
	if len(p.result.Changes) > 0 {
		p.result.Racks = f.write()
	}
	return p.result, nil
}

// plan is the state of a plan.
type plan struct {
	file     *file
	settings Settings
	speeds   map[string]int64
	nodes    map[string]*corev1.Node
	// links are the rates of racks' links by annotations.
	links  map[string]int64
	result Result
}

func (p *plan) change(kind Kind, object, format string, arguments ...any) {
	p.result.Changes = append(p.result.Changes, Difference{kind, object, fmt.Sprintf(format, arguments...)})
}

func (p *plan) find(kind Kind, object, format string, arguments ...any) {
	p.result.Findings = append(p.result.Findings, Difference{kind, object, fmt.Sprintf(format, arguments...)})
}

// place brings the host of a node into step.
func (p *plan) place(node *corev1.Node) {
	present := p.file.places[node.Name]
	known := present.host
	isNew := known == nil
	wanted, label := RackOf(node)
	switch {
	case wanted == "":
		p.find(NoRack, node.Name, "the node has none of the labels %s, %s and %s: give it one", RackLabels[0], RackLabels[1],
			RackLabels[2])
	case !isName(wanted):
		p.find(InvalidRack, node.Name, "label %s: %.80q: expected letters, digits, `.`, `_` and `-`", label, wanted)
		wanted = ""
	}
	if wanted == "" {
		return
	}
	switch {
	case known == nil:
		known = &host{name: node.Name, fields: map[string]any{}}
		known.manage()
		p.file.add(p.rack(wanted), known)
		p.change(AddHost, node.Name, "a node in rack %s, which the service does not know", wanted)
	case !known.isManaged() && p.settings.Adopt:
		known.manage()
		p.change(AdoptHost, node.Name, "a host of the cluster file in rack %s", present.rack.name)
		p.move(present, wanted)
	case !known.isManaged():
		if present.rack.name != wanted {
			p.find(OtherRack, node.Name, "the service has the host in rack %s, label %s says %s: correct one of them, or adopt"+
				" the hosts of the cluster file", present.rack.name, label, wanted)
		}
		return
	default:
		p.move(present, wanted)
	}
	p.setNIC(node, known)
	p.setRoom(node, known, isNew)
	p.setTaints(node, known)
	link, err := rateOf(node, RackLink)
	if err != nil {
		p.find(InvalidAnnotation, node.Name, "%s", err)
	}
	p.links[wanted] = max(p.links[wanted], link)
}

func (p *plan) move(present place, wanted string) {
	if present.rack.name == wanted {
		return
	}
	p.file.remove(present.host.name)
	p.file.add(p.rack(wanted), present.host)
	p.change(MoveHost, present.host.name, "from rack %s to rack %s", present.rack.name, wanted)
}

// rack returns a rack, which it adds if the file has none of this name.
func (p *plan) rack(name string) *rack {
	if known := p.file.byName[name]; known != nil {
		return known
	}
	added := &rack{name: name, fields: map[string]any{}}
	if p.settings.RackLink > 0 {
		added.fields["link"] = writeRate(p.settings.RackLink)
	}
	p.file.addRack(added)
	return added
}

// setNIC sets the rate of a host's interface. A declared rate counts before the reported one: a cloud may report the speed of the
// card and shape the machine below it. A rate that was reported before stays while no agent reports.
func (p *plan) setNIC(node *corev1.Node, known *host) {
	declared, err := rateOf(node, NIC)
	if err != nil {
		p.find(InvalidAnnotation, node.Name, "%s", err)
	}
	reported := p.speeds[node.Name]
	field, has := known.fields["nic"]
	present, plain := readRate(field)
	if has && !plain {
		// A rate for each direction is an operator's.
		return
	}
	wanted := declared
	if declared == 0 {
		wanted = cmp.Or(reported, max(p.settings.NIC, present))
	}
	if wanted == 0 || wanted == present {
		return
	}
	known.fields["nic"] = writeRate(wanted)
	from := "that of the file"
	if has {
		from = writeRate(present)
	}
	p.change(SetNIC, node.Name, "from %s to %s", from, writeRate(wanted))
}

// setRoom sets the processors and the memory of a host to what its node has for pods. Without them, the service would place a whole
// app on one host. A node that does not say them leaves those of the file.
func (p *plan) setRoom(node *corev1.Node, known *host, isNew bool) {
	var changed []string
	for _, each := range roomOf(node) {
		if present := known.fields[each.field]; present != each.text {
			known.fields[each.field] = each.text
			changed = append(changed, each.field+": "+each.text)
		}
	}
	if len(changed) > 0 && !isNew {
		p.change(SetRoom, node.Name, "to %s", strings.Join(changed, ", "))
	}
}

// amount is a resource of a host, as the cluster file has it.
type amount struct{ field, text string }

// roomOf returns the processors and the memory that a node has for pods, as far as it says them. Memory is in whole MiB.
func roomOf(node *corev1.Node) []amount {
	var room []amount
	if cpus := node.Status.Allocatable.Cpu().MilliValue(); cpus > 0 {
		room = append(room, amount{"cpus", fmt.Sprintf("%dm", cpus)})
	}
	if mebibytes := node.Status.Allocatable.Memory().Value() >> 20; mebibytes > 0 {
		room = append(room, amount{"memory", fmt.Sprintf("%dMiB", mebibytes)})
	}
	return room
}

func (p *plan) setTaints(node *corev1.Node, known *host) {
	wanted, present := slices.Sorted(slices.Values(tagsOf(node))), slices.Sorted(slices.Values(known.taints()))
	wanted = slices.Compact(wanted)
	if !slices.Equal(wanted, present) {
		known.setTaints(wanted)
		p.change(SetTaints, node.Name, "from %q to %q", present, wanted)
	}
}

// setLinks sets the rates of the links of racks with an annotation.
func (p *plan) setLinks() {
	for _, name := range slices.Sorted(maps.Keys(p.links)) {
		wanted := p.links[name]
		r := p.file.byName[name]
		field, has := r.fields["link"]
		present, plain := readRate(field)
		// A rate for each direction is an operator's.
		if wanted == 0 || wanted == present || has && !plain {
			continue
		}
		delete(r.fields, "oversubscription")
		r.fields["link"] = writeRate(wanted)
		p.change(SetLink, name, "to %s", writeRate(wanted))
	}
}

// placeholder is the managed host of a new cluster, which needs one before it has nodes.
const placeholder = "placeholder"

// removeHosts removes managed hosts that are no nodes any more, and then racks without hosts, which the service rejects. A cluster
// keeps its last host.
func (p *plan) removeHosts() {
	defer func() {
		p.file.racks = slices.DeleteFunc(p.file.racks, func(r *rack) bool { return len(r.hosts) == 0 })
	}()
	managed := 0
	var gone []string
	for _, r := range p.file.racks {
		for _, h := range r.hosts {
			isNode := p.nodes[h.name] != nil
			if h.isManaged() {
				managed++
			}
			switch {
			case isNode:
			case h.isManaged():
				gone = append(gone, h.name)
			default:
				p.find(NoNode, h.name, "a host in rack %s that is no node: remove it from the cluster if it is gone", r.name)
			}
		}
	}
	if most := max(1, int(p.settings.MostRemoved*float64(managed))); len(gone) > most {
		p.find(ManyRemovals, "", "%d of %d managed hosts are no nodes any more, more than %d: remove them by hand, or raise the share"+
			" of hosts that one change may remove", len(gone), managed, most)
		return
	}
	for _, name := range gone {
		from := p.file.places[name].rack
		if len(p.file.places) == 1 {
			if name != placeholder {
				p.find(LastHost, name, "no node any more; it stays because a cluster needs a host, and leaves once a node is one")
			}
			continue
		}
		if len(from.hosts) == 1 && from.hasOwnFields() {
			p.find(LastHost, name, "no node any more; it stays because rack %s has fields of its own and a rack needs a host: remove the"+
				" rack by `PATCH /v1/cluster` if it is gone", from.name)
			continue
		}
		p.file.remove(name)
		p.change(RemoveHost, name, "no node any more; it was in rack %s", from.name)
	}
}

// checkTags leaves the taints out if the cluster has too many different tags.
func (p *plan) checkTags() {
	if p.file.tagCount() <= mostTags {
		return
	}
	for _, r := range p.file.racks {
		for _, h := range r.hosts {
			if h.isManaged() && len(h.taints()) > 0 {
				h.setTaints(nil)
			}
		}
	}
	p.find(ManyTags, "", "the taints of nodes are left out: a cluster of the service has at most %d different tags", mostTags)
	p.result.Changes = slices.DeleteFunc(p.result.Changes, func(d Difference) bool { return d.Kind == SetTaints })
}
