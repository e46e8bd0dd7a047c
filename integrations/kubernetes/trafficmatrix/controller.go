package trafficmatrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/fit"
	"leeward.dev/kubernetes/snapshot"
)

// mostReleases is the largest number of decisions of a release.
const mostReleases = 1_000

// mostDetail is the largest number of characters of a problem in a condition.
const mostDetail = 400

// Call sends a request with a body in JSON to the controller, and returns the body of the answer.
type Call func(ctx context.Context, method, path string, body []byte) ([]byte, error)

// controller asks for hosts, and says which nodes the pods got.
type controller struct {
	call Call
	hold string
}

// problemError is the problem of a request within a batch.
type problemError struct {
	Type   string `json:"type"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// Error returns the detail, cut to a length for conditions and logs.
func (p *problemError) Error() string {
	detail := []rune(p.Detail)
	return string(detail[:min(len(detail), mostDetail)])
}

func (p *problemError) kind() string { return strings.TrimPrefix(p.Type, "urn:leeward:problem:") }

// chosen are the hosts of a decision, in the order of the tasks.
type chosen struct {
	ID    string   `json:"id"`
	Hosts []string `json:"hosts"`
	// ReservedUntil is the end of the hold, nil without one or after the confirmation.
	ReservedUntil *string `json:"reserved_until"`
}

type taskBody struct {
	Name   string `json:"name"`
	CPUs   string `json:"cpus"`
	Memory string `json:"memory"`
}

type transferBody struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Bytes string `json:"bytes"`
}

type appBody struct {
	Name      string         `json:"name"`
	Tasks     []taskBody     `json:"tasks"`
	Transfers []transferBody `json:"transfers"`
}

// tasksBody is the body of POST /v1/place/tasks.
type tasksBody struct {
	App     appBody  `json:"app"`
	Job     string   `json:"job,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
	Reserve string   `json:"reserve,omitempty"`
	Ref     string   `json:"ref"`
}

// bodyOf returns the request for an app with the resources of its pods.
func bodyOf(of *ask) tasksBody {
	body := tasksBody{App: appBody{Name: of.name.String(), Transfers: []transferBody{}}, Ref: "trafficmatrix " + of.name.String()}
	if len(of.name.String()) <= demand.MostName {
		body.Job = of.name.String()
	}
	for i, task := range of.traffic.Tasks {
		wants := fit.Requests(of.pods[i])
		body.App.Tasks = append(body.App.Tasks, taskBody{
			Name: task.Name(), CPUs: fmt.Sprintf("%dm", wants["cpu"]), Memory: fmt.Sprintf("%dB", wants["memory"]),
		})
	}
	for _, pair := range of.traffic.Pairs {
		body.App.Transfers = append(body.App.Transfers, transferBody{
			From: of.traffic.Tasks[pair.From].Name(), To: of.traffic.Tasks[pair.To].Name(), Bytes: fmt.Sprintf("%dB", pair.Bytes),
		})
	}
	return body
}

// place asks for hosts, which are held for a while. Hosts of the list are left out.
func (c *controller) place(ctx context.Context, of *ask, exclude []string) (chosen, error) {
	body := bodyOf(of)
	body.Exclude, body.Reserve = exclude, c.hold
	result, err := c.item(ctx, "/v1/place/batch", "requests", map[string]any{"key": of.run, "tasks": body})
	var problem *problemError
	if errors.As(err, &problem) && problem.kind() == "reused" {
		// A second scheduler that waits for leadership has asked for the same pods, with other nodes left out.
		result, err = c.decided(ctx, of.run)
	}
	if err == nil && len(result.Hosts) != len(of.traffic.Tasks) {
		err = fmt.Errorf("decision %q has %d hosts: expected %d", result.ID, len(result.Hosts), len(of.traffic.Tasks))
	}
	return result, err
}

// decided returns the decision of an earlier request with a key. It is an error if there is none.
func (c *controller) decided(ctx context.Context, key string) (chosen, error) {
	result, err := c.find(ctx, key)
	if err == nil && result.ID == "" {
		err = fmt.Errorf("key %s: its decision is not stored", key)
	}
	return result, err
}

// find returns the decision of a request with a key, without an id if there is none.
func (c *controller) find(ctx context.Context, key string) (chosen, error) {
	answer, err := c.call(ctx, http.MethodGet, "/v1/decisions?limit=1&key="+url.QueryEscape(key), nil)
	if err != nil {
		return chosen{}, err
	}
	var list struct {
		Items []chosen `json:"items"`
	}
	if err := json.Unmarshal(answer, &list); err != nil {
		return chosen{}, fmt.Errorf("list of decisions: %w", err)
	}
	if len(list.Items) == 0 {
		return chosen{}, nil
	}
	return list.Items[0], nil
}

// settle makes a decision count with the nodes of the pods, and returns its id.
func (c *controller) settle(ctx context.Context, of *settlement) (string, error) {
	if of.decision != "" && of.same {
		_, err := c.call(ctx, http.MethodPost, "/v1/decisions/"+url.PathEscape(of.decision)+"/confirm", []byte("{}"))
		if err == nil || !isGone(err) {
			return of.decision, err
		}
	}
	commitment := map[string]any{"key": keyOf(of.run), "hosts": of.nodes, "tasks": bodyOf(&of.ask)}
	result, err := c.item(ctx, "/v1/commitments/batch", "commitments", commitment)
	return result.ID, err
}

// keyOf returns the key of the commitment of a run's nodes.
func keyOf(run string) string { return run + "-nodes" }

// isGone returns true if a decision cannot be confirmed any more: its hold has ended before the last pod was bound, or the service
// does not know it.
func isGone(err error) bool {
	var refused *snapshot.RequestError
	return errors.As(err, &refused) && (refused.Status == http.StatusConflict || refused.Status == http.StatusNotFound)
}

// release ends decisions. A decision that has ended already, or that the controller does not know, is none to end.
func (c *controller) release(ctx context.Context, decisions []string) error {
	for part := range slices.Chunk(decisions, mostReleases) {
		body, err := json.Marshal(map[string]any{"decisions": part})
		if err != nil {
			return err
		}
		if _, err := c.call(ctx, http.MethodPost, "/v1/release", body); err != nil {
			return err
		}
	}
	return nil
}

// item sends a batch of one item, and returns its decision or its problem.
func (c *controller) item(ctx context.Context, path, field string, item map[string]any) (chosen, error) {
	body, err := json.Marshal(map[string]any{field: []any{item}})
	if err != nil {
		return chosen{}, err
	}
	answer, err := c.call(ctx, http.MethodPost, path, body)
	if err != nil {
		return chosen{}, err
	}
	var batch struct {
		Results []struct {
			Status   int           `json:"status"`
			Decision *chosen       `json:"decision"`
			Problem  *problemError `json:"problem"`
		} `json:"results"`
	}
	if err := json.Unmarshal(answer, &batch); err != nil {
		return chosen{}, fmt.Errorf("%s: %w", path, err)
	}
	if len(batch.Results) != 1 {
		return chosen{}, fmt.Errorf("%s: %d results: expected 1", path, len(batch.Results))
	}
	result := batch.Results[0]
	switch {
	case result.Problem != nil:
		result.Problem.Status = result.Status
		return chosen{}, result.Problem
	case result.Decision == nil || result.Decision.ID == "":
		return chosen{}, fmt.Errorf("%s: status %d without a decision", path, result.Status)
	}
	return *result.Decision, nil
}

// reasonOf returns the reason of a condition for an error of the controller.
func reasonOf(err error) string {
	var problem *problemError
	switch {
	case errors.As(err, &problem) && problem.kind() == "refused":
		return "Refused"
	case errors.As(err, &problem):
		return "Rejected"
	}
	return "Unavailable"
}

// isUnanswered returns true if the service may have carried out a request without an answer to it.
func isUnanswered(err error) bool {
	var failed *snapshot.RequestError
	return errors.As(err, &failed) && failed.Status == 0
}

// isFinal returns true if a repeated request has the same error.
func isFinal(err error) bool {
	var problem *problemError
	return errors.As(err, &problem) && problem.Status/100 == 4
}
