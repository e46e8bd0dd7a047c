package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"
)

// States of a move.
const (
	Advised = "advised"
	Taken   = "taken"
	Expired = "expired"
)

// Move is a move that the service advises, in the form of GET /v1/migrations.
type Move struct {
	ID       string  `json:"id"`
	Time     string  `json:"time"`
	Decision string  `json:"decision"`
	Task     string  `json:"task"`
	Job      *string `json:"job"`
	From     string  `json:"from"`
	To       string  `json:"to"`
	Link     string  `json:"link"`
	State    string  `json:"state"`
	Executor *string `json:"executor"`
	Reason   *string `json:"reason"`
	Expires  *string `json:"expires"`
}

// Moves is the part of a service that advises moves: GET /v1/migrations, POST /v1/migrations/{id} and GET /v1/decisions/{id}. It
// is an [http.Handler] with the states and the problems of the service.
type Moves struct {
	mutex sync.Mutex
	moves []Move
	// references has the reference of each move.
	references []string
	// answers are the accepted answers.
	answers []string
}

// Advise advises a move of the thing with a reference, and returns its id. The service does not know the decision of a move
// without a reference.
func (m *Moves) Advise(reference, from, to, link string) string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	id := fmt.Sprint(len(m.moves))
	m.moves = append(m.moves, Move{
		ID: id, Time: Start.Format(time.RFC3339), Decision: id, Task: "pod", From: from, To: to, Link: link, State: Advised,
	})
	m.references = append(m.references, reference)
	return id
}

// Expire ends a move without an answer in time.
func (m *Moves) Expire(id string) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if move := m.find(id); isOpen(move.State) {
		move.State, move.Executor = Expired, nil
	}
}

// Move returns a move as it is now.
func (m *Moves) Move(id string) Move {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return *m.find(id)
}

// Answers returns the accepted answers, each with the id of its move.
func (m *Moves) Answers() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.Clone(m.answers)
}

func (m *Moves) find(id string) *Move {
	for i := range m.moves {
		if m.moves[i].ID == id {
			return &m.moves[i]
		}
	}
	return nil
}

func isOpen(state string) bool { return state == Advised || state == Taken }

// ServeHTTP answers requests.
func (m *Moves) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/migrations", m.list)
	mux.HandleFunc("GET /v1/decisions/{id}", m.decision)
	mux.HandleFunc("POST /v1/migrations/{id}", m.answer)
	mux.ServeHTTP(writer, request)
}

// list answers GET /v1/migrations, the latest first.
func (m *Moves) list(writer http.ResponseWriter, request *http.Request) {
	items := []Move{}
	for _, move := range slices.Backward(m.moves) {
		if state := request.URL.Query().Get("state"); state == "" || move.State == state {
			items = append(items, move)
		}
	}
	send(writer, http.StatusOK, map[string]any{"items": items, "next": nil})
}

// decision answers GET /v1/decisions/{id}. The decision of a move has its id.
func (m *Moves) decision(writer http.ResponseWriter, request *http.Request) {
	index := slices.IndexFunc(m.moves, func(move Move) bool { return move.ID == request.PathValue("id") })
	if index < 0 || m.references[index] == "" {
		reject(writer, http.StatusNotFound, "not-found", "", "no such decision")
		return
	}
	send(writer, http.StatusOK, map[string]any{
		"id": m.moves[index].ID, "hosts": []string{m.moves[index].To}, "ref": m.references[index], "released": nil,
	})
}

// answer answers POST /v1/migrations/{id}.
func (m *Moves) answer(writer http.ResponseWriter, request *http.Request) {
	var body struct {
		Answer   string  `json:"answer"`
		Executor *string `json:"executor"`
		Reason   *string `json:"reason"`
	}
	decoder := json.NewDecoder(request.Body)
	decoder.DisallowUnknownFields()
	move := m.find(request.PathValue("id"))
	switch err := decoder.Decode(&body); {
	case move == nil:
		reject(writer, http.StatusNotFound, "not-found", "", "no such move")
		return
	case err != nil || !slices.Contains([]string{Taken, "done", "refused", "failed"}, body.Answer),
		body.Answer == Taken && (body.Executor == nil || *body.Executor == ""):
		reject(writer, http.StatusUnprocessableEntity, "invalid", "answer", "no answer")
		return
	case move.State == Taken && body.Answer == Taken && *move.Executor != *body.Executor, !isOpen(move.State) && move.State != body.Answer:
		reject(writer, http.StatusConflict, "answered", "", "the move is already "+move.State)
		return
	}
	if move.State != body.Answer {
		move.State, move.Executor, move.Reason = body.Answer, body.Executor, body.Reason
		m.answers = append(m.answers, move.ID+" "+body.Answer)
	}
	send(writer, http.StatusOK, move)
}
