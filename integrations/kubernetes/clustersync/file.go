package clustersync

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"leeward.dev/kubernetes/ledger"
)

// Label of the hosts that the sync has added.
const (
	managedKey   = "managed-by"
	managedValue = "kubernetes"
)

// mostTags is the largest number of different tags and labels in a cluster of the service.
const mostTags = 64

// file is the part of a cluster file that has racks, with all racks and hosts by name.
type file struct {
	racks  []*rack
	byName map[string]*rack
	// places are the racks of hosts.
	places map[string]place
}

// place is a host and its rack.
type place struct {
	rack *rack
	host *host
}

// rack is a rack; fields has none of `name`, `count` and `hosts`.
type rack struct {
	name   string
	fields map[string]any
	hosts  []*host
}

// host is a host; fields has no `name`.
type host struct {
	name   string
	fields map[string]any
}

// readFile reads the cluster of the service, as GET /v1/cluster returns it. Counts become lists of named racks and hosts. It
// returns an error for a cluster that is no tree.
func readFile(document map[string]any) (*file, error) {
	f := &file{byName: map[string]*rack{}, places: map[string]place{}}
	if shape, ok := document["shape"]; ok && shape != "tree" {
		return nil, fmt.Errorf("shape: %v: expected a tree: only trees have racks with links", shape)
	}
	usual, _ := whole(document["hosts_per_rack"])
	switch racks := document["racks"].(type) {
	case []any:
		for i, entry := range racks {
			fields, ok := entry.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("racks[%d]: expected an object", i)
			}
			if err := f.addRacks(fields, usual); err != nil {
				return nil, fmt.Errorf("racks[%d]: %w", i, err)
			}
		}
	default:
		count, ok := whole(racks)
		if !ok {
			return nil, fmt.Errorf("racks: %v: expected a number or a list", racks)
		}
		if err := f.addRacks(map[string]any{"count": json.Number(strconv.Itoa(count))}, usual); err != nil {
			return nil, fmt.Errorf("racks: %w", err)
		}
	}
	return f, nil
}

// whole returns a whole number of a decoded document.
func whole(value any) (int, bool) {
	number, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	result, err := number.Int64()
	return int(result), err == nil && result >= 0 && result <= mostHosts
}

// mostHosts limits the hosts of a cluster, against a file that fills the memory.
const mostHosts = 1 << 20

// addRacks adds the racks of an entry. A rack without a name has `r` and its number, and so have hosts with `h`.
func (f *file) addRacks(entry map[string]any, usual int) error {
	count := 1
	if value, ok := entry["count"]; ok {
		if count, ok = whole(value); !ok {
			return fmt.Errorf("count: %v: expected a number", value)
		}
	}
	for range count {
		added := &rack{fields: maps.Clone(entry)}
		for _, own := range []string{"name", "count", "hosts"} {
			delete(added.fields, own)
		}
		if name, ok := entry["name"].(string); ok {
			added.name = name
		} else {
			added.name = "r" + strconv.Itoa(len(f.racks))
		}
		f.addRack(added)
		if err := f.addHosts(added, entry["hosts"], usual); err != nil {
			return err
		}
		if len(f.racks) > mostHosts || len(f.places) > mostHosts {
			return fmt.Errorf("more than %d racks or hosts", mostHosts)
		}
	}
	return nil
}

func (f *file) addHosts(to *rack, hosts any, usual int) error {
	if list, ok := hosts.([]any); ok {
		for i, entry := range list {
			fields, ok := entry.(map[string]any)
			name, named := fields["name"].(string)
			if !ok || !named {
				return fmt.Errorf("hosts[%d]: expected an object with a name", i)
			}
			added := &host{name: name, fields: maps.Clone(fields)}
			delete(added.fields, "name")
			f.add(to, added)
		}
		return nil
	}
	if hosts != nil {
		var ok bool
		if usual, ok = whole(hosts); !ok {
			return fmt.Errorf("hosts: %v: expected a number or a list", hosts)
		}
	}
	for i := range usual {
		f.add(to, &host{name: to.name + "h" + strconv.Itoa(i), fields: map[string]any{}})
	}
	return nil
}

// write returns the racks as a list of named racks with named hosts.
func (f *file) write() []any {
	racks := make([]any, 0, len(f.racks))
	for _, r := range f.racks {
		fields := maps.Clone(r.fields)
		hosts := make([]any, 0, len(r.hosts))
		for _, h := range r.hosts {
			own := maps.Clone(h.fields)
			own["name"] = h.name
			hosts = append(hosts, own)
		}
		fields["name"], fields["hosts"] = r.name, hosts
		racks = append(racks, fields)
	}
	return racks
}

func (f *file) addRack(added *rack) {
	f.racks = append(f.racks, added)
	f.byName[added.name] = added
}

func (f *file) add(to *rack, added *host) {
	to.hosts = append(to.hosts, added)
	f.places[added.name] = place{to, added}
}

// remove removes a host from its rack. The rack stays, also without hosts.
func (f *file) remove(name string) {
	from := f.places[name].rack
	from.hosts = slices.DeleteFunc(from.hosts, func(h *host) bool { return h.name == name })
	delete(f.places, name)
}

// tagCount returns the number of different tags and labels.
func (f *file) tagCount() int {
	different := map[string]bool{}
	count := func(fields map[string]any) {
		for _, tag := range texts(fields["tags"]) {
			different[tag] = true
		}
		labels, _ := fields["labels"].(map[string]any)
		for key, value := range labels {
			different[fmt.Sprint(key, "=", value)] = true
		}
	}
	for _, r := range f.racks {
		count(r.fields)
		for _, h := range r.hosts {
			count(h.fields)
		}
	}
	return len(different)
}

// hasOwnFields returns true if a rack has fields that the sync does not write: all but its link.
func (r *rack) hasOwnFields() bool {
	count := len(r.fields)
	if _, has := r.fields["link"]; has {
		count--
	}
	return count > 0
}

// isManaged returns true for a host that the sync has added.
func (h *host) isManaged() bool {
	labels, _ := h.fields["labels"].(map[string]any)
	return labels[managedKey] == managedValue
}

func (h *host) manage() {
	labels, _ := h.fields["labels"].(map[string]any)
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]any{}
	}
	labels[managedKey] = managedValue
	h.fields["labels"] = labels
}

// taints returns the tags that stand for taints.
func (h *host) taints() []string {
	return slices.DeleteFunc(texts(h.fields["tags"]), func(tag string) bool { return !strings.HasPrefix(tag, tagPrefix) })
}

// setTaints replaces the tags that stand for taints; all others stay.
func (h *host) setTaints(taints []string) {
	tags := slices.DeleteFunc(texts(h.fields["tags"]), func(tag string) bool { return strings.HasPrefix(tag, tagPrefix) })
	var list []any
	for _, tag := range append(tags, taints...) {
		list = append(list, tag)
	}
	delete(h.fields, "tags")
	if len(list) > 0 {
		h.fields["tags"] = list
	}
}

// texts returns the texts of a list.
func texts(value any) []string {
	list, _ := value.([]any)
	var result []string
	for _, entry := range list {
		if text, ok := entry.(string); ok {
			result = append(result, text)
		}
	}
	return result
}

// units are the units of rates in cluster files, in bit/s.
var units = map[string]float64{
	"bps": 1, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9, "tbps": 1e12,
	"b/s": 1, "kb/s": 1e3, "mb/s": 1e6, "gb/s": 1e9, "tb/s": 1e12,
	"bit/s": 1, "kbit/s": 1e3, "mbit/s": 1e6, "gbit/s": 1e9, "tbit/s": 1e12,
}

// readRate returns a rate in bit/s. It returns false for any other form: a rate in bytes, or one for each direction.
func readRate(value any) (int64, bool) {
	text, ok := value.(string)
	if !ok {
		return 0, false
	}
	text = strings.ReplaceAll(text, "_", "")
	end := strings.LastIndexAny(text, "0123456789.") + 1
	unit := strings.TrimSpace(text[end:])
	// A capital B is a byte.
	scale, ok := units[strings.ToLower(unit)]
	number, err := strconv.ParseFloat(strings.TrimSpace(text[:end]), 64)
	if !ok || strings.Contains(unit, "B") || err != nil || !(number > 0) || number*scale > float64(ledger.MaxRate) {
		return 0, false
	}
	return int64(number * scale), true
}

// writeRate returns a rate as text, in the largest unit without decimals.
func writeRate(bps int64) string {
	for _, unit := range []struct {
		name  string
		scale int64
	}{{"Tbps", 1e12}, {"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}} {
		if bps >= unit.scale && bps%unit.scale == 0 {
			return strconv.FormatInt(bps/unit.scale, 10) + unit.name
		}
	}
	return strconv.FormatInt(bps, 10) + "bps"
}
