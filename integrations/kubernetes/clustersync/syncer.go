package clustersync

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"leeward.dev/kubernetes/httpapi"
)

// Mode says whether the sync writes.
type Mode string

// Modes.
const (
	// Apply brings the service's cluster into step.
	Apply Mode = "apply"
	// Report shows differences and changes nothing.
	Report Mode = "report"
)

// ParseMode returns the mode of a text.
func ParseMode(text string) (Mode, error) {
	switch mode := Mode(text); mode {
	case Apply, Report:
		return mode, nil
	}
	return "", fmt.Errorf("mode: %q: expected apply or report", text)
}

// Service is the part of the service that has the cluster.
type Service interface {
	Cluster(ctx context.Context) (map[string]any, string, error)
	PatchCluster(ctx context.Context, patch map[string]any, version string, dryRun bool) error
	Hosts(ctx context.Context) ([]httpapi.Host, error)
	ReportHosts(ctx context.Context, from, until string, hosts []httpapi.HostReport) error
}

var _ Service = (*httpapi.Client)(nil)

// Options are the surroundings of a syncer.
type Options struct {
	Mode     Mode
	Settings Settings
	Service  Service
	// Nodes returns the nodes of the cluster, and false while the informer is not in step.
	Nodes func() ([]*corev1.Node, bool)
	// Namespace and Name are those of the sync's Lease. Events about the whole cluster are on it.
	Namespace, Name string
	// Interval is the time between two comparisons. A change of a node leads to one within a second.
	Interval time.Duration
	Events   events.EventRecorder
	Metrics  *Metrics
	Log      *slog.Logger
}

// Syncer brings the service's cluster into step with the nodes.
type Syncer struct {
	options Options
	wake    chan struct{}
	// shown are the differences that have an event.
	shown map[Difference]bool
}

// settling is the time in which changes of nodes are collected: many nodes often come together.
const settling = time.Second

// NewSyncer returns a syncer. It returns an error that names an invalid option.
func NewSyncer(options Options) (*Syncer, error) {
	if err := options.Settings.Check(); err != nil {
		return nil, err
	}
	if options.Interval < settling || options.Interval > time.Hour {
		return nil, fmt.Errorf("interval: %v: expected %v to 1h", options.Interval, settling)
	}
	return &Syncer{options: options, wake: make(chan struct{}, 1), shown: map[Difference]bool{}}, nil
}

// Wake says that a node has changed.
func (s *Syncer) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run compares until the context ends.
func (s *Syncer) Run(ctx context.Context) {
	s.options.Metrics.leader.Set(1)
	defer s.options.Metrics.leader.Set(0)
	for {
		s.Step(ctx, time.Now())
		timer := time.NewTimer(s.options.Interval)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-s.wake:
			timer.Reset(settling)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// Step compares once at a time. It returns the differences that remain.
func (s *Syncer) Step(ctx context.Context, now time.Time) []Difference {
	outcome, remaining, err := s.step(ctx, now)
	s.options.Metrics.steps.WithLabelValues(outcome).Inc()
	if err != nil {
		s.options.Log.Warn("the service's cluster is not in step with the nodes", "outcome", outcome, "problem", err.Error())
	}
	if remaining != nil {
		s.show(remaining)
	}
	return remaining
}

// step returns the outcome and the differences that remain, nil if they are unknown.
func (s *Syncer) step(ctx context.Context, now time.Time) (string, []Difference, error) {
	nodes, synced := s.options.Nodes()
	if !synced {
		return failed, nil, errors.New("the list of nodes is not complete yet")
	}
	s.options.Metrics.nodes.Set(float64(len(nodes)))
	result, version, err := Compare(ctx, s.options.Service, nodes, s.options.Settings)
	if err != nil {
		return failed, nil, err
	}
	remaining := append([]Difference{}, result.Findings...)
	outcome, err := s.apply(ctx, result, version)
	if outcome != inStep && outcome != changed {
		remaining = append(remaining, result.Changes...)
	}
	if err != nil {
		return outcome, remaining, err
	}
	drained, err := s.drain(ctx, nodes, now)
	if err != nil {
		return failed, append(remaining, drained...), err
	}
	if s.options.Mode == Report && len(drained) > 0 {
		outcome, remaining = drifts, append(remaining, drained...)
	}
	return outcome, remaining, nil
}

// apply applies the changes of a plan, or asks whether the service would accept them.
func (s *Syncer) apply(ctx context.Context, result Result, version string) (string, error) {
	if result.Racks == nil {
		return inStep, nil
	}
	dryRun := s.options.Mode == Report
	err := s.options.Service.PatchCluster(ctx, map[string]any{"racks": result.Racks}, version, dryRun)
	switch {
	case httpapi.IsKind(err, "version"):
		return conflict, err
	case err != nil:
		return failed, err
	case dryRun:
		return drifts, nil
	}
	s.applied(result.Changes)
	return changed, nil
}

// Compare plans the changes of the service's cluster, and returns its version.
func Compare(ctx context.Context, from Service, nodes []*corev1.Node, settings Settings) (Result, string, error) {
	document, version, err := from.Cluster(ctx)
	if err != nil {
		return Result{}, "", err
	}
	hosts, err := from.Hosts(ctx)
	if err != nil {
		return Result{}, "", err
	}
	f, err := readFile(document)
	if err != nil {
		return Result{}, "", err
	}
	if err := f.check(hosts); err != nil {
		return Result{}, "", err
	}
	result, err := Plan(document, nodes, speedsOf(hosts), settings)
	return result, version, err
}

// check returns an error unless the file has the hosts of the service. Both may have changed between two requests.
func (f *file) check(hosts []httpapi.Host) error {
	if len(f.places) != len(hosts) {
		return fmt.Errorf("the cluster file has %d hosts, the service %d: the cluster has changed meanwhile", len(f.places), len(hosts))
	}
	for _, h := range hosts {
		present, ok := f.places[h.Host]
		if !ok {
			return fmt.Errorf("host %s: the cluster file does not have it: the cluster has changed meanwhile", h.Host)
		}
		if present.rack.name != h.Rack {
			return fmt.Errorf("host %s: the service has it in rack %q, the cluster file in %q: the cluster has changed meanwhile",
				h.Host, h.Rack, present.rack.name)
		}
	}
	return nil
}

// speedsOf returns the speeds in bit/s that agents report, by host: that of the faster direction.
func speedsOf(hosts []httpapi.Host) map[string]int64 {
	speeds := map[string]int64{}
	for _, host := range hosts {
		for _, link := range []*httpapi.Link{host.Egress, host.Ingress} {
			if link != nil && link.Speed != nil && *link.Speed >= 1 {
				speeds[host.Host] = max(speeds[host.Host], int64(*link.Speed))
			}
		}
	}
	return speeds
}

// Cordons returns the nodes whose cordon differs from the state of their host. The cordon counts, also for a host of the cluster
// file: the scheduler places no pod on a cordoned node, and all pods on another one.
func Cordons(hosts []httpapi.Host, nodes []*corev1.Node) []httpapi.HostReport {
	draining := make(map[string]bool, len(hosts))
	for _, host := range hosts {
		draining[host.Host] = host.Draining
	}
	var reports []httpapi.HostReport
	for _, node := range nodes {
		if present, known := draining[node.Name]; known && present != node.Spec.Unschedulable {
			reports = append(reports, httpapi.HostReport{Host: node.Name, Draining: node.Spec.Unschedulable})
		}
	}
	slices.SortFunc(reports, func(a, b httpapi.HostReport) int { return cmp.Compare(a.Host, b.Host) })
	return reports
}

// drain reports cordons to the service. It returns those that it should have reported.
func (s *Syncer) drain(ctx context.Context, nodes []*corev1.Node, now time.Time) ([]Difference, error) {
	hosts, err := s.options.Service.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	reports := Cordons(hosts, nodes)
	var differences []Difference
	for _, report := range reports {
		differences = append(differences, Difference{Drain, report.Host, fmt.Sprintf("cordoned: %v; the service has the host"+
			" as draining: %v", report.Draining, !report.Draining)})
	}
	if len(reports) == 0 || s.options.Mode == Report {
		return differences, nil
	}
	from, until := now.Add(-time.Second).UTC().Format(time.RFC3339Nano), now.UTC().Format(time.RFC3339Nano)
	if err := s.options.Service.ReportHosts(ctx, from, until, reports); err != nil {
		return differences, err
	}
	s.applied(differences)
	return nil, nil
}

func (s *Syncer) applied(changes []Difference) {
	for _, change := range changes {
		s.options.Metrics.applied.WithLabelValues(string(change.Kind)).Inc()
		s.options.Log.Info("changed the service's cluster", "kind", string(change.Kind), "object", change.Object,
			"change", change.Problem)
	}
}

// show publishes the differences that remain: the metric, and one event on the object of each new one. New ones about no
// node have one event together for each kind.
func (s *Syncer) show(remaining []Difference) {
	counts := map[Kind]int{}
	shown := make(map[Difference]bool, len(remaining))
	others := map[Kind][]Difference{}
	for _, difference := range remaining {
		counts[difference.Kind]++
		shown[difference] = true
		switch {
		case s.shown[difference]:
		case isAboutNode(difference.Kind):
			s.announce(&corev1.ObjectReference{
				Kind: "Node", APIVersion: "v1", Name: difference.Object, UID: types.UID(difference.Object),
			}, difference, 0)
		default:
			others[difference.Kind] = append(others[difference.Kind], difference)
		}
	}
	s.shown = shown
	for _, kind := range append(Changes[:], Findings[:]...) {
		s.options.Metrics.differences.WithLabelValues(string(kind)).Set(float64(counts[kind]))
		if fresh := others[kind]; len(fresh) > 0 {
			// An event is in the namespace of its object, and one about a node or a Namespace is in `default`.
			lease := &corev1.ObjectReference{
				Kind: "Lease", APIVersion: "coordination.k8s.io/v1", Namespace: s.options.Namespace, Name: s.options.Name,
			}
			s.announce(lease, fresh[0], len(fresh)-1)
		}
	}
}

// isAboutNode returns true if the object of a difference is a node.
func isAboutNode(kind Kind) bool {
	switch kind {
	case NoNode, SetLink, LastHost, ManyTags, ManyRemovals, RemoveHost:
		return false
	}
	return true
}

// announce writes the event and the log of a difference, and the number of others of its kind.
func (s *Syncer) announce(regarding *corev1.ObjectReference, difference Difference, others int) {
	note := difference.Problem
	if difference.Object != "" {
		note = difference.Object + ": " + note
	}
	if others > 0 {
		note += fmt.Sprintf("; and %d more of this kind", others)
	}
	s.options.Log.Warn("the service's cluster differs from the nodes", "kind", string(difference.Kind), "problem", note)
	// The API rejects notes of more than 1,024 bytes.
	s.options.Events.Eventf(regarding, nil, corev1.EventTypeWarning, reasonOf(difference.Kind), "Sync", "%.1000s", note)
}

// reasonOf returns the reason of an event: the kind in upper camel case.
func reasonOf(kind Kind) string {
	reason, upper := []rune("Leeward"), true
	for _, letter := range string(kind) {
		switch {
		case letter == '_':
			upper = true
			continue
		case upper:
			letter += 'A' - 'a'
			upper = false
		}
		reason = append(reason, letter)
	}
	return string(reason)
}
