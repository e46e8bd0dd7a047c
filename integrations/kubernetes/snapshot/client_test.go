package snapshot

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"leeward.dev/kubernetes/internal/fake"
)

// quick are settings with short deadlines, for controllers that never answer.
func quick(addresses ...string) Settings {
	return Settings{Controllers: addresses, Interval: 100 * time.Millisecond, Deadline: 50 * time.Millisecond}
}

// patient are settings for controllers that answer, also on a busy machine.
func patient(addresses ...string) Settings {
	return Settings{Controllers: addresses, Interval: 100 * time.Millisecond, Deadline: 2 * time.Second}
}

func serve(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server
}

func client(t *testing.T, settings Settings) *Client {
	t.Helper()
	c, err := NewClient(settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fails returns the failure of a whole snapshot.
func fails(t *testing.T, c *Client) *RequestError {
	t.Helper()
	s, err := c.Get(t.Context(), nil, true)
	var problem *RequestError
	if s != nil || !errors.As(err, &problem) {
		t.Fatalf("%v, %v", s, err)
	}
	return problem
}

func TestTheClientGetsAWholeSnapshotAndThenDifferences(t *testing.T) {
	controller := fake.NewController(fake.Tree(1, 2, 3))
	c := client(t, patient(serve(t, controller).URL))
	last, err := c.Get(t.Context(), nil, false)
	if err != nil || last.IsDifference() {
		t.Fatalf("%v, %v", last, err)
	}
	for range 3 {
		controller.Change(func(network *fake.Network) {
			network.Advance(time.Second)
			network.Link("r0:uplink").Measured += 5
		})
		began := time.Now()
		next, err := c.Get(t.Context(), last, false)
		if err != nil || !next.IsDifference() || next.Names() != last.Names() {
			t.Fatalf("%v, %v", next, err)
		}
		if waited := time.Since(began); waited < 90*time.Millisecond {
			t.Errorf("the difference came after %v", waited)
		}
		last = next
	}
	if measured := last.Measured()[last.Names().Link("r0:uplink")]; measured != 15 {
		t.Errorf("measured: %d", measured)
	}
	if again, err := c.Get(t.Context(), last, true); err != nil || again.IsDifference() {
		t.Errorf("a whole snapshot on request: %v, %v", again, err)
	}
}

func TestWindowsAreRequestedOnlyFromAServiceThatSendsThem(t *testing.T) {
	for _, has := range []bool{true, false} {
		network := fake.NewController(fake.Tree(0, 2, 2))
		network.Windows = has
		server := serve(t, network)
		settings := patient(server.URL)
		settings.Windows = true
		c := client(t, settings)
		var last *Snapshot
		for number := range 4 {
			network.Change(func(n *fake.Network) {
				n.Advance(time.Second)
				n.Link("r0:uplink").Latest = int64(number)
			})
			next, err := c.Get(t.Context(), last, last == nil)
			if err != nil || next.HasWindows() != has || next.IsDifference() != (number > 0) {
				t.Fatalf("snapshot %d: %+v, %v", number, next, err)
			}
			if link := next.Names().Link("r0:uplink"); has && (next.Latest()[link] != int64(number) ||
				next.From()[link] != next.Until()[link]-int64(time.Second)) {
				t.Errorf("snapshot %d: %d from %d", number, next.Latest()[link], next.From()[link])
			}
			last = next
		}
		// The rejection costs one request.
		if requests := network.Requests(); requests != map[bool]int{true: 4, false: 5}[has] {
			t.Errorf("%d requests", requests)
		}
	}
}

func TestAnotherVersionOfTheServiceChangesWindowsInTheNextSnapshots(t *testing.T) {
	network := fake.NewController(fake.Tree(0, 2, 2))
	server := serve(t, network)
	settings := patient(server.URL)
	settings.Windows = true
	c := client(t, settings)
	var last *Snapshot
	for _, has := range []bool{false, true, false} {
		network.Windows = has
		network.Replace(fake.Tree(0, 2, 2))
		network.Change(func(n *fake.Network) { n.Run = fmt.Sprint("run", has) })
		for attempt := range 5 {
			next, err := c.Get(t.Context(), last, last == nil)
			if err != nil {
				// The follower requests a whole snapshot after a failure.
				last = nil
			} else if last = next; next.HasWindows() == has && next.IsDifference() {
				break
			}
			if attempt == 4 {
				t.Fatalf("windows %v: %+v", has, last)
			}
		}
	}
}

func TestWithoutTheSettingNoWindowsAreRequested(t *testing.T) {
	network := fake.NewController(fake.Tree(0, 2, 2))
	network.Windows = true
	next, err := client(t, patient(serve(t, network).URL)).Get(t.Context(), nil, true)
	if err != nil || next.HasWindows() {
		t.Errorf("%+v, %v", next, err)
	}
}

func TestEveryBadAnswerHasItsReason(t *testing.T) {
	write := func(status int, body string) http.HandlerFunc {
		return func(writer http.ResponseWriter, _ *http.Request) {
			writer.WriteHeader(status)
			_, _ = io.WriteString(writer, body)
		}
	}
	block := make(chan struct{})
	defer close(block)
	hang := func(_ http.ResponseWriter, request *http.Request) {
		select {
		case <-block:
		case <-request.Context().Done():
		}
	}
	for _, c := range []struct {
		name     string
		handler  http.HandlerFunc
		failure  Failure
		expected string
	}{
		{"garbage", write(200, "\x00\xffgarbage"), Invalid, "expected an object"},
		{"nothing", write(200, ""), Invalid, "the answer ends"},
		{"a web page", write(200, "<html>"), Invalid, "expected an object"},
		{"wrong token", write(401, `{"type":"unauthorized"}`), Unauthorized, "status 401"},
		{"no role", write(403, "no\nrole"), Unauthorized, "status 403: no role"},
		{"a follower", write(503, "no leader"), BadStatus, "status 503: no leader"},
		{"an endless error", write(500, strings.Repeat("x", 1<<20)), BadStatus, "xxx..."},
		{"an answer that hangs", hang, Timeout, "no answer within"},
		{"an answer that drips", func(writer http.ResponseWriter, request *http.Request) {
			for request.Context().Err() == nil {
				_, _ = io.WriteString(writer, " ")
				writer.(http.Flusher).Flush()
				time.Sleep(5 * time.Millisecond)
			}
		}, Timeout, "no answer within"},
		{"a connection that breaks", func(writer http.ResponseWriter, _ *http.Request) {
			writer.Header().Set("content-length", "1000")
			_, _ = io.WriteString(writer, "{")
		}, Unreachable, "unexpected EOF"},
		{"a redirect", func(writer http.ResponseWriter, request *http.Request) {
			http.Redirect(writer, request, "http://127.0.0.1:1/", http.StatusFound)
		}, BadStatus, "status 302"},
		{"absurd headers", func(writer http.ResponseWriter, _ *http.Request) {
			writer.Header().Set("x", strings.Repeat("x", 1<<20))
		}, Unreachable, "header"},
	} {
		t.Run(c.name, func(t *testing.T) {
			settings := patient(serve(t, c.handler).URL)
			if c.failure == Timeout {
				settings = quick(settings.Controllers...)
			}
			problem := fails(t, client(t, settings))
			if problem.Failure != c.failure || !strings.Contains(problem.Error(), c.expected) {
				t.Errorf("%s: %v, expected %s: %s", problem.Failure, problem, c.failure, c.expected)
			}
			if len(problem.Error()) > 400 {
				t.Errorf("the error has %d bytes", len(problem.Error()))
			}
		})
	}
}

func TestAnEndlessAnswerEndsAtTheLimit(t *testing.T) {
	settings := patient(serve(t, http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		chunk := []byte(strings.Repeat(" ", 1<<20))
		for request.Context().Err() == nil {
			if _, err := writer.Write(chunk); err != nil {
				return
			}
		}
	})).URL)
	settings.Deadline, settings.MaxAge = time.Minute, 10*time.Minute
	problem := fails(t, client(t, settings))
	if problem.Failure != Invalid || !strings.Contains(problem.Error(), "more than 67108864 bytes") {
		t.Errorf("%s: %v", problem.Failure, problem)
	}
}

func TestNoConnectionIsUnreachableAndTheNextAddressIsTried(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + listener.Addr().String()
	listener.Close()
	good := serve(t, fake.NewController(fake.Tree(0, 1, 1))).URL
	c := client(t, patient(gone, good))
	if problem := fails(t, c); problem.Failure != Unreachable {
		t.Errorf("%s: %v", problem.Failure, problem)
	}
	if c.Address() != good {
		t.Errorf("the next address is %s", c.Address())
	}
	if _, err := c.Get(t.Context(), nil, true); err != nil {
		t.Error(err)
	}
}

func TestTheTokenIsReadForEachRequestAndNeverShown(t *testing.T) {
	controller := fake.NewController(fake.Tree(0, 1, 1))
	controller.Token = "second-secret"
	repeat := func(writer http.ResponseWriter, request *http.Request) bool {
		if request.Header.Get("authorization") == "Bearer second-secret" {
			return false
		}
		http.Error(writer, "unknown: "+request.Header.Get("authorization"), http.StatusUnauthorized)
		return true
	}
	controller.Intercept(repeat)
	settings := patient(serve(t, controller).URL)
	settings.TokenFile = file(t, "first-secret\n")
	c := client(t, settings)
	problem := fails(t, c)
	if problem.Failure != Unauthorized || strings.Contains(problem.Error(), "first-secret") {
		t.Errorf("%s: %v", problem.Failure, problem)
	}
	if err := os.WriteFile(settings.TokenFile, []byte("second-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), nil, true); err != nil {
		t.Error(err)
	}
	for _, content := range []string{"", "two lines\nof text", "\x00"} {
		if err := os.WriteFile(settings.TokenFile, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if problem := fails(t, c); problem.Failure != Unauthorized || !strings.Contains(problem.Error(), settings.TokenFile) {
			t.Errorf("%q: %s: %v", content, problem.Failure, problem)
		}
	}
}

func TestOnlyATrustedCertificateIsAccepted(t *testing.T) {
	server := httptest.NewUnstartedServer(fake.NewController(fake.Tree(0, 1, 1)))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	settings := patient(server.URL)
	if problem := fails(t, client(t, settings)); problem.Failure != BadTLS {
		t.Errorf("an unknown authority: %s: %v", problem.Failure, problem)
	}
	settings.AuthorityFile = file(t, string(authority))
	if _, err := client(t, settings).Get(t.Context(), nil, true); err != nil {
		t.Errorf("a known authority: %v", err)
	}
	settings.Controllers = []string{strings.Replace(server.URL, "127.0.0.1", "localhost", 1)}
	if problem := fails(t, client(t, settings)); problem.Failure != BadTLS && problem.Failure != Unreachable {
		t.Errorf("another name: %s: %v", problem.Failure, problem)
	}
	plain := serve(t, fake.NewController(fake.Tree(0, 1, 1))).URL
	settings.Controllers = []string{strings.Replace(plain, "http:", "https:", 1)}
	if problem := fails(t, client(t, settings)); problem.Failure != BadTLS {
		t.Errorf("a server without TLS: %s: %v", problem.Failure, problem)
	}
}

func TestACancelledRequestEndsAtOnce(t *testing.T) {
	controller := fake.NewController(fake.Tree(0, 1, 1))
	settings := patient(serve(t, controller).URL)
	settings.Interval, settings.MaxAge = time.Minute, 10*time.Minute
	c := client(t, settings)
	last, err := c.Get(t.Context(), nil, true)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = c.Get(ctx, last, false)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), c.Address()+": no answer in time") || time.Since(began) > 10*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

func TestAnInvalidSettingIsNamed(t *testing.T) {
	good := "http://leeward:7600"
	for _, c := range []struct {
		settings Settings
		expected string
	}{
		{Settings{}, "controllers: none"},
		{Settings{Controllers: []string{"leeward:7600"}}, `controllers: "leeward:7600"`},
		{Settings{Controllers: []string{good, "ftp://leeward"}}, `controllers: "ftp://leeward"`},
		{Settings{Controllers: []string{good + "/path"}}, "/path"},
		{Settings{Controllers: []string{"http://user@leeward"}}, "user@"},
		{Settings{Controllers: []string{good}, Interval: time.Millisecond}, "interval: 1ms"},
		{Settings{Controllers: []string{good}, Interval: time.Hour}, "interval: 1h"},
		{Settings{Controllers: []string{good}, Deadline: -1}, "deadline: -1ns"},
		{Settings{Controllers: []string{good}, MaxAge: time.Second}, "max age: 1s: expected 2.2s to"},
		{Settings{Controllers: []string{good}, AuthorityFile: "/none"}, "authority: "},
		{Settings{Controllers: []string{good}, AuthorityFile: file(t, "no certificate")}, "no certificates"},
	} {
		if _, err := NewClient(c.settings); err == nil || !strings.Contains(err.Error(), c.expected) {
			t.Errorf("%+v: %v, expected %s", c.settings, err, c.expected)
		}
	}
	c := client(t, Settings{Controllers: []string{good + "/"}})
	defaults := Settings{Controllers: []string{good}, Interval: time.Second, Deadline: 200 * time.Millisecond, MaxAge: 5 * time.Second}
	if fmt.Sprint(c.Settings()) != fmt.Sprint(defaults) {
		t.Errorf("%+v", c.Settings())
	}
}
