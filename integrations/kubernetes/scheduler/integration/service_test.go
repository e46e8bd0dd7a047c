package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"leeward.dev/kubernetes/internal/service"
	"leeward.dev/kubernetes/snapshot"
)

// reportHot reports that the uplinks of the first racks are 90 % full, and all other links of racks idle.
func reportHot(t *testing.T, client *snapshot.Client, hotRacks int) {
	t.Helper()
	reportRacks(t, client, racks, hotRacks)
}

// reportRacks does the same in a cluster with a number of racks.
func reportRacks(t *testing.T, client *snapshot.Client, count, hotRacks int) {
	t.Helper()
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
