// Package httpapi is a client of the service's HTTP interface, for requests other than snapshots.
//
// Requests and responses are JSON. Each request has a deadline and goes to the configured addresses in turn until one
// responds: a follower names no result, so the next address gets the request. All requests that this module sends have the
// same effect once or several times, so a repetition is safe.
package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"leeward.dev/kubernetes/snapshot"
)

// Limits of responses.
const (
	// mostBytes is the largest response; the list of 1,000 links has about 400 kB, the cluster of 100,000 hosts 10 MB.
	mostBytes = 64 << 20
	// mostShown is the largest number of characters of a problem in an error.
	mostShown = 400
	// pageSize is the largest number of items that the service returns at once.
	pageSize = 1000
	// mostItems limits lists, against a service that never ends one.
	mostItems = 1 << 20
)

// DefaultDeadline is the time for a whole response.
const DefaultDeadline = 10 * time.Second

// ProblemError is a response with an error status.
type ProblemError struct {
	// Address is that of the service.
	Address string
	Status  int
	// Kind is the last part of the type, such as "version"; empty if the response is no problem document.
	Kind string
	// Detail has the problem and the remedy, and Field the path of an invalid field.
	Detail, Field string
}

// Error returns the address, the status and the problem.
func (e *ProblemError) Error() string {
	field := ""
	if e.Field != "" {
		field = e.Field + ": "
	}
	return fmt.Sprintf("%s: status %d: %s%s", e.Address, e.Status, field, e.Detail)
}

// IsKind returns true if the error is a problem of this kind.
func IsKind(err error, kind string) bool {
	var problem *ProblemError
	return errors.As(err, &problem) && problem.Kind == kind
}

// Client sends requests to the service. Any number of goroutines may use it.
type Client struct {
	settings snapshot.Settings
	deadline time.Duration
	http     *http.Client
}

// New returns a client. It returns an error that names an invalid setting.
func New(settings snapshot.Settings, deadline time.Duration) (*Client, error) {
	settings, err := settings.WithDefaults()
	if err != nil {
		return nil, err
	}
	if deadline <= 0 {
		return nil, fmt.Errorf("deadline: %v: expected a positive time", deadline)
	}
	config, err := settings.TLS()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: config, MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: time.Minute}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{
		settings: settings, deadline: deadline, http: &http.Client{Transport: transport, CheckRedirect: refuse},
	}, nil
}

// Request is a request to the service.
type Request struct {
	Method string
	// Path begins with /v1 and has its parameters.
	Path string
	// Key makes a repetition harmless for requests that need it; empty for the others.
	Key string
	// IfMatch is the version of the cluster that a change is based on; empty for requests without one.
	IfMatch string
	// Body is encoded as JSON; nil for none.
	Body any
}

// Get requests a path and decodes the response.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	_, err := c.Send(ctx, Request{Method: http.MethodGet, Path: path}, into)
	return err
}

// Send sends a request and decodes the response; into may be nil. It returns the response's headers.
func (c *Client) Send(ctx context.Context, request Request, into any) (http.Header, error) {
	var body []byte
	if request.Body != nil {
		var err error
		if body, err = json.Marshal(request.Body); err != nil {
			return nil, fmt.Errorf("%s %s: %w", request.Method, request.Path, err)
		}
	}
	var problems []error
	for _, address := range c.settings.Controllers {
		header, response, err := c.try(ctx, address, request, body)
		if err == nil {
			return header, decode(address, request.Path, response, into)
		}
		problems = append(problems, err)
		if ctx.Err() != nil || !isElsewhere(err) {
			break
		}
	}
	return nil, errors.Join(problems...)
}

// isElsewhere returns true if another address may answer the request.
func isElsewhere(err error) bool {
	var problem *ProblemError
	if errors.As(err, &problem) {
		return problem.Status >= http.StatusInternalServerError
	}
	return true
}

func (c *Client) try(ctx context.Context, address string, request Request, body []byte) (http.Header, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.deadline)
	defer cancel()
	token, err := c.settings.Token()
	if err != nil {
		return nil, nil, err
	}
	sent, err := http.NewRequestWithContext(ctx, request.Method, address+request.Path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", address, err)
	}
	for name, value := range map[string]string{"idempotency-key": request.Key, "if-match": request.IfMatch} {
		if value != "" {
			sent.Header.Set(name, value)
		}
	}
	if token != "" {
		sent.Header.Set("authorization", "Bearer "+token)
	}
	if body != nil {
		sent.Header.Set("content-type", "application/json")
	}
	answer, err := c.http.Do(sent)
	if err != nil {
		return nil, nil, snapshot.Unanswered(address, c.deadline, token, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, mostBytes+1))
	switch {
	case err != nil:
		return nil, nil, snapshot.Unanswered(address, c.deadline, token, err)
	case answer.StatusCode/100 != 2:
		return nil, nil, problemOf(address, answer.StatusCode, text, token)
	case len(text) > mostBytes:
		return nil, nil, fmt.Errorf("%s: the response has more than %d bytes", address, mostBytes)
	}
	return answer.Header, text, nil
}

func problemOf(address string, status int, text []byte, token string) error {
	var document struct {
		Type   string `json:"type"`
		Detail string `json:"detail"`
		Field  string `json:"field"`
	}
	if json.Unmarshal(text, &document) != nil || document.Detail == "" {
		document.Type, document.Field = "", ""
		document.Detail = snapshot.Excerpt(string(text), token, mostShown)
	}
	kind, _ := strings.CutPrefix(document.Type, "urn:leeward:problem:")
	return &ProblemError{
		Address: address, Status: status, Kind: kind,
		Detail: snapshot.Excerpt(document.Detail, token, mostShown), Field: snapshot.Excerpt(document.Field, token, mostShown),
	}
}

func decode(address, path string, text []byte, into any) error {
	if into == nil {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	// Whole numbers of a cluster must not become fractions.
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("%s%s: invalid response: %w", address, path, err)
	}
	return nil
}

// List requests all items of a list. The path may have parameters, but neither limit nor after.
func List[T any](ctx context.Context, c *Client, path string) ([]T, error) {
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	var all []T
	after := ""
	for {
		var page struct {
			Items []T     `json:"items"`
			Next  *string `json:"next"`
		}
		at := fmt.Sprintf("%s%slimit=%d", path, separator, pageSize)
		if after != "" {
			at += "&after=" + url.QueryEscape(after)
		}
		if err := c.Get(ctx, at, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Next == nil || len(page.Items) == 0 {
			return all, nil
		}
		if len(all) > mostItems {
			return nil, fmt.Errorf("%s: more than %d items", path, mostItems)
		}
		after = *page.Next
	}
}
