package clustersync

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics"

	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/internal/service"
	"leeward.dev/kubernetes/snapshot"
)

// begin returns a client of a new service with a cluster, and a syncer of nodes.
func begin(t *testing.T, cluster string, settings Settings, nodes func() []*corev1.Node) (*httpapi.Client, *Syncer) {
	t.Helper()
	client, err := httpapi.New(snapshot.Settings{Controllers: []string{service.Start(t, cluster)}}, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	syncer, err := NewSyncer(Options{
		Mode: Apply, Settings: settings, Service: client, Namespace: "leeward", Name: "leeward-sync", Interval: time.Minute,
		Nodes: func() ([]*corev1.Node, bool) { return nodes(), true }, Events: events.NewFakeRecorder(1000),
		Metrics: NewMetrics(metrics.NewKubeRegistry()), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return client, syncer
}

func TestTheRealServiceIsInStepAfterEachStep(t *testing.T) {
	ctx := context.Background()
	// The service has the hosts r0h0 to r3h3. Two of them are nodes, and three nodes are new.
	nodes := []*corev1.Node{
		node("r0h0", "r0"), node("r1h2", "r1"), node("new-1", "r0", "@"+NIC, "25G"), node("new-2", "row-5.rack_7", "@"+RackLink, "100G"),
		node("new-3", "row-5.rack_7"),
	}
	nodes[2].Spec.Unschedulable = true
	nodes[3].Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}}
	settings := DefaultSettings()
	settings.MostRemoved = 1
	client, syncer := begin(t, service.Small, settings, func() []*corev1.Node { return nodes })
	step := func() {
		t.Helper()
		for _, difference := range syncer.Step(ctx, time.Now()) {
			if difference.Kind != NoNode {
				t.Errorf("%+v", difference)
			}
		}
		again, _, err := Compare(ctx, client, nodes, settings)
		if err != nil || len(again.Changes) != 0 {
			t.Errorf("%v: %+v", err, again.Changes)
		}
	}
	step()
	hosts, err := client.Hosts(ctx)
	if err != nil {
		t.Fatal(err)
	}
	find := func(name string) httpapi.Host {
		t.Helper()
		at := slices.IndexFunc(hosts, func(host httpapi.Host) bool { return host.Host == name })
		if at < 0 {
			t.Fatalf("%s is missing", name)
		}
		return hosts[at]
	}
	if len(hosts) != 19 {
		t.Errorf("%d hosts", len(hosts))
	}
	if host := find("new-1"); host.Rack != "r0" || !host.Draining || host.Egress.Capacity != 25e9 {
		t.Errorf("%+v", host)
	}
	if host := find("new-3"); host.Rack != "row-5.rack_7" || host.Draining || host.Egress.Capacity != 1e9 {
		t.Errorf("%+v", host)
	}
	racks, err := client.Racks(ctx)
	if err != nil || racks[len(racks)-1].Up.Capacity != 100e9 {
		t.Errorf("%v: %+v", err, racks[len(racks)-1])
	}
	nodes = append(nodes[:3:3], node("new-3", "r3"))
	nodes[2].Spec.Unschedulable = false
	// A rack that has only its link leaves with its last host.
	step()
	if hosts, err = client.Hosts(ctx); err != nil {
		t.Fatal(err)
	}
	if find("new-3").Rack != "r3" || find("new-1").Draining {
		t.Errorf("%+v, %+v", find("new-3"), find("new-1"))
	}
	isGone := func(host httpapi.Host) bool { return host.Host == "new-2" || host.Rack == "row-5.rack_7" }
	if slices.ContainsFunc(hosts, isGone) {
		t.Errorf("%+v", hosts)
	}
}

// The cluster of the chart before the first node.
const ofChart = `{name: kubernetes, nic: 10Gbps, rack_link: 40Gbps,
  racks: [{name: placeholder, hosts: [{name: placeholder, labels: {managed-by: kubernetes}}]}]}`

func TestThePlaceholderOfTheChartLeavesTheRealServiceWithTheFirstNodes(t *testing.T) {
	var nodes []*corev1.Node
	client, syncer := begin(t, ofChart, DefaultSettings(), func() []*corev1.Node { return nodes })
	names := func() []string {
		t.Helper()
		hosts, err := client.Hosts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, host := range hosts {
			names = append(names, host.Rack+"/"+host.Host)
		}
		return names
	}
	for _, c := range []struct {
		nodes []*corev1.Node
		hosts []string
	}{
		{nil, []string{"placeholder/placeholder"}},
		{[]*corev1.Node{node("n1", "a"), node("n2", "b")}, []string{"a/n1", "b/n2"}},
		{[]*corev1.Node{node("n1", "a"), node("n2", "b")}, []string{"a/n1", "b/n2"}},
	} {
		nodes = c.nodes
		if remaining := syncer.Step(t.Context(), time.Now()); len(remaining) != 0 {
			t.Errorf("%d nodes: %+v", len(nodes), remaining)
		}
		if got := names(); !slices.Equal(got, c.hosts) {
			t.Errorf("%d nodes: %v", len(nodes), got)
		}
	}
}
