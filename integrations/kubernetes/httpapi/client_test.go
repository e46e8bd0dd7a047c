package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leeward.dev/kubernetes/snapshot"
)

// clientOf returns a client of handlers, in their order.
func clientOf(t *testing.T, settings snapshot.Settings, handlers ...http.HandlerFunc) *Client {
	t.Helper()
	for _, handler := range handlers {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		settings.Controllers = append(settings.Controllers, server.URL)
	}
	client, err := New(settings, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func problem(status int, kind, detail, field string) http.HandlerFunc {
	return func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("content-type", "application/problem+json")
		writer.WriteHeader(status)
		fmt.Fprintf(writer, `{"type": "urn:leeward:problem:%s", "status": %d, "detail": %q, "field": %q}`, kind, status, detail, field)
	}
}

func body(text string) http.HandlerFunc {
	return func(writer http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(writer, text) }
}

func TestARequestHasItsHeadersAndBody(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var seen *http.Request
	var text []byte
	client := clientOf(t, snapshot.Settings{TokenFile: token}, func(writer http.ResponseWriter, request *http.Request) {
		seen = request
		text, _ = io.ReadAll(request.Body)
		writer.Header().Set("etag", `"8"`)
		_, _ = io.WriteString(writer, `{"id": "5"}`)
	})
	var decision Decision
	header, err := client.Send(context.Background(), Request{
		Method: http.MethodPost, Path: "/v1/commitments?dry_run=true", Key: "k", IfMatch: `"7"`, Body: map[string]any{"a": 1},
	}, &decision)
	if err != nil || decision.ID != "5" || header.Get("etag") != `"8"` {
		t.Fatalf("%v: %+v", err, decision)
	}
	for name, expected := range map[string]string{
		"authorization": "Bearer secret", "idempotency-key": "k", "if-match": `"7"`, "content-type": "application/json",
	} {
		if seen.Header.Get(name) != expected {
			t.Errorf("%s: %q", name, seen.Header.Get(name))
		}
	}
	if string(text) != `{"a":1}` || seen.URL.String() != "/v1/commitments?dry_run=true" || seen.Method != http.MethodPost {
		t.Errorf("%s %s: %s", seen.Method, seen.URL, text)
	}
}

func TestAFollowerOrASilentAddressLeavesTheRequestToTheNext(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	client := clientOf(t, snapshot.Settings{Controllers: []string{gone.URL}},
		problem(http.StatusServiceUnavailable, "follower", "this service is a follower", ""), body(`{"version": "1"}`))
	status, err := client.Status(context.Background())
	if err != nil || status.Version != "1" {
		t.Errorf("%v: %+v", err, status)
	}
}

func TestAnInvalidRequestGoesToOneAddressAndTheErrorNamesItsField(t *testing.T) {
	requests := 0
	client := clientOf(t, snapshot.Settings{}, problem(http.StatusUnprocessableEntity, "invalid", "an empty list", "racks[0].hosts"),
		func(http.ResponseWriter, *http.Request) { requests++ })
	err := client.PatchCluster(context.Background(), map[string]any{}, "", false)
	if !IsKind(err, "invalid") || IsKind(err, "version") || !strings.HasSuffix(err.Error(), "status 422: racks[0].hosts: an empty list") {
		t.Errorf("%v", err)
	}
	if requests != 0 {
		t.Error("the next address got the request")
	}
}

func TestErrorsAreShortAndDoNotRepeatTheToken(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	client := clientOf(t, snapshot.Settings{TokenFile: token}, func(writer http.ResponseWriter, _ *http.Request) {
		writer.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(writer, "<html>\n\x00secret"+strings.Repeat("x", 10_000))
	})
	err := client.Get(context.Background(), "/v1/status", nil)
	if err == nil || strings.Contains(err.Error(), "secret") || len(err.Error()) > 600 || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

func TestASlowServiceAndAResponseThatIsNoJSONAreErrors(t *testing.T) {
	client := clientOf(t, snapshot.Settings{}, func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() })
	client.deadline = 50 * time.Millisecond
	if err := client.Get(context.Background(), "/v1/status", nil); err == nil || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("%v", err)
	}
	client = clientOf(t, snapshot.Settings{}, body("{"))
	if _, err := client.Status(context.Background()); err == nil || !strings.Contains(err.Error(), "/v1/status: invalid response") {
		t.Errorf("%v", err)
	}
}

func TestAListHasAllParts(t *testing.T) {
	client := clientOf(t, snapshot.Settings{}, func(writer http.ResponseWriter, request *http.Request) {
		if request.URL.Query().Get("limit") != "1000" {
			t.Errorf("%s", request.URL)
		}
		if request.URL.Query().Get("after") == "" {
			_, _ = io.WriteString(writer, `{"items": [{"rack": "a"}], "next": "a&b"}`)
			return
		}
		if request.URL.Query().Get("after") != "a&b" {
			t.Errorf("%s", request.URL)
		}
		_, _ = io.WriteString(writer, `{"items": [{"rack": "b"}], "next": null}`)
	})
	racks, err := client.Racks(context.Background())
	if err != nil || len(racks) != 2 || racks[1].Rack != "b" {
		t.Errorf("%v: %+v", err, racks)
	}
}

func TestTheClusterKeepsItsNumbersAndVersion(t *testing.T) {
	client := clientOf(t, snapshot.Settings{}, func(writer http.ResponseWriter, _ *http.Request) {
		writer.Header().Set("etag", `"3"`)
		_, _ = io.WriteString(writer, `{"racks": 12345678901234567, "rack_link": "2Gbps"}`)
	})
	file, version, err := client.Cluster(context.Background())
	if err != nil || version != `"3"` || file["racks"] != json.Number("12345678901234567") {
		t.Errorf("%v: %v, %v", err, file, version)
	}
}

func TestAnUnknownDecisionIsNotReleased(t *testing.T) {
	client := clientOf(t, snapshot.Settings{}, problem(http.StatusNotFound, "not-found", "no such decision", ""))
	if known, err := client.Release(context.Background(), "5"); known || err != nil {
		t.Errorf("%v, %v", known, err)
	}
	client = clientOf(t, snapshot.Settings{}, problem(http.StatusForbidden, "forbidden", "the role is not sufficient", ""))
	if _, err := client.Release(context.Background(), "5"); err == nil {
		t.Error("a rejected release is no error")
	}
}

func TestAReportOnHostsThatTheServiceSkipsIsAnError(t *testing.T) {
	hosts := []HostReport{{Host: "n1", Draining: true}, {Host: "n2"}}
	for text, problem := range map[string]string{
		`{"links": 0, "skipped": {"stale": 0, "down": 0, "unknown": 0}}`: "",
		`{"links": 0, "skipped": {"stale": 1, "down": 0, "unknown": 0}}`: "1 of 2 states of hosts until 12:00: the service knows later ones",
	} {
		err := clientOf(t, snapshot.Settings{}, body(text)).ReportHosts(context.Background(), "11:59", "12:00", hosts)
		if (err == nil) != (problem == "") || err != nil && !strings.HasPrefix(err.Error(), problem) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestInvalidSettingsAreErrors(t *testing.T) {
	if _, err := New(snapshot.Settings{}, time.Second); err == nil {
		t.Error("no address")
	}
	if _, err := New(snapshot.Settings{Controllers: []string{"http://a"}}, 0); err == nil {
		t.Error("no deadline")
	}
	client, err := New(snapshot.Settings{Controllers: []string{"http://a"}, TokenFile: "/does/not/exist"}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Get(context.Background(), "/v1/status", nil); err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Errorf("%v", err)
	}
}
