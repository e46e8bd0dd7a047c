package trafficmatrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"leeward.dev/kubernetes/snapshot"
)

// answers is a controller that gives prepared answers, and records the requests.
type answers struct {
	requests []string
	answer   []string
	fails    error
}

func (a *answers) call(_ context.Context, method, path string, body []byte) ([]byte, error) {
	a.requests = append(a.requests, method+" "+path+" "+string(body))
	if a.fails != nil {
		return nil, a.fails
	}
	if len(a.answer) == 0 {
		return []byte("{}"), nil
	}
	next := a.answer[0]
	a.answer = a.answer[1:]
	return []byte(next), nil
}

func askOf(t *testing.T, count int32) *ask {
	t.Helper()
	matrix := ringOf("ring", count)
	traffic, err := matrix.Spec.App()
	if err != nil {
		t.Fatal(err)
	}
	of := &ask{name: types.NamespacedName{Namespace: "ml", Name: "ring"}, run: "run", traffic: traffic}
	for index := range int(count) {
		of.pods = append(of.pods, podOf("ring", index))
	}
	return of
}

const twoHosts = `{"results": [{"status": 201, "decision": {"id": "d1", "hosts": ["h0", "h1"]}}]}`

func TestTheRequestHasTheTasksThePairsAndTheirBytes(t *testing.T) {
	service := &answers{answer: []string{twoHosts}}
	c := &controller{call: service.call, hold: "1m0s"}
	result, err := c.place(t.Context(), askOf(t, 2), []string{"h7"})
	if err != nil || result.ID != "d1" || fmt.Sprint(result.Hosts) != "[h0 h1]" {
		t.Fatalf("%+v, %v", result, err)
	}
	method, body, _ := strings.Cut(service.requests[0], " {")
	if method != "POST /v1/place/batch" {
		t.Errorf("%s", method)
	}
	var sent, expected any
	if err := json.Unmarshal([]byte("{"+body), &sent); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"requests": [{"key": "run", "tasks": {
		"app": {"name": "ml/ring",
			"tasks": [{"name": "worker.0", "cpus": "1500m", "memory": "1073741824B"},
				{"name": "worker.1", "cpus": "1500m", "memory": "1073741824B"}],
			"transfers": [{"from": "worker.0", "to": "worker.1", "bytes": "1000000000B"},
				{"from": "worker.1", "to": "worker.0", "bytes": "1000000000B"}]},
		"job": "ml/ring", "exclude": ["h7"], "reserve": "1m0s", "ref": "trafficmatrix ml/ring"}}]}`), &expected); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(sent) != fmt.Sprint(expected) {
		t.Errorf("%v: expected %v", sent, expected)
	}
}

func TestARequestOfAnotherSchedulerForTheSamePodsHasItsAnswer(t *testing.T) {
	service := &answers{answer: []string{
		`{"results": [{"status": 422, "problem": {"type": "urn:leeward:problem:reused", "detail": "the key was used"}}]}`,
		`{"items": [{"id": "d3", "hosts": ["h4", "h5"]}]}`,
	}}
	c := &controller{call: service.call}
	result, err := c.place(t.Context(), askOf(t, 2), nil)
	if err != nil || result.ID != "d3" || !strings.HasPrefix(service.requests[1], "GET /v1/decisions?limit=1&key=run") {
		t.Errorf("%+v, %v, %v", result, err, service.requests)
	}
}

func TestNoAnswerOfTheControllerIsTakenForHostsThatItDoesNotName(t *testing.T) {
	for answer, reason := range map[string]string{
		"":                             "Unavailable",
		"null":                         "Unavailable",
		`{"results": []}`:              "Unavailable",
		`{"results": [{}]}`:            "Unavailable",
		`{"results": [{"status": 2}]}`: "Unavailable",
		`{"results": [{"status": 201, "decision": {"id": "d1", "hosts": ["h0"]}}]}`:                                            "Unavailable",
		`{"results": [{"status": 201, "decision": {"id": "", "hosts": ["h0", "h1"]}}]}`:                                        "Unavailable",
		`{"results": [{"status": 409, "problem": {"type": "urn:leeward:problem:refused", "detail": "no host has room"}}]}`:     "Refused",
		`{"results": [{"status": 422, "problem": {"type": "urn:leeward:problem:invalid", "detail": "no such host: \"h7\""}}]}`: "Rejected",
	} {
		service := &answers{answer: []string{answer}}
		c := &controller{call: service.call}
		if _, err := c.place(t.Context(), askOf(t, 2), nil); err == nil || reasonOf(err) != reason {
			t.Errorf("%s: %v", answer, err)
		}
	}
	service := &answers{fails: errors.New("timeout")}
	c := &controller{call: service.call}
	if _, err := c.place(t.Context(), askOf(t, 2), nil); err == nil || reasonOf(err) != "Unavailable" || isFinal(err) {
		t.Errorf("%v", err)
	}
}

func TestADecisionIsConfirmedOrReplacedByTheNodes(t *testing.T) {
	of := &settlement{ask: *askOf(t, 2), nodes: []string{"h0", "h1"}, decision: "d1", same: true}
	service := &answers{}
	c := &controller{call: service.call}
	if id, err := c.settle(t.Context(), of); id != "d1" || err != nil || service.requests[0] != "POST /v1/decisions/d1/confirm {}" {
		t.Errorf("%s, %v, %v", id, err, service.requests)
	}
	of.same = false
	service.requests, service.answer = nil, []string{strings.Replace(twoHosts, "d1", "d2", 1)}
	id, err := c.settle(t.Context(), of)
	if id != "d2" || err != nil || len(service.requests) != 1 ||
		!strings.HasPrefix(service.requests[0], `POST /v1/commitments/batch {"commitments":[{"hosts":["h0","h1"],"key":"run-nodes","tasks":`) {
		t.Errorf("%s, %v, %v", id, err, service.requests)
	}
}

func TestAConfirmationOfADecisionThatIsGoneBecomesACommitment(t *testing.T) {
	for status, expected := range map[int]string{http.StatusConflict: "d2", http.StatusNotFound: "d2", http.StatusForbidden: "d1"} {
		of := &settlement{ask: *askOf(t, 2), nodes: []string{"h0", "h1"}, decision: "d1", same: true}
		service := &answers{answer: []string{strings.Replace(twoHosts, "d1", "d2", 1)}}
		first := true
		c := &controller{call: func(ctx context.Context, method, path string, body []byte) ([]byte, error) {
			if first {
				first = false
				return nil, &snapshot.RequestError{Failure: snapshot.BadStatus, Status: status}
			}
			return service.call(ctx, method, path, body)
		}}
		if id, err := c.settle(t.Context(), of); id != expected || (err == nil) != (expected == "d2") {
			t.Errorf("status %d: %s, %v", status, id, err)
		}
	}
}

// within returns a client of a service that answers after a time. Its deadline for a snapshot is 100 ms.
func within(t *testing.T, delay time.Duration, answer string) *snapshot.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		time.Sleep(delay)
		_, _ = writer.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	client, err := snapshot.NewClient(snapshot.Settings{Controllers: []string{server.URL}, Deadline: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestAnAppHasTheWaitOfItsPodsAndNotTheDeadlineOfASnapshot(t *testing.T) {
	client := within(t, 300*time.Millisecond, twoHosts)
	c := &controller{call: client.Call, hold: "1m0s"}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if result, err := c.place(ctx, askOf(t, 2), nil); err != nil || result.ID != "d1" {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestOnlyARequestWithoutAnAnswerMayHaveADecision(t *testing.T) {
	client := within(t, 300*time.Millisecond, twoHosts)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := (&controller{call: client.Call, hold: "1m0s"}).place(ctx, askOf(t, 2), nil)
	if err == nil || !isUnanswered(err) || reasonOf(err) != "Unavailable" || !strings.Contains(err.Error(), "no answer within") {
		t.Errorf("%v", err)
	}
	client = within(t, 0, `{"results": [{"status": 409, "problem": {"type": "urn:leeward:problem:refused", "detail": "full"}}]}`)
	_, err = (&controller{call: client.Call, hold: "1m0s"}).place(t.Context(), askOf(t, 2), nil)
	if err == nil || isUnanswered(err) {
		t.Errorf("%v", err)
	}
}

func TestHostsThatAnotherReplicaHasConfirmedAreNotReleased(t *testing.T) {
	for reserved, expected := range map[string]string{`"2026-01-31T12:00:00Z"`: "[d1]", "null": "[]"} {
		service := &answers{answer: []string{`{"items": [{"id": "d1", "hosts": ["h0"], "reserved_until": ` + reserved + `}]}`}}
		w := &worker{
			apps: newScene(t).apps, controller: &controller{call: service.call}, environment: Environment{Now: func() time.Time { return began }},
		}
		w.find(t.Context(), []lookup{{key: "run", held: true}})
		if release := w.apps.due(began).release; fmt.Sprint(release) != expected {
			t.Errorf("%s: released %v", reserved, release)
		}
	}
}
