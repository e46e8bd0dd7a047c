package fake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// Commitment is a placement that a client reported.
type Commitment struct {
	ID, Client, Host, Reference string
	Sequence                    int64
	Egress, Ingress             int64
	Released                    bool
}

// Commitments returns all placements that clients reported, the earliest first.
func (c *Controller) Commitments() []Commitment {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return append([]Commitment(nil), c.commitments...)
}

// Present returns the placements that were not released.
func (c *Controller) Present() []Commitment {
	var present []Commitment
	for _, one := range c.Commitments() {
		if !one.Released {
			present = append(present, one)
		}
	}
	return present
}

// list answers GET /v1/commitments.
func (c *Controller) list(writer http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil {
		limit = 100
	}
	before, err := strconv.Atoi(query.Get("after"))
	if err != nil {
		before = len(c.commitments)
	}
	items, next := []any{}, any(nil)
	for number := before - 1; number >= 0; number-- {
		one := c.commitments[number]
		if one.Released {
			continue
		}
		if len(items) == limit {
			next = strconv.Itoa(number + 1)
			break
		}
		items = append(items, map[string]any{
			"id": one.ID, "client": one.Client, "sequence": one.Sequence, "ref": one.Reference, "released": nil,
		})
	}
	send(writer, http.StatusOK, map[string]any{"items": items, "next": next})
}

// commit answers POST /v1/commitments/batch.
func (c *Controller) commit(writer http.ResponseWriter, request *http.Request) {
	var body struct {
		Commitments []struct {
			Hosts []string
			Tasks struct {
				App struct {
					Tasks []struct {
						Egress, Ingress struct{ Peak string }
					}
				}
				Client   string
				Sequence int64
				Ref      string
			}
		}
	}
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil {
		http.Error(writer, `{"type": "invalid", "detail": "no commitments"}`, http.StatusBadRequest)
		return
	}
	results := []any{}
	for _, item := range body.Commitments {
		one := Commitment{
			ID: strconv.Itoa(len(c.commitments)), Client: item.Tasks.Client, Host: item.Hosts[0],
			Reference: item.Tasks.Ref, Sequence: item.Tasks.Sequence,
			Egress:  bps(item.Tasks.App.Tasks[0].Egress.Peak),
			Ingress: bps(item.Tasks.App.Tasks[0].Ingress.Peak),
		}
		last, known := c.network.Clients[one.Client]
		switch {
		case !c.network.has(one.Host):
			results = append(results, problem(http.StatusUnprocessableEntity, "invalid", "unknown host "+one.Host))
		case known && one.Sequence <= last:
			results = append(results, problem(http.StatusConflict, "sequence", fmt.Sprintf("last sequence: %d", last)))
		default:
			c.commitments = append(c.commitments, one)
			c.network.place(one, 1)
			c.network.Clients[one.Client] = one.Sequence
			results = append(results, map[string]any{
				"status": http.StatusCreated, "decision": map[string]any{"id": one.ID}, "problem": nil,
			})
		}
	}
	send(writer, http.StatusOK, map[string]any{"results": results})
}

// release answers POST /v1/release.
func (c *Controller) release(writer http.ResponseWriter, request *http.Request) {
	var body struct{ Decisions []string }
	if err := json.NewDecoder(request.Body).Decode(&body); err != nil {
		http.Error(writer, `{"type": "invalid", "detail": "no decisions"}`, http.StatusBadRequest)
		return
	}
	results := []any{}
	for _, id := range body.Decisions {
		number, err := strconv.Atoi(id)
		if err != nil || number < 0 || number >= len(c.commitments) {
			results = append(results, problem(http.StatusNotFound, "not-found", "no decision "+id))
			continue
		}
		if one := &c.commitments[number]; !one.Released {
			one.Released = true
			c.network.place(*one, -1)
		}
		results = append(results, map[string]any{
			"status": http.StatusOK, "decision": map[string]any{"id": id}, "problem": nil,
		})
	}
	send(writer, http.StatusOK, map[string]any{"results": results})
}

func problem(status int, kind, detail string) map[string]any {
	return map[string]any{
		"status": status, "decision": nil, "problem": map[string]any{"type": kind, "detail": detail},
	}
}

// bps returns a rate in bit/s. The texts are those of this project's reporter, which has one unit.
func bps(text string) int64 {
	value, err := strconv.ParseInt(strings.TrimSuffix(text, "bps"), 10, 64)
	if err != nil {
		panic(err)
	}
	return value
}

func (n *Network) has(host string) bool {
	_, ok := n.rows[host+":egress"]
	return ok
}

// place adds the rates of a placement to the pending loads of its links, or takes them off.
func (n *Network) place(one Commitment, sign int64) {
	for _, link := range n.path(one.Host) {
		link[0].Pending += sign * one.Egress
		link[1].Pending += sign * one.Ingress
	}
	n.Epoch++
}

// path returns the links between a host and the core, each with that of the other direction.
func (n *Network) path(host string) [][2]*Link {
	links := [][2]*Link{{n.Link(host + ":egress"), n.Link(host + ":ingress")}}
	for _, one := range n.Hosts {
		if one.Name != host {
			continue
		}
		links = append(links, [2]*Link{n.Link(one.Rack + ":uplink"), n.Link(one.Rack + ":downlink")})
		for _, rack := range n.Racks {
			if rack.Name == one.Rack && rack.Pod != "" {
				links = append(links, [2]*Link{n.Link(rack.Pod + ":uplink"), n.Link(rack.Pod + ":downlink")})
			}
		}
	}
	return links
}
