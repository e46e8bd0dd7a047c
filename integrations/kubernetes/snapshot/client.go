package snapshot

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// Limits of answers.
const (
	// mostBytes is the largest snapshot; that of 100,000 hosts has about 20 MB.
	mostBytes = 64 << 20
	// mostError and mostShown are the bytes of an error that are read, and the characters of it that are shown.
	mostError = 4096
	mostShown = 200
)

// Failure is the reason for which a request failed.
type Failure string

// Reasons for failures. The texts are values of metrics.
const (
	// Unreachable means that there was no connection.
	Unreachable Failure = "unreachable"
	// Timeout means that no complete answer came in time.
	Timeout Failure = "timeout"
	// Unauthorized means that the token is missing, unknown or without the role.
	Unauthorized Failure = "unauthorized"
	// BadTLS means that the certificate is not trusted, or the handshake failed.
	BadTLS Failure = "tls"
	// Invalid means that the answer is no snapshot.
	Invalid Failure = "invalid"
	// BadStatus means another status, such as that of a follower without a leader.
	BadStatus Failure = "status"
	// Internal means a fault of this program.
	Internal Failure = "error"
)

// Failures lists all reasons.
var Failures = [...]Failure{Unreachable, Timeout, Unauthorized, BadTLS, Invalid, BadStatus, Internal}

// RequestError says why a request failed.
type RequestError struct {
	Failure Failure
	// Status is the HTTP status of an answer without success, 0 without an answer.
	Status  int
	problem string
}

// Error returns the address and the reason.
func (e *RequestError) Error() string { return e.problem }

func failed(failure Failure, format string, arguments ...any) *RequestError {
	return &RequestError{Failure: failure, problem: fmt.Sprintf(format, arguments...)}
}

// Client sends requests to the service, above all for snapshots. Every request has a deadline for its whole answer.
type Client struct {
	settings Settings
	http     *http.Client
	// next counts the failures, and so numbers the address of the next request.
	next atomic.Uint32
	// rejected is true if the service does not send last windows.
	rejected atomic.Bool
}

// NewClient returns a client. It returns an error that names an invalid setting.
func NewClient(settings Settings) (*Client, error) {
	settings, err := settings.WithDefaults()
	if err != nil {
		return nil, err
	}
	config, err := settings.TLS()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig:        config,
		DialContext:            (&net.Dialer{Timeout: settings.wholeDeadline()}).DialContext,
		TLSHandshakeTimeout:    settings.wholeDeadline(),
		MaxIdleConnsPerHost:    1,
		IdleConnTimeout:        5 * time.Minute,
		MaxResponseHeaderBytes: 64 << 10,
		// A difference has about 60 bytes for each link that changed; to compress it costs more than to send it.
		DisableCompression: true,
	}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{settings: settings, http: &http.Client{Transport: transport, CheckRedirect: refuse}}, nil
}

// Settings returns the settings with all defaults.
func (c *Client) Settings() Settings { return c.settings }

// Address returns the address of the next request.
func (c *Client) Address() string {
	return c.settings.Controllers[int(c.next.Load())%len(c.settings.Controllers)]
}

// Get returns the next snapshot: the difference from the last one at the end of the interval, or a whole one at once. The
// error is a [RequestError], or that of the context.
func (c *Client) Get(ctx context.Context, last *Snapshot, whole bool) (*Snapshot, error) {
	windows := c.settings.Windows && !c.rejected.Load()
	// A difference has the columns of the snapshot before.
	whole = whole || last == nil || last.HasWindows() != windows
	address := c.Address()
	body, problem := c.snapshot(ctx, address, last, whole, windows)
	if problem != nil && whole && windows && problem.Status == http.StatusUnprocessableEntity {
		// An earlier version of the service rejects columns that it does not know.
		c.rejected.Store(true)
		body, problem = c.snapshot(ctx, address, last, whole, false)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if problem == nil {
		next, err := Read(body, last, time.Now())
		if err == nil {
			switch {
			case whole && windows && !next.HasWindows():
				c.rejected.Store(true)
			case !whole && !next.IsDifference():
				// Another run of the service may be of another version.
				c.rejected.Store(false)
			}
			return next, nil
		}
		problem = failed(Invalid, "%s: %s", address, Excerpt(err.Error(), "", mostShown))
	}
	c.next.Add(1)
	return nil, problem
}

// snapshot requests a whole snapshot at once, or the difference from the last one at the end of the interval.
func (c *Client) snapshot(ctx context.Context, address string, last *Snapshot, whole, windows bool) ([]byte, *RequestError) {
	path, deadline := "/v1/snapshot?"+query(windows), c.settings.wholeDeadline()
	if !whole {
		interval := fmt.Sprintf("%dms", c.settings.Interval.Milliseconds())
		path += "&since=" + url.QueryEscape(last.ID()) + "&interval=" + interval + "&wait=" + interval
		deadline = c.settings.differenceDeadline()
	}
	return c.send(ctx, http.MethodGet, address, path, nil, deadline)
}

// Call sends a request with a body in JSON, nil for none, and returns the body of the answer. The deadline of the context
// replaces that of the settings. The error is a [RequestError], or that of a canceled context. After a failure the next
// request goes to the next address.
func (c *Client) Call(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	deadline := c.settings.wholeDeadline()
	if at, ok := ctx.Deadline(); ok {
		deadline = max(time.Until(at), 0).Round(time.Millisecond)
	}
	answer, problem := c.send(ctx, method, c.Address(), path, body, deadline)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	case problem != nil:
		c.next.Add(1)
		return nil, problem
	}
	return answer, nil
}

func (c *Client) send(
	ctx context.Context, method, address, path string, content []byte, deadline time.Duration,
) ([]byte, *RequestError) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	token, err := c.settings.Token()
	if err != nil {
		return nil, failed(Unauthorized, "%s", err)
	}
	request, err := http.NewRequestWithContext(ctx, method, address+path, bytes.NewReader(content))
	if err != nil {
		return nil, failed(Internal, "%s: %s", address, err)
	}
	if token != "" {
		request.Header.Set("authorization", "Bearer "+token)
	}
	if content != nil {
		request.Header.Set("content-type", "application/json")
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, classify(address, deadline, token, err)
	}
	defer answer.Body.Close()
	most := int64(mostBytes)
	succeeded := answer.StatusCode/100 == 2
	if !succeeded {
		most = mostError
	}
	body, err := readBody(answer, most)
	switch {
	case !succeeded:
		return nil, refused(address, answer.StatusCode, token, body)
	case err != nil:
		return nil, classify(address, deadline, token, err)
	case int64(len(body)) > most:
		return nil, failed(Invalid, "%s: the answer has more than %d bytes", address, most)
	}
	return body, nil
}

// readBody returns the body up to one byte more than most.
func readBody(answer *http.Response, most int64) ([]byte, error) {
	var body bytes.Buffer
	if length := answer.ContentLength; length > 0 && length <= most {
		// The room that ReadFrom wants beyond the end saves a copy.
		body.Grow(int(length) + bytes.MinRead)
	}
	_, err := body.ReadFrom(io.LimitReader(answer.Body, most+1))
	return body.Bytes(), err
}

func refused(address string, status int, token string, body []byte) *RequestError {
	failure := BadStatus
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMisdirectedRequest:
		failure = Unauthorized
	}
	problem := failed(failure, "%s: status %d: %s", address, status, Excerpt(string(body), token, mostShown))
	problem.Status = status
	return problem
}

// classify returns the reason of a failure without an answer.
func classify(address string, deadline time.Duration, token string, err error) *RequestError {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var unknown x509.UnknownAuthorityError
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		// The address with its long query says nothing.
		err = wrapped.Err
	}
	problem := Excerpt(err.Error(), token, mostShown)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return failed(Timeout, "%s: no answer within %v", address, deadline)
	case errors.As(err, &certificate), errors.As(err, &record), errors.As(err, &alert), errors.As(err, &unknown),
		strings.Contains(problem, "tls: "), strings.Contains(problem, "HTTP response to HTTPS client"):
		return failed(BadTLS, "%s: %s", address, problem)
	default:
		return failed(Unreachable, "%s: %s", address, problem)
	}
}
