package evictor

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/snapshot"
)

// Advisor is the part of the service that advises moves.
type Advisor interface {
	// Migrations returns the moves in a state.
	Migrations(ctx context.Context, state string) ([]httpapi.Migration, error)
	// Decision returns a decision.
	Decision(ctx context.Context, id string) (httpapi.Decision, error)
	// AnswerMigration answers a move, with the name of the executor or with a reason.
	AnswerMigration(ctx context.Context, id string, answer httpapi.Answer, text string) error
}

var _ Advisor = (*httpapi.Client)(nil)

// adviceInterval is the time between two requests for moves. It is short beside the five minutes after which a move expires.
const adviceInterval = 5 * time.Second

// mostReason and mostName are the largest numbers of characters of a reason and of the executor's name for the service.
const (
	mostReason = 400
	mostName   = 200
)

// executor carries out moves of the service. A move is taken before its record is written, and its record is written before the
// eviction. So a taken move without a record was not carried out, and the next leader continues with it.
type executor struct {
	advisor Advisor
	// name is that of all replicas of the evictor: the next leader continues with the moves that the last one has taken.
	name    string
	metrics *Metrics
	log     *slog.Logger
	// references are the names of things in the words of their clients, by decision, for the moves of the last round.
	references map[string]string
	// known are the moves of the last round whose outcome the metrics have.
	known map[string]bool
	// waits is true if a move may wait for its outcome.
	waits bool
}

func newExecutor(options *Options) *executor {
	name := fmt.Sprintf("leeward-evictor %s/%s", options.Namespace, options.Name)
	return &executor{
		advisor: options.Advisor, name: name[:min(len(name), mostName)], metrics: options.Metrics, log: options.Log, waits: true,
	}
}

// open requests the moves that wait for this executor, the oldest first.
func (e *executor) open(ctx context.Context) ([]httpapi.Migration, error) {
	advised, err := e.advisor.Migrations(ctx, "advised")
	if err != nil {
		return nil, err
	}
	taken, err := e.advisor.Migrations(ctx, "taken")
	if err != nil {
		return nil, err
	}
	moves := slices.Concat(advised, slices.DeleteFunc(taken, func(m httpapi.Migration) bool {
		return m.Executor == nil || *m.Executor != e.name
	}))
	// Ids are rising numbers. A move that was taken between the two requests is in both lists.
	slices.SortStableFunc(moves, func(a, b httpapi.Migration) int {
		return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	return slices.CompactFunc(moves, func(a, b httpapi.Migration) bool { return a.ID == b.ID }), nil
}

// withoutRecord returns the moves that were not carried out yet.
func withoutRecord(moves []httpapi.Migration, records []Record) []httpapi.Migration {
	carriedOut := map[string]bool{}
	for _, record := range records {
		carriedOut[record.Move] = true
	}
	return slices.DeleteFunc(moves, func(move httpapi.Migration) bool { return carriedOut[move.ID] })
}

// advice returns the moves of pods of this cluster. Moves of other things are left to other executors.
func (e *executor) advice(ctx context.Context, moves []httpapi.Migration, request *Request, rackOf func(string) string) ([]Advice, error) {
	byUID := make(map[string]*Pod, len(request.Pods))
	for i := range request.Pods {
		byUID[request.Pods[i].UID] = &request.Pods[i]
	}
	references := map[string]string{}
	var result []Advice
	for _, move := range moves {
		reference, ok := e.references[move.Decision]
		if !ok {
			decision, err := e.advisor.Decision(ctx, move.Decision)
			if err != nil && !httpapi.IsKind(err, "not-found") {
				return nil, err
			}
			if decision.Ref != nil {
				reference = *decision.Ref
			}
		}
		references[move.Decision] = reference
		pod := byUID[reference[strings.LastIndexByte(reference, '/')+1:]]
		if pod == nil || referenceOf(pod.Namespace, pod.Name, pod.UID) != reference {
			continue
		}
		result = append(result, Advice{
			Move: move.ID, Pod: pod, Link: move.Link, From: move.From, Target: rackOf(move.To),
		})
	}
	e.references = references
	return result, nil
}

// firstTime returns true once for a move, as long as rounds have it.
func (e *executor) firstTime(round *Round) func(move string) bool {
	before := e.known
	e.known = map[string]bool{}
	for _, stay := range round.Stays {
		e.known[stay.Move] = true
	}
	for i := range round.Evictions {
		e.known[round.Evictions[i].Move] = true
	}
	return func(move string) bool { return !before[move] }
}

// answer answers a move. It returns false if the answer must be sent again.
func (e *executor) answer(ctx context.Context, move string, answer httpapi.Answer, text string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, reportDeadline)
	defer cancel()
	err := e.advisor.AnswerMigration(ctx, move, answer, snapshot.Excerpt(text, "", mostReason))
	outcome := string(answer)
	isClosed := httpapi.IsKind(err, "answered") || httpapi.IsKind(err, "not-found")
	switch {
	case isClosed:
		outcome = moveClosed
	case err != nil:
		outcome = moveUnanswered
	}
	e.metrics.moves.WithLabelValues(outcome).Inc()
	return err == nil || isClosed, err
}

// take takes a move. It returns false if the move must not be carried out now: another executor has it, or the service does not
// answer.
func (e *executor) take(ctx context.Context, move string) bool {
	if _, err := e.answer(ctx, move, httpapi.Taken, e.name); err != nil {
		e.log.Warn("a move is not carried out", "move", move, "problem", err.Error())
		return false
	}
	e.waits = true
	return true
}

// giveUp answers a move that is not carried out. If the service does not answer, the next round tries again.
func (e *executor) giveUp(ctx context.Context, move string, answer httpapi.Answer, reason string) {
	if _, err := e.answer(ctx, move, answer, reason); err != nil {
		e.log.Warn("the service did not learn that a pod stays", "move", move, "reason", reason, "problem", err.Error())
	}
}

// answerTo returns the answer to a move whose eviction was rejected.
func answerTo(outcome string) httpapi.Answer {
	if outcome == budgetSpent {
		return httpapi.Refused
	}
	return httpapi.Failed
}

// finish answers the moves whose replacements have a node, and returns the records without them.
func (e *executor) finish(ctx context.Context, records []Record) []Record {
	e.waits = false
	for i := range records {
		record := &records[i]
		if record.Move == "" {
			continue
		}
		e.waits = true
		if record.Landed == "" {
			continue
		}
		answer, text := httpapi.Done, ""
		if record.Landed == record.Source {
			answer, text = httpapi.Failed, "the scheduler placed the replacement in rack "+record.Source+" again"
		}
		if ok, _ := e.answer(ctx, record.Move, answer, text); ok {
			record.Move = ""
		}
	}
	return records
}
