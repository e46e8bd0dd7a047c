package kubectl

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"leeward.dev/kubernetes/evictor"
)

// derived are the answers of a service that has no counters of the links of rack r0.
func derived() map[string]string {
	texts := answers()
	texts["/v1/racks"] = strings.ReplaceAll(texts["/v1/racks"], `{"link": "r0:`, `{"derived": true, "link": "r0:`)
	return texts
}

// recordedBy is the ConfigMap of an evictor that evicted a pod of a workload from a rack some time ago.
func recordedBy(rack, workload string, before time.Duration, limits string) *corev1.ConfigMap {
	record := fmt.Sprintf(`[{"at": %q, "uid": "gone", "workload": %q, "source": %q}]`,
		time.Now().Add(-before).UTC().Format(time.RFC3339), workload, rack)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "leeward", Name: "mover"}, Data: map[string]string{"records": record, "limits": limits},
	}
}

// explained returns the explanation of pod web-0 beside more objects.
func explained(t *testing.T, texts map[string]string, more []runtime.Object, arguments ...string) Explanation {
	t.Helper()
	code, text, stderr := execute(t, texts, append(objects(), more...), append([]string{"explain", "pod/web-0", "-o", "json"}, arguments...)...)
	var record Explanation
	if err := json.Unmarshal([]byte(text), &record); err != nil || code != exitOK {
		t.Fatalf("exit %d: %s%s: %v", code, text, stderr, err)
	}
	return record
}

func TestExplainHasTheCooldownsAndTheBudgetOfTheHour(t *testing.T) {
	const strict = `{"window": "2m", "rack_cooldown": 10, "workload_cooldown": 20, "hourly_budget": 1, "derived_links": true}`
	const loose = `{"window": "1m", "rack_cooldown": 1, "workload_cooldown": 1, "hourly_budget": 3, "derived_links": false}`
	for name, c := range map[string]struct {
		state  *corev1.ConfigMap
		reason evictor.Reason
	}{
		"the rack":          {recordedBy("r0", "other", 5*time.Minute, strict), evictor.RackCools},
		"by the default":    {recordedBy("r0", "other", 5*time.Minute, ""), evictor.RackCools},
		"no longer":         {recordedBy("r0", "StatefulSet/shop/web", 5*time.Minute, loose), ""},
		"the workload":      {recordedBy("r1", "StatefulSet/shop/web", 30*time.Minute, strict), evictor.WorkloadCools},
		"the hour":          {recordedBy("r1", "other", 5*time.Minute, strict), evictor.HourSpent},
		"another namespace": {recordedBy("r1", "StatefulSet/web", time.Minute, loose), ""},
	} {
		if record := explained(t, answers(), []runtime.Object{c.state}, "--evictor", "leeward/mover"); record.Stays != string(c.reason) ||
			record.Evictor == nil || record.Evictor.InHour != 1 {
			t.Errorf("%s: %q, %+v", name, record.Stays, record.Evictor)
		}
	}
	code, text, stderr := execute(t, answers(), append(objects(), recordedBy("r0", "other", 330*time.Second, strict)), "explain", "pod/web-0",
		"--evictor", "leeward/mover")
	for _, part := range []string{"1 of 1 in the last hour", "Rack cools for", "rack_cooldown", "14m"} {
		if code != exitOK || !strings.Contains(text, part) {
			t.Errorf("exit %d: %q is missing in\n%s%s", code, part, text, stderr)
		}
	}
	broken := recordedBy("r0", "other", time.Minute, "{")
	if record := explained(t, answers(), []runtime.Object{broken}, "--evictor", "leeward/mover"); len(record.Problems) != 1 ||
		!strings.Contains(record.Problems[0], "configmap leeward/mover") {
		t.Errorf("%q", record.Problems)
	}
}

func TestAPodOfUnknownDemandIsListedAndExplained(t *testing.T) {
	unknown := podOn("r0h0", "web-9", map[string]string{"leeward.dev/migratable": "true"})
	cluster := append(objects(), unknown, podOn("r0h0", "web-8", nil))
	code, text, _ := execute(t, answers(), cluster, "explain", "pod/web-9")
	if code != exitOK || !strings.Contains(text, "unknown_demand") {
		t.Errorf("exit %d: %s", code, text)
	}
	_, text, _ = execute(t, answers(), cluster, "hotspots")
	lines := columns(text)
	last := strings.Join(lines[len(lines)-1], " ")
	if len(lines) != 4 || last != "shop/web-9 r0h0 unknown no: unknown demand" {
		t.Errorf("%s", text)
	}
}

func TestPodsOfOtherSchedulersStay(t *testing.T) {
	other := podOn("r0h0", "web-7", map[string]string{"leeward.dev/peak-egress": "5G", "leeward.dev/migratable": "true"})
	other.Spec.SchedulerName = "batch"
	cluster := append(objects(), other)
	for arguments, stays := range map[string]bool{"": true, " --scheduler leeward-scheduler,batch": false, " --scheduler *": false} {
		for command, word := range map[string]string{"explain pod/web-7": "other_scheduler", "hotspots": "other scheduler"} {
			code, text, stderr := execute(t, answers(), cluster, strings.Fields(command+arguments)...)
			if code != exitOK || strings.Contains(text, word) != stays {
				t.Errorf("%s%s: exit %d: %s%s", command, arguments, code, text, stderr)
			}
		}
	}
}

func TestLinksWhoseLoadIsASumAreMarked(t *testing.T) {
	note := "* the sum of the nodes, since the link has no counter"
	for command, part := range map[string]string{"top": "90%*", "hotspots": "r0:uplink*"} {
		code, text, stderr := execute(t, derived(), objects(), command)
		if code != exitOK || !strings.Contains(text, part) || !strings.Contains(text, note) {
			t.Errorf("%s: exit %d: %s%s", command, code, text, stderr)
		}
		if text := must(t, command); strings.Contains(text, "*") {
			t.Errorf("%s: a mark without a sum:\n%s", command, text)
		}
	}
	code, text, _ := execute(t, derived(), objects(), "check")
	if code != exitOK || !strings.Contains(text, "r0:downlink and 1 more are sums of their nodes: traffic within the rack counts") {
		t.Errorf("exit %d: %s", code, text)
	}
	if text := must(t, "check"); strings.Contains(text, "sum of") {
		t.Errorf("a line about no link:\n%s", text)
	}
	if record := explained(t, derived(), nil); record.Stays != string(evictor.DerivedLink) {
		t.Errorf("%q", record.Stays)
	}
	allowed := recordedBy("r1", "other", 50*time.Minute,
		`{"window": "1m", "rack_cooldown": 1, "workload_cooldown": 1, "hourly_budget": 3, "derived_links": true}`)
	if record := explained(t, derived(), []runtime.Object{allowed}, "--evictor", "leeward/mover"); record.Stays != "" {
		t.Errorf("%q", record.Stays)
	}
}
