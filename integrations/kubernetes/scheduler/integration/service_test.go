package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"leeward.dev/kubernetes/api/v1alpha1"
	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/internal/service"
	"leeward.dev/kubernetes/scheduler/controlplane"
	"leeward.dev/kubernetes/snapshot"
	"leeward.dev/kubernetes/trafficmatrix"
)

// reportHot reports that the uplinks of the first racks are 90 % full, and all other links of racks idle.
func reportHot(t *testing.T, client *snapshot.Client, hotRacks int) {
	t.Helper()
	reportRacks(t, client, racks, hotRacks)
}

// reportRacks does the same in a cluster with a number of racks.
func reportRacks(t *testing.T, client *snapshot.Client, count, hotRacks int) {
	t.Helper()
	reportLinks(t, client, linksOfRacks(count, hotRacks))
}

// reportHosts reports the same, and that the links of all nodes of the hot racks are 90 % full in both directions, and those of
// all other nodes idle.
func reportHosts(t *testing.T, client *snapshot.Client, hotRacks int) {
	t.Helper()
	links := linksOfRacks(racks, hotRacks)
	for rack := range racks {
		for host := range rackSize {
			for _, direction := range []string{"egress", "ingress"} {
				load := int64(0)
				if rack < hotRacks {
					load = 9e9
				}
				links = append(links, map[string]any{"link": fmt.Sprintf("r%dh%d:%s", rack, host, direction), "load_bps": load})
			}
		}
	}
	reportLinks(t, client, links)
}

// linksOfRacks returns the loads of the links of racks, of which the first ones are hot.
func linksOfRacks(count, hotRacks int) []map[string]any {
	var links []map[string]any
	for rack := range count {
		load := int64(0)
		if rack < hotRacks {
			load = 36e9
		}
		links = append(links,
			map[string]any{"link": fmt.Sprintf("r%d:uplink", rack), "load_bps": load},
			map[string]any{"link": fmt.Sprintf("r%d:downlink", rack), "load_bps": 0})
	}
	return links
}

// reportLinks reports loads of the last second.
func reportLinks(t *testing.T, client *snapshot.Client, links []map[string]any) {
	t.Helper()
	until := time.Now().UTC()
	body, err := json.Marshal(map[string]any{
		"from": until.Add(-time.Second).Format(time.RFC3339Nano), "until": until.Format(time.RFC3339Nano), "links": links,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(t.Context(), http.MethodPost, "/v1/reports", body); err != nil {
		t.Fatal(err)
	}
}

// committed returns the number of commitments that the service has and did not release.
func committed(t *testing.T, client *snapshot.Client) int {
	t.Helper()
	body, err := client.Call(t.Context(), http.MethodGet, "/v1/commitments?limit=1000", nil)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

func TestTheRealServiceKeepsPodsFromHotRacksAndHasTheirPlacements(t *testing.T) {
	cluster := fmt.Sprintf("racks: %d\nhosts_per_rack: %d\nnic: 10Gbps\nrack_link: 40Gbps\n", racks, rackSize)
	address := service.Start(t, cluster)
	client, err := snapshot.NewClient(snapshot.Settings{Controllers: []string{address}, Deadline: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s := newSceneAt(t, address)
	reportHot(t, client, 5)
	s.start(s.args)
	s.place("real", many(400), "100M")
	s.expectCold(5)
	eventually(t, "the service does not have all placements", func() bool { return committed(t, client) == many(400) })
	eventually(t, "placements count beside those of the service", func() bool { return metric(t, "leeward_placements", "") == 0 })
	if err := plane.DeletePods(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the placements of deleted pods remain", func() bool { return committed(t, client) == 0 })
}

// The service chooses hosts by the loads of their links, and the scheduler puts each pod on the host of its task.
func TestTheRealServiceChoosesTheHostsOfAnAppAndOfAGang(t *testing.T) {
	const hotRacks = 5
	cluster := fmt.Sprintf("racks: %d\nhosts_per_rack: %d\nnic: 10Gbps\nrack_link: 40Gbps\ncpus: 64\nmemory: 256GiB\n", racks, rackSize)
	address := service.Start(t, cluster)
	client, err := snapshot.NewClient(snapshot.Settings{Controllers: []string{address}, Deadline: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	requests, err := httpapi.New(snapshot.Settings{Controllers: []string{address}}, httpapi.DefaultDeadline)
	if err != nil {
		t.Fatal(err)
	}
	m := &matrices{scene: newSceneAt(t, address)}
	m.connect()
	reportHosts(t, client, hotRacks)
	// As in the chart, both plugins follow the network together.
	stop, err := plane.StartScheduler(t.Context(), controlplane.Scheduler{
		NetworkLoad:   m.args,
		TrafficMatrix: &trafficmatrix.Args{Service: m.args.Service, Wait: &metav1.Duration{Duration: 30 * time.Second}},
		Weight:        10,
		BeforeFirst:   func(context.Context) { awaitSnapshot(t) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	// Two pods fill a node, so an app needs several nodes.
	large := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("24")}
	}
	for _, app := range []struct {
		name    string
		count   int
		changes []func(*corev1.Pod)
	}{{"allreduce", 16, nil}, {"gang", 8, []func(*corev1.Pod){gang(t, 8)}}} {
		before := metric(t, "leeward_matrix_pods_total", "host")
		reportHosts(t, client, hotRacks)
		m.ring(app.name, int32(app.count))
		m.add(app.name, 0, app.count, append(app.changes, large)...)
		nodes := m.awaitBound(app.name)[:app.count]
		eventually(t, "the service does not count the nodes", func() bool {
			return m.reason(app.name, v1alpha1.ConditionComplete) == "Bound"
		})
		if reason := m.reason(app.name, v1alpha1.ConditionPlaced); reason != "Chosen" {
			t.Errorf("%s: placed: %s", app.name, reason)
		}
		// A pod on another node than the chosen one would not count here, though the decision has all nodes in the end.
		eventually(t, "not all pods are on the host that the service chose", func() bool {
			return metric(t, "leeward_matrix_pods_total", "host")-before == float64(app.count)
		})
		decision, err := requests.Decision(t.Context(), m.status(app.name).Decision)
		if err != nil || !slices.Equal(decision.Hosts, nodes) {
			t.Errorf("%s: %v: the service chose %v, %v", app.name, nodes, decision.Hosts, err)
		}
		for _, node := range nodes {
			if slices.Contains([]string{"r0", "r1", "r2", "r3", "r4"}, m.rackOf[node]) {
				t.Errorf("%s: %s is in a hot rack", app.name, node)
			}
		}
	}
	if count := committed(t, client); count != 2 {
		t.Errorf("%d decisions count", count)
	}
	if err := plane.DeletePods(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the decisions of deleted pods remain", func() bool { return committed(t, client) == 0 })
}
