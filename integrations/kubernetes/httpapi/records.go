package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
)

// Link is a part of a link as the service describes it. Rates are in bit/s, and nil stands for unknown.
type Link struct {
	Link        string   `json:"link"`
	Capacity    float64  `json:"capacity_bps"`
	Measured    *float64 `json:"measured_bps"`
	Utilization *float64 `json:"utilization"`
	Pending     float64  `json:"pending_bps"`
	HotSince    *string  `json:"hot_since"`
	// Derived is true if the load is the sum of the hosts below.
	Derived bool `json:"derived"`
	// Speed is the capacity that an agent reported.
	Speed *float64 `json:"speed_bps"`
}

// Host is a part of a host as the service describes it. A mesh has hosts without links.
type Host struct {
	Host     string `json:"host"`
	Rack     string `json:"rack"`
	Draining bool   `json:"draining"`
	Egress   *Link  `json:"egress"`
	Ingress  *Link  `json:"ingress"`
}

// Rack is a part of a rack as the service describes it.
type Rack struct {
	Rack  string `json:"rack"`
	Hosts int    `json:"hosts"`
	Up    *Link  `json:"up"`
	Down  *Link  `json:"down"`
}

// Hotspot is a part of a hot link as the service describes it.
type Hotspot struct {
	Link        string   `json:"link"`
	Since       string   `json:"since"`
	Age         float64  `json:"age_s"`
	Utilization *float64 `json:"utilization"`
	// NoMove is the reason for which the service moves no task off the link.
	NoMove *string `json:"no_move"`
}

// Status is a part of the state of the service.
type Status struct {
	Version  string  `json:"version"`
	Cluster  string  `json:"cluster"`
	Interval float64 `json:"interval_s"`
	// HotAbove is the utilization above which a link is hot, as a share.
	HotAbove float64 `json:"hot_above"`
	Role     string  `json:"role"`
	// Ledger has the estimates of loads; later versions of the service say them.
	Ledger struct {
		Alpha float64 `json:"alpha"`
	} `json:"ledger"`
	Stalled  *string  `json:"stalled"`
	Warnings []string `json:"warnings"`
	Agents   struct {
		Reporting   int      `json:"reporting"`
		Silent      int      `json:"silent"`
		Absent      int      `json:"absent"`
		SilentHosts []string `json:"silent_hosts"`
	} `json:"agents"`
}

// Decision is a part of a decision. Ref is the name of the placed thing in the words of the client that asked for it.
type Decision struct {
	ID       string   `json:"id"`
	Hosts    []string `json:"hosts"`
	Ref      *string  `json:"ref"`
	Released *string  `json:"released"`
}

// Migration is a part of a move that the service advises: the task of a decision leaves a host for another one.
type Migration struct {
	ID       string `json:"id"`
	Decision string `json:"decision"`
	From     string `json:"from"`
	To       string `json:"to"`
	// Link is the hot link.
	Link string `json:"link"`
	// Executor is the one that has taken the move; nil in other states.
	Executor *string `json:"executor"`
}

// Answer is how an executor answers an advised move.
type Answer string

// Answers to moves. A repeated answer changes nothing.
const (
	// Taken means that the executor carries the move out.
	Taken Answer = "taken"
	// Done means that the task runs at its destination.
	Done Answer = "done"
	// Refused means that the task stays, because its system does not want the move.
	Refused Answer = "refused"
	// Failed means that the task stays, because the executor could not move it.
	Failed Answer = "failed"
)

// Status requests the state of the service.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var status Status
	return status, c.Get(ctx, "/v1/status", &status)
}

// Cluster requests the cluster as its file, and its version.
func (c *Client) Cluster(ctx context.Context) (map[string]any, string, error) {
	var file map[string]any
	header, err := c.Send(ctx, Request{Method: http.MethodGet, Path: "/v1/cluster"}, &file)
	if err != nil {
		return nil, "", err
	}
	return file, header.Get("etag"), nil
}

// Hosts requests all hosts.
func (c *Client) Hosts(ctx context.Context) ([]Host, error) { return List[Host](ctx, c, "/v1/hosts") }

// Racks requests all racks.
func (c *Client) Racks(ctx context.Context) ([]Rack, error) { return List[Rack](ctx, c, "/v1/racks") }

// Hotspots requests the hot links, the longest hot first.
func (c *Client) Hotspots(ctx context.Context) ([]Hotspot, error) {
	return List[Hotspot](ctx, c, "/v1/hotspots")
}

// PatchCluster changes fields of the cluster if it still has a version. A problem "version" says that it has another one.
func (c *Client) PatchCluster(ctx context.Context, patch map[string]any, version string, dryRun bool) error {
	path := "/v1/cluster"
	if dryRun {
		path += "?dry_run=true"
	}
	_, err := c.Send(ctx, Request{Method: http.MethodPatch, Path: path, Body: patch, IfMatch: version}, nil)
	return err
}

// DecisionsOf requests the decisions about the thing with this name in the client's words.
func (c *Client) DecisionsOf(ctx context.Context, ref string) ([]Decision, error) {
	return List[Decision](ctx, c, "/v1/decisions?ref="+url.QueryEscape(ref))
}

// Decision requests a decision. The error is a problem "not-found" if the service does not know it.
func (c *Client) Decision(ctx context.Context, id string) (Decision, error) {
	var decision Decision
	return decision, c.Get(ctx, "/v1/decisions/"+url.PathEscape(id), &decision)
}

// Migrations requests the moves in a state, such as "advised", the latest first.
func (c *Client) Migrations(ctx context.Context, state string) ([]Migration, error) {
	return List[Migration](ctx, c, "/v1/migrations?state="+url.QueryEscape(state))
}

// AnswerMigration answers a move: with the name of the executor if it is taken, and the reason for which the task stays if it
// is refused or failed. The error is a problem "answered" if the move has another answer or has expired.
func (c *Client) AnswerMigration(ctx context.Context, id string, answer Answer, text string) error {
	body := map[string]any{"answer": answer}
	switch answer {
	case Taken:
		body["executor"] = text
	case Refused, Failed:
		body["reason"] = text
	}
	_, err := c.Send(ctx, Request{Method: http.MethodPost, Path: "/v1/migrations/" + url.PathEscape(id), Body: body}, nil)
	return err
}

// Release ends a decision: its work no longer counts, and its traffic leaves as telemetry follows. It returns false if the
// service does not know the decision.
func (c *Client) Release(ctx context.Context, id string) (bool, error) {
	_, err := c.Send(ctx, Request{Method: http.MethodDelete, Path: "/v1/commitments/" + url.PathEscape(id)}, nil)
	if IsKind(err, "not-found") {
		return false, nil
	}
	return err == nil, err
}

// Expectation is work that will soon run on a host.
type Expectation struct {
	// Ref names the work, and Key makes a repetition harmless.
	Ref, Key string
	Host     string
	// Egress and Ingress are peak rates in bit/s.
	Egress, Ingress int64
	// Lasts is the time after which the work counts no longer, such as 5m.
	Lasts string
}

// Expect commits work on a host and returns the id of the decision.
func (c *Client) Expect(ctx context.Context, e Expectation) (string, error) {
	rate := func(bps int64) map[string]any { return map[string]any{"peak": fmt.Sprintf("%dbps", bps)} }
	task := map[string]any{"name": "replacement"}
	if e.Egress > 0 {
		task["egress"] = rate(e.Egress)
	}
	if e.Ingress > 0 {
		task["ingress"] = rate(e.Ingress)
	}
	body := map[string]any{
		"hosts": []string{e.Host},
		"tasks": map[string]any{
			"app": map[string]any{"tasks": []any{task}}, "ref": e.Ref, "lasts": e.Lasts,
		},
	}
	var decision Decision
	_, err := c.Send(ctx, Request{Method: http.MethodPost, Path: "/v1/commitments", Key: e.Key, Body: body}, &decision)
	return decision.ID, err
}

// HostReport is a report on a host: whether it is being emptied.
type HostReport struct {
	Host     string `json:"host"`
	Draining bool   `json:"draining"`
}

// ReportHosts reports the states of hosts over a window. Times are texts of RFC 3339. It returns an error if the service knows a
// later state of a host.
func (c *Client) ReportHosts(ctx context.Context, from, until string, hosts []HostReport) error {
	body := map[string]any{"from": from, "until": until, "hosts": hosts}
	var answer struct {
		Skipped struct {
			Stale int `json:"stale"`
		} `json:"skipped"`
	}
	if _, err := c.Send(ctx, Request{Method: http.MethodPost, Path: "/v1/reports", Body: body}, &answer); err != nil {
		return err
	}
	if stale := answer.Skipped.Stale; stale > 0 {
		return fmt.Errorf("%d of %d states of hosts until %s: the service knows later ones: set the clocks of all clients by NTP",
			stale, len(hosts), until)
	}
	return nil
}
