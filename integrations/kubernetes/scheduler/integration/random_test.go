package integration

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"leeward.dev/kubernetes/evictor"
	"leeward.dev/kubernetes/internal/fake"
)

// recorded returns the evictions that the ConfigMap of the evictors of a namespace has, by the workload, in their order.
func recorded(t *testing.T, namespace string) map[string][]evictor.Record {
	t.Helper()
	object, err := plane.Client.CoreV1().ConfigMaps(namespace).Get(t.Context(), configMap, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var records []evictor.Record
	if err := json.Unmarshal([]byte(object.Data["records"]), &records); err != nil {
		t.Fatal(err)
	}
	byWorkload := map[string][]evictor.Record{}
	for _, record := range records {
		byWorkload[record.Workload] = append(byWorkload[record.Workload], record)
	}
	return byWorkload
}

// The same property holds for 10,000 steps with faults of the API server in package evictor. Here the API server, its Eviction API, the
// disruption controller and the scheduler are the real ones.
func TestRandomStepsOnAnApiServerBreakNoBudgetAndMoveNoPodTwice(t *testing.T) {
	steps, expected := 160, 20
	if testing.Short() {
		steps, expected = 20, 2
	}
	const cooldown = 10
	r := rand.New(rand.NewPCG(17, 1))
	s := newScene(t, interval, func(*fake.Network) {})
	startKubelet(t)
	s.start(s.args)
	since := time.Now()
	available := []int{6, 4, 0}
	var fleets []*fleet
	for i, least := range available {
		fleets = append(fleets, newFleet(t, fmt.Sprintf("random%d", i), 8, least, "r0", "r1", "r2", "r3"))
	}
	// Two evictors decide at the same time, as when a leader does not notice that its Lease is lost.
	begin := func() *evicting {
		return s.evict(evictor.Evict, func(settings *evictor.Settings) {
			settings.HotWindows, settings.WorkloadCooldown, settings.HourlyBudget, settings.Lasts = 2, cooldown, 1000, 2*time.Second
		})
	}
	evictors := []*evicting{begin(), begin()}
	background := map[string]int64{}
	for range steps {
		background[fmt.Sprintf("r%d", r.IntN(8))] = []int64{0, 8e9, 20e9, 30e9}[r.IntN(4)]
		load := map[string]int64{}
		for _, f := range fleets {
			for rack, pods := range f.inRacks(s.rackOf) {
				load[rack] += 2e9 * int64(pods)
			}
		}
		s.service.Change(func(network *fake.Network) {
			for rack := range racks {
				name := fmt.Sprintf("r%d", rack)
				network.Link(name + ":uplink").Measured = min(load[name]+background[name], 40e9)
			}
		})
		switch r.IntN(20) {
		case 0:
			s.service.Intercept(says(http.StatusOK, "[[["))
		case 1, 2, 3, 4, 5:
			s.service.Intercept(nil)
		case 6:
			// A new process has only the ConfigMap.
			i := r.IntN(len(evictors))
			evictors[i].stop()
			evictors[i] = begin()
		}
		time.Sleep(evictionWindow)
	}
	for _, of := range evictors {
		of.stop()
	}
	for i, f := range fleets {
		if least, _ := f.counts(); least < available[i] {
			t.Errorf("%s: %d pods ran, and its budget leaves %d", f.name, least, available[i])
		}
	}
	evicted, records := evictions(t, "random", since), recorded(t, metav1.NamespaceDefault)
	count := 0
	for workload, of := range records {
		for i, record := range of {
			count++
			if i > 0 && record.At.Sub(of[i-1].At) < cooldown*evictionWindow {
				t.Errorf("%s moved twice within %v", workload, record.At.Sub(of[i-1].At))
			}
		}
	}
	// An eviction whose process ended before the answer has a record too.
	if len(evicted) > count {
		t.Errorf("%d evictions, %d records", len(evicted), count)
	}
	if len(evicted) < expected {
		t.Errorf("only %d evictions", len(evicted))
	}
	t.Logf("%d evictions of %d workloads", len(evicted), len(records))
}
