package trafficmatrix

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"leeward.dev/kubernetes/internal/service"
	"leeward.dev/kubernetes/snapshot"
)

// reportIdle reports idle links of all hosts and racks of the service in the last second.
func reportIdle(t *testing.T, address string) {
	t.Helper()
	var links []map[string]any
	for rack := range 4 {
		names := []string{fmt.Sprintf("r%d:uplink", rack), fmt.Sprintf("r%d:downlink", rack)}
		for host := range 4 {
			names = append(names, fmt.Sprintf("r%dh%d:egress", rack, host), fmt.Sprintf("r%dh%d:ingress", rack, host))
		}
		for _, name := range names {
			links = append(links, map[string]any{"link": name, "load_bps": 0})
		}
	}
	until := time.Now().UTC()
	body, err := json.Marshal(map[string]any{
		"from": until.Add(-time.Second).Format(time.RFC3339Nano), "until": until.Format(time.RFC3339Nano), "links": links,
	})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post(address+"/v1/reports", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		problem, _ := io.ReadAll(answer.Body)
		t.Fatalf("%d: %s", answer.StatusCode, problem)
	}
}

func TestARealControllerPlacesAnAppHoldsItAndForgetsIt(t *testing.T) {
	address := service.Start(t, service.Small)
	reportIdle(t, address)
	client, err := snapshot.NewClient(snapshot.Settings{Controllers: []string{address}, Deadline: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c := &controller{call: client.Call, hold: time.Minute.String()}
	of := askOf(t, 4)
	result, err := c.place(t.Context(), of, []string{"r0h0", "r0h1"})
	if err != nil || len(result.Hosts) != 4 {
		t.Fatalf("%+v, %v", result, err)
	}
	if slices.Contains(result.Hosts, "r0h0") || slices.Contains(result.Hosts, "r0h1") {
		t.Errorf("%v: hosts that were left out", result.Hosts)
	}
	again, err := c.place(t.Context(), of, []string{"r0h2"})
	if err != nil || again.ID != result.ID || !slices.Equal(again.Hosts, result.Hosts) {
		t.Errorf("another replica of the scheduler: %+v, %v", again, err)
	}
	bound := &settlement{ask: *of, nodes: result.Hosts, decision: result.ID, same: true}
	if id, err := c.settle(t.Context(), bound); err != nil || id != result.ID {
		t.Errorf("confirmed: %s, %v", id, err)
	}
	bound.same, bound.nodes = false, []string{"r1h0", "r1h1", "r2h0", "r2h1"}
	id, err := c.settle(t.Context(), bound)
	if err != nil || id == result.ID {
		t.Fatalf("committed: %s, %v", id, err)
	}
	if found, err := c.find(t.Context(), keyOf(of.run)); err != nil || found.ID != id {
		t.Errorf("the decision of a lost answer: %+v, %v", found, err)
	}
	if found, err := c.find(t.Context(), keyOf("other")); err != nil || found.ID != "" {
		t.Errorf("a request that never arrived: %+v, %v", found, err)
	}
	bound.same, bound.decision = true, "999999"
	if again, err := c.settle(t.Context(), bound); err != nil || again != id {
		t.Errorf("a decision that the service does not know: %s, %v", again, err)
	}
	if err := c.release(t.Context(), []string{id, result.ID, "999999"}); err != nil {
		t.Errorf("released: %v", err)
	}
	answer, err := client.Call(t.Context(), http.MethodGet, "/v1/commitments", nil)
	if err != nil || !bytes.Contains(answer, []byte(`"items":[]`)) {
		t.Errorf("%s, %v", answer, err)
	}
}
