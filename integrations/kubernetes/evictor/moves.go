package evictor

import "fmt"

// Moves says who decides which pods leave.
type Moves string

// Sources of decisions.
const (
	// Own decides by the rule of this package.
	Own Moves = "own"
	// Advised carries out the moves that the service advises.
	Advised Moves = "service"
)

// ParseMoves returns the source of a text.
func ParseMoves(text string) (Moves, error) {
	switch moves := Moves(text); moves {
	case Own, Advised:
		return moves, nil
	}
	return "", fmt.Errorf("moves: %q: expected own or service", text)
}

// Advice is a move of a pod that the service advises.
type Advice struct {
	// Move is the id of the move.
	Move string
	Pod  *Pod
	// Link is the hot link, From the node of the pod by the service, and Target the rack of the advised node.
	Link, From, Target string
}

// Accept decides which advised moves are carried out, in their order. It is a pure function, as [Decide] is. The service has
// decided by the loads of the network; the limits here are those of the cluster: budgets, cooldowns, and room in the rack.
func Accept(request Request, advice []Advice) Round {
	d := newDecision(request)
	for i := range advice {
		of := &advice[i]
		if reason := d.accept(of); reason != "" {
			d.round.Stays = append(d.round.Stays, Stay{Pod: of.Pod, Link: of.Link, Reason: reason, Move: of.Move})
		}
	}
	return d.round
}

// accept accepts a move, or returns the reason for which the pod stays.
func (d *decision) accept(of *Advice) Reason {
	if of.Pod.Node != of.From {
		return OtherNode
	}
	if reason := d.limit(of.Pod, d.loads.isDerived(of.Pod.Rack, of.Link)); reason != "" {
		return reason
	}
	if of.Target == "" || of.Target == of.Pod.Rack {
		return NoTarget
	}
	node := d.room.node(of.Target, of.Pod)
	if node == nil {
		return NoTarget
	}
	d.spend(of.Pod, node)
	d.round.Evictions = append(d.round.Evictions, Eviction{
		Pod: of.Pod, Link: of.Link, Target: of.Target, Node: node.Name, Move: of.Move,
	})
	return ""
}
