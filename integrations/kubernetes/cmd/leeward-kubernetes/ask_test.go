package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/snapshot"
)

// asking returns a process beside a service that answers with these texts, one after another, and the last one again.
func asking(t *testing.T, log *bytes.Buffer, answers ...string) *process {
	t.Helper()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(writer, answers[min(asked, len(answers)-1)])
		asked++
	}))
	t.Cleanup(server.Close)
	service, err := httpapi.New(snapshot.Settings{Controllers: []string{server.URL}}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return &process{service: service, log: slog.New(slog.NewTextHandler(log, nil))}
}

func TestSettingsThatNoFlagNamesAreThoseOfTheService(t *testing.T) {
	const whole = `{"interval_s": 10, "hot_above": 0.6, "ledger": {"alpha": 0.4}}`
	for _, c := range []struct {
		answer          string
		given, expected fromService
		warnings        []string
	}{
		{whole, fromService{}, fromService{10 * time.Second, 0.4, 0.6}, nil},
		{whole, fromService{time.Second, 0.1, 0.9}, fromService{time.Second, 0.1, 0.9}, nil},
		{whole, fromService{threshold: 0.9}, fromService{10 * time.Second, 0.4, 0.9}, nil},
		{`{"interval_s": 10}`, fromService{}, fromService{10 * time.Second, 0.2, 0.75}, []string{"--alpha", "--threshold"}},
	} {
		var log bytes.Buffer
		p := asking(t, &log, c.answer)
		settings := c.given
		if err := p.ask(t.Context(), &settings); err != nil || settings != c.expected || p.asks.Load() {
			t.Errorf("%s, %+v: %+v, %v", c.answer, c.given, settings, err)
		}
		if strings.Count(log.String(), "level=WARN") != len(c.warnings) {
			t.Errorf("%s: %s", c.answer, &log)
		}
		for _, flag := range c.warnings {
			if !strings.Contains(log.String(), flag) {
				t.Errorf("%s: no warning names %s: %s", c.answer, flag, &log)
			}
		}
	}
}

func TestAServiceWithImpossibleSettingsIsAskedAgain(t *testing.T) {
	var log bytes.Buffer
	p := asking(t, &log, `{"interval_s": 1, "hot_above": 75}`, `{"interval_s": 1, "hot_above": 0.8, "ledger": {"alpha": 0.2}}`)
	var settings fromService
	if err := p.ask(t.Context(), &settings); err != nil || settings.threshold != 0.8 || !strings.Contains(log.String(), "hot_above: 75") {
		t.Errorf("%+v, %v: %s", settings, err, &log)
	}
}

func TestNamesOfSchedulersAreReadWithCommas(t *testing.T) {
	for text, expected := range map[string][]string{"*": nil, "a": {"a"}, "leeward-scheduler,batch": {"leeward-scheduler", "batch"}} {
		if names, err := schedulerNames(text); err != nil || !slices.Equal(names, expected) || (names == nil) != (expected == nil) {
			t.Errorf("%q: %q, %v", text, names, err)
		}
	}
}
