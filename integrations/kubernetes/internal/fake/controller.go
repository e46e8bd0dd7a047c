package fake

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// Controller serves the snapshots of a network, and counts the placements that clients report. It is an [http.Handler].
type Controller struct {
	// Token is the token that requests must have, if any.
	Token string
	// Answer replaces the next answers, if it is set. It returns false to leave a request to the controller.
	Answer func(writer http.ResponseWriter, request *http.Request) bool
	// Windows is true if the controller has the last windows of links. It else rejects their columns, as earlier versions of
	// the service do.
	Windows bool
	// Alpha is the weight of a report, and ReportInterval the seconds between two of them, as the service says them.
	Alpha, ReportInterval float64

	mutex       sync.Mutex
	network     *Network
	requests    int
	commitments []Commitment
	peaks       []Peak
	unnamed     []Pod
	named       []Pod
}

// NewController returns a controller of a network.
func NewController(network *Network) *Controller {
	return &Controller{network: network, Alpha: 0.2, ReportInterval: 1}
}

// Change changes the network between two requests.
func (c *Controller) Change(change func(*Network)) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	change(c.network)
}

// Replace puts another network into the place of the present one.
func (c *Controller) Replace(network *Network) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.network = network
}

// Intercept sets Answer between two requests; nil removes it.
func (c *Controller) Intercept(answer func(http.ResponseWriter, *http.Request) bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.Answer = answer
}

// Requests returns the number of requests.
func (c *Controller) Requests() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.requests
}

// ServeHTTP answers requests.
func (c *Controller) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	c.mutex.Lock()
	c.requests++
	answer, token := c.Answer, c.Token
	c.mutex.Unlock()
	if answer != nil && answer(writer, request) {
		return
	}
	if token != "" && request.Header.Get("authorization") != "Bearer "+token {
		http.Error(writer, `{"type": "unauthorized"}`, http.StatusUnauthorized)
		return
	}
	answers := map[string]http.HandlerFunc{
		"GET /v1/snapshot": c.snapshot, "GET /v1/commitments": c.locked(c.list),
		"POST /v1/commitments/batch": c.locked(c.commit), "POST /v1/release": c.locked(c.release),
		"GET /v1/status": c.locked(c.status), "GET /v1/peaks": c.locked(c.listPeaks), "POST /v1/pods": c.locked(c.namePods),
	}
	if handler, ok := answers[request.Method+" "+request.URL.Path]; ok {
		handler(writer, request)
		return
	}
	http.NotFound(writer, request)
}

func (c *Controller) locked(handler http.HandlerFunc) http.HandlerFunc {
	return func(writer http.ResponseWriter, request *http.Request) {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		handler(writer, request)
	}
}

// snapshot answers GET /v1/snapshot. A difference comes after its interval.
func (c *Controller) snapshot(writer http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	if interval, err := time.ParseDuration(query.Get("interval")); err == nil {
		select {
		case <-time.After(interval):
		case <-request.Context().Done():
			return
		}
	}
	c.mutex.Lock()
	wantsWindows := strings.Contains(query.Get("links"), "latest_bps")
	if wantsWindows && !c.Windows {
		c.mutex.Unlock()
		reject(writer, http.StatusUnprocessableEntity, "invalid", "links", "`from`: expected columns of link, capacity_bps")
		return
	}
	c.network.Windows = wantsWindows
	body := c.network.Whole
	if since := query.Get("since"); since != "" {
		body = func() []byte { return c.network.Difference(since) }
	}
	text := body()
	c.mutex.Unlock()
	writer.Header().Set("content-type", "application/json")
	_, _ = writer.Write(text)
}

// status answers GET /v1/status.
func (c *Controller) status(writer http.ResponseWriter, _ *http.Request) {
	send(writer, http.StatusOK, map[string]any{"interval_s": c.ReportInterval, "hot_above": 0.75, "ledger": map[string]any{"alpha": c.Alpha}})
}

// reject answers a request with a problem.
func reject(writer http.ResponseWriter, status int, kind, field, detail string) {
	send(writer, status, map[string]any{
		"type": "urn:leeward:problem:" + kind, "status": status, "field": field, "detail": detail,
	})
}

func send(writer http.ResponseWriter, status int, body any) {
	writer.Header().Set("content-type", "application/json")
	writer.WriteHeader(status)
	_, _ = writer.Write(encode(body))
}
