package clustersync

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"leeward.dev/kubernetes/httpapi"
)

// registry is a service with a cluster.
type registry struct {
	t        *testing.T
	text     string
	version  int
	draining map[string]bool
	speeds   map[string]float64
	err      error
	// reportErr is the error of reports on hosts.
	reportErr error
	patches   int
	dryRuns   int
	// before runs before a patch.
	before func()
}

func (r *registry) Cluster(context.Context) (map[string]any, string, error) {
	return document(r.t, r.text), strconv.Itoa(r.version), r.err
}

func (r *registry) PatchCluster(_ context.Context, patch map[string]any, version string, dryRun bool) error {
	if r.before != nil {
		r.before()
	}
	if r.err != nil {
		return r.err
	}
	if version != strconv.Itoa(r.version) {
		return &httpapi.ProblemError{Status: 412, Kind: "version", Detail: "the cluster has another version"}
	}
	if dryRun {
		r.dryRuns++
		return nil
	}
	next := document(r.t, r.text)
	maps.Copy(next, patch)
	text, err := json.Marshal(next)
	r.text, r.version, r.patches = string(text), r.version+1, r.patches+1
	return err
}

func (r *registry) Hosts(context.Context) ([]httpapi.Host, error) {
	f, err := readFile(document(r.t, r.text))
	if err != nil {
		r.t.Fatal(err)
	}
	var hosts []httpapi.Host
	for _, rack := range f.racks {
		for _, h := range rack.hosts {
			host := httpapi.Host{Host: h.name, Rack: rack.name, Draining: r.draining[h.name]}
			if speed := r.speeds[h.name]; speed > 0 {
				host.Egress = &httpapi.Link{Speed: &speed}
			}
			hosts = append(hosts, host)
		}
	}
	return hosts, r.err
}

func (r *registry) ReportHosts(_ context.Context, from, until string, hosts []httpapi.HostReport) error {
	if from >= until {
		r.t.Errorf("window from %s until %s", from, until)
	}
	if r.reportErr != nil {
		return r.reportErr
	}
	for _, host := range hosts {
		r.draining[host.Host] = host.Draining
	}
	return r.err
}

// recorder stores the objects of events too.
type recorder struct {
	*events.FakeRecorder
	regarding []*corev1.ObjectReference
}

func (r *recorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, arguments ...any) {
	r.regarding = append(r.regarding, regarding.(*corev1.ObjectReference))
	r.FakeRecorder.Eventf(regarding, related, kind, reason, action, note, arguments...)
}

// scene is a syncer of some nodes.
type scene struct {
	*Syncer
	registry *registry
	recorder *recorder
	nodes    []*corev1.Node
	now      time.Time
}

func newScene(t *testing.T, mode Mode, text string, nodes ...*corev1.Node) *scene {
	t.Helper()
	s := &scene{
		registry: &registry{t: t, text: text, draining: map[string]bool{}, speeds: map[string]float64{}},
		recorder: &recorder{FakeRecorder: events.NewFakeRecorder(100)}, nodes: nodes, now: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
	}
	syncer, err := NewSyncer(Options{
		Mode: mode, Settings: DefaultSettings(), Service: s.registry, Namespace: "leeward", Name: "leeward-sync", Interval: time.Minute,
		Nodes: func() ([]*corev1.Node, bool) { return s.nodes, true }, Events: s.recorder,
		Metrics: NewMetrics(metrics.NewKubeRegistry()), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Syncer = syncer
	return s
}

func (s *scene) step() []string { return kinds(s.Step(context.Background(), s.now)) }

func (s *scene) events() []string {
	var lines []string
	for {
		select {
		case line := <-s.recorder.Events:
			lines = append(lines, line)
		default:
			return lines
		}
	}
}

func (s *scene) outcome(t *testing.T, outcome string) float64 {
	t.Helper()
	value, err := testutil.GetCounterMetricValue(s.options.Metrics.steps.WithLabelValues(outcome))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func (s *scene) remaining(t *testing.T, kind Kind) float64 {
	t.Helper()
	value, err := testutil.GetGaugeMetricValue(s.options.Metrics.differences.WithLabelValues(string(kind)))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

const one = `{"racks": [{"name": "a", "hosts": [{"name": "n1", "labels": {"managed-by": "kubernetes"}}]}], "nic": "1Gbps", "rack_link": "2Gbps"}`

func TestAStepBringsTheServiceIntoStepAndTheNextOneWritesNothing(t *testing.T) {
	s := newScene(t, Apply, one, node("n1", "a"), node("n2", "b"))
	s.nodes[1].Spec.Unschedulable = true
	s.registry.speeds["n1"] = 10e9
	if remaining := s.step(); len(remaining) != 0 {
		t.Errorf("%v", remaining)
	}
	if !s.registry.draining["n2"] || s.registry.patches != 1 || !strings.Contains(s.registry.text, `"nic":"10Gbps"`) {
		t.Errorf("%+v", s.registry)
	}
	s.step()
	if s.registry.patches != 1 || s.outcome(t, changed) != 1 || s.outcome(t, inStep) != 1 {
		t.Errorf("%d patches", s.registry.patches)
	}
	s.nodes[1].Spec.Unschedulable = false
	s.step()
	if s.registry.draining["n2"] {
		t.Error("a node that is not cordoned any more drains")
	}
}

func TestACordonThatTheServiceDoesNotAcceptFailsTheStepAndStays(t *testing.T) {
	s := newScene(t, Apply, one, node("n1", "a"))
	s.nodes[0].Spec.Unschedulable = true
	s.registry.reportErr = errors.New("the service knows later states")
	if remaining := s.step(); !slices.Equal(remaining, []string{"drain n1"}) || s.outcome(t, failed) != 1 {
		t.Errorf("%v", remaining)
	}
	s.registry.reportErr = nil
	if remaining := s.step(); len(remaining) != 0 || !s.registry.draining["n1"] {
		t.Errorf("%v", remaining)
	}
}

func TestTheModeReportShowsDriftAndChangesNothing(t *testing.T) {
	s := newScene(t, Report, one, node("n1", "a"), node("n2", "b"))
	s.nodes[0].Spec.Unschedulable = true
	before := s.registry.text
	if remaining := s.step(); !slices.Equal(remaining, []string{"add_host n2", "drain n1"}) {
		t.Errorf("%v", remaining)
	}
	if s.registry.text != before || s.registry.draining["n1"] {
		t.Error("the service changed")
	}
	if s.registry.dryRuns != 1 {
		t.Errorf("%d dry runs", s.registry.dryRuns)
	}
	if s.remaining(t, AddHost) != 1 || s.remaining(t, Drain) != 1 || s.outcome(t, drifts) != 1 {
		t.Error("the metrics do not show the drift")
	}
}

func TestADifferenceHasOneEventAndOneMetricUntilItIsGone(t *testing.T) {
	s := newScene(t, Apply, one, node("n1", "a"), node("n2", ""))
	for range 3 {
		s.step()
	}
	lines := s.events()
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "Warning LeewardNoRackLabel n2: the node has none of the labels leeward.dev/rack") {
		t.Errorf("%q", lines)
	}
	if s.remaining(t, NoRack) != 1 {
		t.Error("no metric")
	}
	s.nodes[1] = node("n2", "a")
	s.step()
	if s.remaining(t, NoRack) != 0 || len(s.events()) != 0 {
		t.Error("the finding stays")
	}
	s.nodes[1] = node("n2", "")
	s.step()
	if len(s.events()) != 1 {
		t.Error("a finding that is back has no event")
	}
}

func TestManyHostsWithoutANodeHaveOneEventTogether(t *testing.T) {
	s := newScene(t, Apply, `{"racks": 2, "hosts_per_rack": 10, "nic": "1Gbps", "rack_link": "2Gbps"}`, node("r0h0", "r0"))
	s.step()
	lines := s.events()
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "Warning LeewardHostWithoutNode r0h1: a host in rack r0 that is no node") ||
		!strings.HasSuffix(lines[0], "; and 18 more of this kind") {
		t.Errorf("%q", lines)
	}
	if object := s.recorder.regarding[0]; object.Kind != "Lease" || object.Namespace != "leeward" || object.Name != "leeward-sync" {
		t.Errorf("the event is on %+v", object)
	}
	if s.remaining(t, NoNode) != 19 {
		t.Error("the metric does not count all")
	}
	s.step()
	if lines := s.events(); len(lines) != 0 {
		t.Errorf("%q", lines)
	}
}

func TestAnotherVersionMeanwhileIsAConflictAndTheNextStepApplies(t *testing.T) {
	s := newScene(t, Apply, one, node("n1", "a"), node("n2", "b"))
	s.registry.before = func() { s.registry.version++ }
	if remaining := s.step(); !slices.Equal(remaining, []string{"add_host n2"}) || s.outcome(t, conflict) != 1 {
		t.Errorf("%v", remaining)
	}
	s.registry.before = nil
	if remaining := s.step(); len(remaining) != 0 || s.outcome(t, changed) != 1 {
		t.Errorf("%v", remaining)
	}
}

func TestAServiceThatIsAwayLeavesTheShownDifferences(t *testing.T) {
	s := newScene(t, Apply, one, node("n1", "a"), node("n2", ""))
	s.step()
	s.registry.err = errors.New("the service is away")
	if remaining := s.Step(context.Background(), s.now); remaining != nil {
		t.Errorf("%v", remaining)
	}
	if s.remaining(t, NoRack) != 1 || s.outcome(t, failed) != 1 {
		t.Error("the metrics say that all is well")
	}
}

func TestAFileThatDoesNotFitTheHostsIsNotWritten(t *testing.T) {
	f, err := readFile(document(t, compact))
	if err != nil {
		t.Fatal(err)
	}
	for name, hosts := range map[string][]httpapi.Host{
		"fewer":        {{Host: "r0h0", Rack: "r0"}},
		"other names":  {{Host: "r0h0", Rack: "r0"}, {Host: "r1h1", Rack: "r1"}},
		"another rack": {{Host: "r0h0", Rack: "r0"}, {Host: "r1h0", Rack: "r0"}},
	} {
		if err := f.check(hosts); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.check([]httpapi.Host{{Host: "r1h0", Rack: "r1"}, {Host: "r0h0", Rack: "r0"}}); err != nil {
		t.Error(err)
	}
}

func TestInvalidOptionsAreErrors(t *testing.T) {
	for _, settings := range []Settings{{NIC: -1}, {RackLink: -1}, {MostRemoved: 2}} {
		if _, err := NewSyncer(Options{Settings: settings, Interval: time.Minute}); err == nil {
			t.Errorf("%+v", settings)
		}
	}
	if _, err := NewSyncer(Options{Interval: time.Millisecond}); err == nil {
		t.Error("an interval of a millisecond")
	}
	if _, err := ParseMode("on"); err == nil {
		t.Error("on is a mode")
	}
}
