// Package integration tests the programs of this folder and the Helm chart on a real control plane: 1,000 nodes in 25 racks, and 200
// nodes with the option -short, which also leaves out the longest tests.
package integration

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"leeward.dev/kubernetes/arguments"
	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/internal/fake"
	"leeward.dev/kubernetes/networkload"
	"leeward.dev/kubernetes/scheduler/controlplane"
	"leeward.dev/kubernetes/snapshot"
)

const (
	racks = 25
	// podsOfNode is the number of pods that a node takes.
	podsOfNode = 110
)

// rackSize is the number of nodes in a rack.
var rackSize = 40

// plane is the control plane of all tests. Each test has its own service, scheduler and pods.
var plane *controlplane.ControlPlane

// workspace is a folder of all tests: the audit log of the API server, and built programs.
var workspace string

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		rackSize = 8
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var err error
	if workspace, err = os.MkdirTemp("", "leeward-controlplane-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(workspace)
	// Groups of pods are an alpha feature; pods without a group are scheduled as without it.
	gates := map[string]bool{"GenericWorkload": true, "GangScheduling": true}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return 1, err
	}
	policy := filepath.Join(workspace, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return 1, err
	}
	if plane, err = controlplane.Start(ctx, workspace, "--runtime-config=scheduling.k8s.io/v1alpha2=true",
		"--audit-policy-file="+policy, "--audit-log-path="+auditLog()); err != nil {
		return 1, err
	}
	defer plane.Stop()
	if err := plane.AddNodes(ctx, fake.Tree(0, racks, rackSize).RackOf(), podsOfNode); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// scene is a service beside the control plane, and the pods of a test.
type scene struct {
	t        *testing.T
	service  *fake.Controller
	args     *networkload.Args
	bindings *controlplane.Bindings
	rackOf   map[string]string
	pods     int
	// nodesToScore is the percentage of nodes that the scheduler scores, 0 for its own choice.
	nodesToScore int32
}

// newScene starts a service whose links report at an interval; zero stands for a service without reports. The network is as
// change makes it. As the service of this repository does, it sends the last windows of links.
func newScene(t *testing.T, reports time.Duration, change func(*fake.Network)) *scene {
	t.Helper()
	network := fake.Tree(0, racks, rackSize)
	change(network)
	service := fake.NewController(network)
	service.Windows = true
	address, err := service.Serve(t.Context(), reports)
	if err != nil {
		t.Fatal(err)
	}
	s := newSceneAt(t, address)
	s.service = service
	return s
}

// newSceneAt returns a scene with a service at an address.
func newSceneAt(t *testing.T, address string) *scene {
	t.Helper()
	s := &scene{t: t, rackOf: fake.Tree(0, racks, rackSize).RackOf(), args: &networkload.Args{Service: arguments.Service{
		Controllers: []string{address},
		Deadline:    metav1.Duration{Duration: 5 * time.Second}, MaxAge: metav1.Duration{Duration: 20 * time.Second},
	}}}
	var err error
	if s.bindings, err = plane.WatchBindings(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.DeletePods(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// start starts a scheduler with the plugin, or as it is without arguments. The test stops it, or its end does.
func (s *scene) start(args *networkload.Args) (stop func()) {
	s.t.Helper()
	end, err := plane.StartScheduler(s.t.Context(), controlplane.Scheduler{
		NetworkLoad: args, NodesToScore: s.nodesToScore, BeforeFirst: func(context.Context) {
			if args != nil {
				awaitSnapshot(s.t)
			}
		},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	stop = sync.OnceFunc(end)
	s.t.Cleanup(stop)
	return stop
}

// awaitSnapshot waits until the plugin NetworkLoad has a snapshot, or until a request for one has failed.
func awaitSnapshot(t *testing.T) {
	t.Helper()
	eventually(t, "no snapshot and no failed request", func() bool {
		failures := 0.0
		for _, failure := range snapshot.Failures {
			failures += metric(t, "leeward_snapshot_failures_total", string(failure))
		}
		return failures+metric(t, "leeward_snapshots_total", "whole") > 0
	})
}

// place adds pods with a peak rate out of them, and waits until all are bound.
func (s *scene) place(name string, count int, egress string) {
	s.t.Helper()
	annotations := map[string]string{demand.PeakEgress: egress}
	if err := plane.AddPods(s.t.Context(), name, count, annotations); err != nil {
		s.t.Fatal(err)
	}
	s.pods += count
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	if err := s.bindings.Wait(ctx, s.pods); err != nil {
		s.t.Fatal(err)
	}
}

// inRacks returns the number of pods in each rack.
func (s *scene) inRacks() map[string]int {
	count := map[string]int{}
	for _, node := range s.bindings.Nodes() {
		count[s.rackOf[node]]++
	}
	return count
}

// events returns the texts of the events with a reason about objects whose names begin with a prefix.
func (s *scene) events(reason, prefix string) []string {
	s.t.Helper()
	return eventsOf(s.t, reason, prefix)
}

func eventsOf(t *testing.T, reason, prefix string) []string {
	t.Helper()
	list, err := plane.Client.EventsV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	for i := range list.Items {
		if event := &list.Items[i]; event.Reason == reason && strings.HasPrefix(event.Regarding.Name, prefix) {
			notes = append(notes, event.Note)
		}
	}
	return notes
}

// metric returns the value of a metric of the scheduler in this process whose label has a value, or the only one if it is empty.
func metric(t *testing.T, name, label string) float64 {
	t.Helper()
	return metricIn(t, legacyregistry.DefaultGatherer, name, label)
}

func metricIn(t *testing.T, registry metrics.Gatherer, name, label string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, each := range family.GetMetric() {
			if label == "" || each.GetLabel()[0].GetValue() == label {
				return each.GetCounter().GetValue() + each.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// says returns an answer of a service: a status and a text.
func says(status int, text string) func(http.ResponseWriter, *http.Request) bool {
	return func(writer http.ResponseWriter, _ *http.Request) bool {
		writer.WriteHeader(status)
		_, _ = io.WriteString(writer, text)
		return true
	}
}

// hangs is the answer of a service that never comes.
func hangs(_ http.ResponseWriter, request *http.Request) bool {
	<-request.Context().Done()
	return true
}

// breaks ends the connection, as a service that goes away.
func breaks(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }

// many returns a number of pods, fewer with the option -short.
func many(count int) int {
	if testing.Short() {
		return count / 4
	}
	return count
}

// beyondShort leaves a test out with the option -short.
func beyondShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out by -short")
	}
}

// onlyWithShort leaves a case out with the option -short, unless it is the one that stands for all.
func onlyWithShort(t *testing.T, name, only string) {
	t.Helper()
	if name != only {
		beyondShort(t)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(50 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("after 30 s: %s", what)
}
