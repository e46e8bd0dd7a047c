package kubectl

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"leeward.dev/kubernetes/api/v1alpha1"
	"leeward.dev/kubernetes/evictor"
	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/internal/fake"
	"leeward.dev/kubernetes/snapshot"
)

// answers are those of a service with two racks of one host each; r0:uplink is hot.
func answers() map[string]string {
	link := func(name, utilization, hot string) string {
		return `{"link": "` + name + `", "capacity_bps": 40000000000, "seen": true, "measured_bps": 1, "utilization": ` +
			utilization + `, "hot_since": ` + hot + `}`
	}
	since := `"2026-01-31T11:50:00Z"`
	host := func(name, rack string) string {
		return `{"host": "` + name + `", "rack": "` + rack + `", "up": true, "draining": false, "egress": ` +
			link(name+":egress", "0.4", "null") + `, "ingress": ` + link(name+":ingress", "null", "null") + `}`
	}
	return map[string]string{
		"/v1/status": `{"version": "1.2.3", "cluster": "test", "role": "leader", "interval_s": 10, "hot_above": 0.75, "stalled": null,
			"warnings": [], "agents": {"reporting": 2, "silent": 0, "absent": 0, "silent_hosts": []}}`,
		"/v1/racks": `{"items": [
			{"rack": "r1", "hosts": 1, "up": ` + link("r1:uplink", "0.1", "null") + `, "down": ` + link("r1:downlink", "0.2", "null") + `},
			{"rack": "r0", "hosts": 1, "up": ` + link("r0:uplink", "0.9", since) + `, "down": ` + link("r0:downlink", "null", "null") + `}],
			"next": null}`,
		"/v1/hosts": `{"items": [` + host("r0h0", "r0") + `, ` + host("r1h0", "r1") + `], "next": null}`,
		"/v1/hotspots": `{"items": [{"link": "r0:uplink", "since": ` + since + `, "age_s": 600, "utilization": 0.9, "no_move": "off"}],
			"next": null}`,
		"/v1/peaks":   `{"items": [], "next": null, "window_s": 86400, "percentile": 0.98}`,
		"/v1/cluster": `{"racks": 2, "hosts_per_rack": 1, "nic": "10Gbps", "rack_link": "40Gbps"}`,
	}
}

// handler answers as a service.
func handler(texts map[string]string) http.Handler {
	network := fake.Tree(0, 2, 1)
	network.Time = time.Now().UTC()
	network.Link("r0:uplink").Measured = 36e9
	// The racks of the answers say the same.
	network.Link("r0:uplink").Derived = strings.Contains(texts["/v1/racks"], `"derived": true`)
	network.Link("r0:downlink").Derived = network.Link("r0:uplink").Derived
	network.Windows = true
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/v1/snapshot" {
			_, _ = writer.Write(network.Whole())
			return
		}
		text, ok := texts[request.URL.Path]
		if !ok {
			http.NotFound(writer, request)
			return
		}
		_, _ = writer.Write([]byte(text))
	})
}

func podOn(node, name string, annotations map[string]string) *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name), Annotations: annotations, Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "web", Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: node, SchedulerName: "leeward-scheduler"}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func nodeIn(name, rack string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"leeward.dev/rack": rack}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func objects() []runtime.Object {
	return []runtime.Object{
		nodeIn("r0h0", "r0"), nodeIn("r1h0", "r1"),
		podOn("r0h0", "web-0", map[string]string{"leeward.dev/peak-egress": "2G", "leeward.dev/migratable": "true"}),
		podOn("r0h0", "web-1", map[string]string{"leeward.dev/peak-egress": "3G"}),
		podOn("", "web-2", map[string]string{"leeward.dev/peak-ingress": "1G"}),
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
			Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1},
		},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "leeward", Name: "leeward-evictor"}},
		&eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e"}, ReportingController: "leeward-evictor", Reason: "HotRackDryRun",
			Note: "would be evicted", Regarding: corev1.ObjectReference{Name: "web-0", UID: "web-0"},
			EventTime: metav1.NewMicroTime(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)),
		},
	}
}

// execute runs the plugin beside a service, and returns its exit code and both outputs.
func execute(t *testing.T, texts map[string]string, objects []runtime.Object, arguments ...string) (int, string, string) {
	t.Helper()
	server := httptest.NewServer(handler(texts))
	defer server.Close()
	return executeWith(t, map[string]string{controllerVariable: server.URL}, objects, arguments...)
}

// executeWith runs the plugin with variables of the environment.
func executeWith(t *testing.T, variables map[string]string, objects []runtime.Object, arguments ...string) (int, string, string) {
	t.Helper()
	matrices := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{v1alpha1.Resource: v1alpha1.Kind + "List"})
	var typed []runtime.Object
	for _, object := range objects {
		matrix, ok := object.(*unstructured.Unstructured)
		if !ok {
			typed = append(typed, object)
			continue
		}
		if err := matrices.Tracker().Create(v1alpha1.Resource, matrix, matrix.GetNamespace()); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr bytes.Buffer
	variable := func(name string) string { return variables[name] }
	open := func(connection *Connection) (*Sources, error) {
		requests, err := httpapi.New(connection.Service, connection.Timeout)
		if err != nil {
			return nil, err
		}
		snapshots, err := snapshot.NewClient(connection.Service)
		if err != nil {
			return nil, err
		}
		namespace := connection.Namespace
		if namespace == "" {
			namespace = "shop"
		}
		return &Sources{
			Kube: kubefake.NewClientset(typed...), Dynamic: matrices, Service: requests, Snapshots: snapshots, Namespace: namespace, Now: time.Now(),
		}, nil
	}
	code := Run(context.Background(), arguments, &stdout, &stderr, variable, open)
	return code, stdout.String(), stderr.String()
}

func must(t *testing.T, arguments ...string) string {
	t.Helper()
	code, stdout, stderr := execute(t, answers(), objects(), arguments...)
	if code != exitOK || stderr != "" {
		t.Fatalf("%v: exit %d: %s%s", arguments, code, stdout, stderr)
	}
	return stdout
}

// columns returns the words of each line.
func columns(text string) [][]string {
	var lines [][]string
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

func TestTopListsTheFullestFirst(t *testing.T) {
	lines := columns(must(t, "top"))
	if len(lines) != 3 || lines[1][0] != "r0" || lines[1][2] != "90%" || lines[1][3] != "-" || lines[2][0] != "r1" {
		t.Errorf("%q", lines)
	}
	lines = columns(must(t, "top", "--nodes", "--limit", "1"))
	if len(lines) != 3 || lines[1][0] != "r0h0" || lines[1][1] != "r0" || !strings.Contains(strings.Join(lines[2], " "), "1 more") {
		t.Errorf("%q", lines)
	}
	var record Top
	if err := json.Unmarshal([]byte(must(t, "top", "-o", "json")), &record); err != nil || record.Total != 2 || *record.Items[0].Out.Utilization != 0.9 {
		t.Errorf("%v: %+v", err, record)
	}
}

func TestExplainShowsDemandLinksAndTheReasonToStay(t *testing.T) {
	text := must(t, "explain", "pod/web-0")
	for _, part := range []string{"2 Gb/s (annotation)", "StatefulSet/web", "allows 1 now", "r0:uplink", "fullest", "HotRackDryRun"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
	var record Explanation
	if err := json.Unmarshal([]byte(must(t, "explain", "pod/shop/web-1", "-o", "json")), &record); err != nil {
		t.Fatal(err)
	}
	if record.Stays != string(evictor.NotMigratable) || record.Rack != "r0" || record.Candidates[0].Limit != "r0:uplink" || record.Candidates[0].Score != 10 {
		t.Errorf("%+v", record)
	}
	if err := json.Unmarshal([]byte(must(t, "explain", "web-2", "-n", "shop", "-o", "json")), &record); err != nil {
		t.Fatal(err)
	}
	if len(record.Candidates) != 2 || record.Candidates[0].Node != "r1h0" || record.Candidates[0].Score != 90 {
		t.Errorf("%+v", record.Candidates)
	}
}

func TestExplainShowsEventsOfASchedulerOfAnyName(t *testing.T) {
	event := func(controller, reason string) runtime.Object {
		return &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: reason}, ReportingController: controller, Reason: reason,
			Regarding: corev1.ObjectReference{Name: "web-0", UID: "web-0"},
		}
	}
	code, text, stderr := execute(t, answers(), append(objects(), event("default-scheduler", "InvalidNetworkAnnotation"),
		event("default-scheduler", "NetworkUnavailable"), event("mover", "HotRack"), event("mover", "HotRackBudgetSpent"),
		event("default-scheduler", "Scheduled"), event("kubelet", "Pulled")), "explain", "pod/web-0")
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for reason, shown := range map[string]bool{
		"InvalidNetworkAnnotation": true, "NetworkUnavailable": true, "HotRack ": true, "HotRackBudgetSpent": true, "HotRackDryRun": true,
		"Scheduled": false, "Pulled": false,
	} {
		if strings.Contains(text, reason) != shown {
			t.Errorf("%s: expected %v in\n%s", reason, shown, text)
		}
	}
}

func TestAPodWithoutAnnotationsHasTheMeasuredPeakOfItsWorkload(t *testing.T) {
	texts := answers()
	texts["/v1/peaks"] = `{"items": [{"job": "shop/StatefulSet/web", "egress_peak_bps": 4000000000, "ingress_peak_bps": 1000,
		"observations": 288}], "next": null, "window_s": 86400, "percentile": 0.98}`
	cluster := append(objects(), podOn("r0h0", "web-3", nil))
	for command, expected := range map[string]string{
		"explain pod/web-3": "4 Gb/s (history)", "explain pod/web-1": "3 Gb/s (annotation)", "hotspots": "web-3",
		"check": "4 of 4 pods have a known demand, 4 of them a measured one",
	} {
		code, text, stderr := execute(t, texts, cluster, strings.Fields(command)...)
		if code != exitOK || stderr != "" || !strings.Contains(text, expected) {
			t.Errorf("%s: exit %d: expected %q in\n%s%s", command, code, expected, text, stderr)
		}
	}
}

func TestHotspotsNameThePodsWithTheLargestPeak(t *testing.T) {
	var record Hotspots
	if err := json.Unmarshal([]byte(must(t, "hotspots", "-o", "json")), &record); err != nil {
		t.Fatal(err)
	}
	pods := record.Items[0].Pods
	if len(pods) != 2 || pods[0].Pod != "web-1" || pods[0].Stays != "not_migratable" || pods[1].Pod != "web-0" || pods[1].Stays != "" {
		t.Errorf("%+v", pods)
	}
	if text := must(t, "hotspots"); !strings.Contains(text, "no: not migratable") || !strings.Contains(text, "10m0s") {
		t.Errorf("%s", text)
	}
	texts := answers()
	texts["/v1/hotspots"] = `{"items": [], "next": null}`
	if code, text, _ := execute(t, texts, objects(), "hotspots"); code != exitOK || text != "No link is hot.\n" {
		t.Errorf("exit %d: %s", code, text)
	}
}

func TestAServiceThatIsAwayIsALineOfTheCheckAndAnErrorElsewhere(t *testing.T) {
	code, text, _ := execute(t, map[string]string{}, objects(), "check")
	if code != exitProblem || !strings.Contains(text, "status 404") {
		t.Errorf("exit %d: %s", code, text)
	}
	code, text, stderr := execute(t, map[string]string{}, objects(), "top")
	if code != exitProblem || text != "" || !strings.HasPrefix(stderr, "error: http://127.0.0.1:") {
		t.Errorf("exit %d: %s%s", code, text, stderr)
	}
}

func TestEachCommandHasHelpWithExamples(t *testing.T) {
	for _, c := range commands() {
		text := must(t, c.name, "--help")
		for _, example := range c.examples {
			if !strings.Contains(text, "kubectl leeward "+example) {
				t.Errorf("%s: %q is missing", c.name, example)
			}
		}
		if general := must(t); !strings.Contains(general, c.name) || !strings.Contains(general, "  kubectl leeward "+c.examples[0]+"\n") {
			t.Errorf("%s or its example is missing in\n%s", c.name, general)
		}
		if !strings.Contains(text, "--controller address") || !strings.Contains(text, "-o format") {
			t.Errorf("flags are missing in\n%s", text)
		}
	}
}

func TestInvalidArgumentsAreNamedWithAHint(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		problem   string
	}{
		{[]string{"watch"}, `"watch": no such command`},
		{[]string{"top", "racks"}, `top: "racks": expected no argument`},
		{[]string{"top", "-o", "yaml"}, `--output: "yaml": expected table or json`},
		{[]string{"top", "--limit", "-1"}, "--limit: -1"},
		{[]string{"top", "--limit", "many"}, "many"},
		{[]string{"top", "--timeout", "0s"}, "--timeout: 0s: expected 100ms to 10m0s"},
		{[]string{"top", "--timeout", "5ms"}, "--timeout: 5ms"},
		{[]string{"top", "--controller", ""}, "--controller: missing"},
		{[]string{"top", "--controller", "leeward"}, `--controller: "leeward"`},
		{[]string{"top", "--ca", "/does/not/exist"}, "--ca: open /does/not/exist"},
		{[]string{"top", "--wide"}, "flag provided but not defined: --wide"},
		{[]string{"explain"}, "explain: 0 arguments"},
		{[]string{"explain", "node/a"}, `explain: "node/a"`},
		{[]string{"explain", "pod/a/b/c"}, `explain: "pod/a/b/c"`},
		{[]string{"explain", "pod/"}, `explain: "pod/"`},
		{[]string{"check", "--evictor", "a"}, `--evictor: "a"`},
	} {
		code, stdout, stderr := execute(t, answers(), objects(), c.arguments...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, c.problem) || !strings.Contains(stderr, "hint: ") {
			t.Errorf("%v: exit %d: %s%s", c.arguments, code, stdout, stderr)
		}
	}
	code, _, stderr := execute(t, answers(), objects(), "explain", "pod/other")
	if code != exitProblem || !strings.Contains(stderr, "pod shop/other: not found") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestAddressTokenAndAuthorityComeFromVariablesOrFlags(t *testing.T) {
	answer := handler(answers())
	server := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if request.Header.Get("authorization") != "Bearer secret" {
			writer.WriteHeader(http.StatusUnauthorized)
			return
		}
		answer.ServeHTTP(writer, request)
	}))
	defer server.Close()
	folder := t.TempDir()
	token, other, authority := filepath.Join(folder, "token"), filepath.Join(folder, "other"), filepath.Join(folder, "ca.crt")
	for path, content := range map[string][]byte{
		token: []byte("secret\n"), other: []byte("wrong\n"),
		authority: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name      string
		variables map[string]string
		flags     string
		code      int
	}{
		{"variables with files", map[string]string{tokenFileVariable: token, authorityVariable: authority}, "", exitOK},
		{"the token in a variable", map[string]string{tokenVariable: "secret", authorityVariable: authority}, "", exitOK},
		{"a file before the token", map[string]string{tokenVariable: "wrong", tokenFileVariable: token, authorityVariable: authority}, "", exitOK},
		{"flags before variables", map[string]string{tokenFileVariable: other, authorityVariable: other},
			"--token-file " + token + " --ca " + authority, exitOK},
		{"the other name of the flag", nil, "--token-file " + token + " --ca-file " + authority, exitOK},
		{"no authority", map[string]string{tokenVariable: "secret"}, "", exitProblem},
		{"another token", map[string]string{tokenVariable: "wrong", authorityVariable: authority}, "", exitProblem},
	} {
		variables := map[string]string{controllerVariable: server.URL}
		maps.Copy(variables, c.variables)
		for _, command := range []string{"top", "explain pod/web-0"} {
			code, text, stderr := executeWith(t, variables, objects(), strings.Fields(command+" "+c.flags)...)
			if code != c.code || strings.Contains(text+stderr, "secret") {
				t.Errorf("%s: %s: exit %d: %s%s", c.name, command, code, text, stderr)
			}
		}
	}
}

func TestASilentServiceEndsACommandAfterItsTimeoutWithTheAddress(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	for _, command := range []string{"top", "explain pod/web-0"} {
		began := time.Now()
		code, _, stderr := executeWith(t, map[string]string{controllerVariable: server.URL}, objects(),
			append(strings.Fields(command), "--timeout", "300ms")...)
		if code != exitProblem || !strings.HasPrefix(stderr, "error: "+server.URL+": no answer within 300ms") {
			t.Errorf("%s: exit %d: %s", command, code, stderr)
		}
		if took := time.Since(began); took < 300*time.Millisecond || took > 5*time.Second {
			t.Errorf("%s: it ends after %v", command, took)
		}
	}
}

func TestRatesHaveThreeDigits(t *testing.T) {
	for bps, expected := range map[float64]string{0: "0 b/s", 999: "999 b/s", 2.5e9: "2.5 Gb/s", 123456789: "123 Mb/s", 4e13: "40 Tb/s"} {
		if text := rate(bps); text != expected {
			t.Errorf("%v: %s", bps, text)
		}
	}
}
