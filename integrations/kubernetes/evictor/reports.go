package evictor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"leeward.dev/kubernetes/httpapi"
)

// reportDeadline is the time for all requests to the service about one eviction.
const reportDeadline = 5 * time.Second

// Service is the part of the service that learns of evictions.
type Service interface {
	// DecisionsOf returns the decisions about a thing.
	DecisionsOf(ctx context.Context, ref string) ([]httpapi.Decision, error)
	// Release ends a decision, and returns false if the service does not know it.
	Release(ctx context.Context, id string) (bool, error)
	// Expect commits work that will come, and returns the decision.
	Expect(ctx context.Context, expectation httpapi.Expectation) (string, error)
}

var _ Service = (*httpapi.Client)(nil)

// reference returns the name under which the scheduler's reports know the pod.
func (r *Record) reference() string { return referenceOf(r.Namespace, r.Name, r.UID) }

// referenceOf returns the name under which the scheduler's reports know a pod.
func referenceOf(namespace, name, uid string) string { return namespace + "/" + name + "/" + uid }

// reportEviction tells the service that a pod leaves: the decision that placed it ends, so its traffic counts as leaving,
// and its replacement counts on a node of the target. It returns the decision that stands for the replacement.
func reportEviction(ctx context.Context, to Service, record *Record, node string, settings Settings) (string, error) {
	var problems []error
	decisions, err := to.DecisionsOf(ctx, record.reference())
	if err != nil {
		problems = append(problems, err)
	}
	for _, decision := range decisions {
		if decision.Released != nil {
			continue
		}
		if _, err := to.Release(ctx, decision.ID); err != nil {
			problems = append(problems, err)
		}
	}
	id, err := to.Expect(ctx, httpapi.Expectation{
		Ref: "replacement of " + record.reference(), Key: "leeward-evictor " + record.UID, Host: node,
		Egress: record.Rates[out], Ingress: record.Rates[in], Lasts: fmt.Sprintf("%ds", int64(settings.Lasts.Seconds())),
	})
	return id, errors.Join(append(problems, err)...)
}

// reportLanding tells the service that a replacement has a node, where the scheduler's reports count it.
func reportLanding(ctx context.Context, to Service, record *Record) error {
	_, err := to.Release(ctx, record.Expectation)
	return err
}

func (r *Runner) reportEviction(ctx context.Context, record *Record, node string) {
	if r.options.Service == nil || record.Move != "" {
		// The service counts its own moves from their advice on.
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reportDeadline)
	defer cancel()
	id, err := reportEviction(ctx, r.options.Service, record, node, r.options.Settings)
	record.Expectation = id
	r.reported(err)
}

// reportLandings reports the replacements that have a node.
func (r *Runner) reportLandings(ctx context.Context, records []Record) {
	if r.options.Service == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reportDeadline)
	defer cancel()
	for i := range records {
		record := &records[i]
		if record.Landed == "" || record.Expectation == "" {
			continue
		}
		err := reportLanding(ctx, r.options.Service, record)
		r.reported(err)
		if err == nil {
			record.Expectation = ""
		}
	}
}

func (r *Runner) reported(err error) {
	outcome := "accepted"
	if err != nil {
		outcome = "failed"
		r.options.Log.Warn("the service did not learn of an eviction", "problem", err.Error())
	}
	r.options.Metrics.reports.WithLabelValues(outcome).Inc()
}
