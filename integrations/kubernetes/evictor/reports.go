package evictor

import (
	"context"
	"errors"
	"fmt"

	"leeward.dev/kubernetes/httpapi"
)

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

// reference returns the name under which the scheduler's reports know a pod.
func (r *Record) reference() string { return r.Namespace + "/" + r.Name + "/" + r.UID }

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
