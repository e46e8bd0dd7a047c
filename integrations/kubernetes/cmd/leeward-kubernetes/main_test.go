package main

import (
	"bytes"
	"context"
	"flag"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
)

func execute(arguments ...string) (int, string, string) {
	var stdout, stderr bytes.Buffer
	code := run(context.Background(), arguments, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestInvalidArgumentsAreNamed(t *testing.T) {
	t.Setenv("LEEWARD_CONTROLLER", "")
	for _, c := range []struct {
		arguments []string
		problem   string
	}{
		{[]string{"evict"}, `"evict": no such command`},
		{[]string{"evictor", "now"}, `"now": expected flags only`},
		{[]string{"evictor"}, "--controller: missing"},
		{[]string{"evictor", "--mode", "on"}, `mode: "on": expected dry-run, evict or stop`},
		{[]string{"evictor", "--threshold", "75"}, "threshold: 75: expected a share"},
		{[]string{"evictor", "--hot-windows", "0"}, "hot windows: 0"},
		{[]string{"evictor", "--window", "1s", "--interval", "1m"}, "window: 1s"},
		{[]string{"evictor", "--window", "5s", "--snapshot-interval", "10s"}, "at least the interval of snapshots, 10s"},
		{[]string{"evictor", "--alpha", "2"}, "alpha: 2"},
		{[]string{"evictor", "--controller", "leeward"}, `controllers: "leeward"`},
		{[]string{"sync"}, "--controller: missing"},
		{[]string{"sync", "--mode", "on"}, `mode: "on": expected apply or report`},
		{[]string{"sync", "--nic", "fast"}, `--nic: "fast"`},
		{[]string{"sync", "--rack-link", "-1"}, `--rack-link: "-1"`},
	} {
		code, stdout, stderr := execute(c.arguments...)
		if code != 2 || stdout != "" || !strings.Contains(stderr, "error: ") || !strings.Contains(stderr, c.problem) {
			t.Errorf("%v: exit %d: %s%s", c.arguments, code, stdout, stderr)
		}
	}
}

func TestHelpIsOnStdoutAndNamesBothCommands(t *testing.T) {
	for _, arguments := range [][]string{nil, {"help"}, {"--help"}, {"-h"}} {
		code, stdout, stderr := execute(arguments...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, "evictor") || !strings.Contains(stdout, "sync") {
			t.Errorf("%v: exit %d: %s%s", arguments, code, stdout, stderr)
		}
	}
}

// The README is the reference of the flags.
func TestTheReadmeHasEachFlagAndNoOther(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{}
	for _, command := range []func(context.Context, *flag.FlagSet, []string, *slog.Logger) error{runEvictor, runSync} {
		set := flag.NewFlagSet("", flag.ContinueOnError)
		set.SetOutput(io.Discard)
		// The flags are defined before the error.
		if err := command(context.Background(), set, []string{"--no-such-flag"}, nil); err == nil {
			t.Fatal("no error")
		}
		set.VisitAll(func(f *flag.Flag) { flags[f.Name] = true })
	}
	described := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `--[^|]*").FindAllString(string(readme), -1) {
		for _, name := range regexp.MustCompile("--[a-z-]+").FindAllString(row, -1) {
			described[strings.TrimPrefix(name, "--")] = true
		}
	}
	for name := range flags {
		if !described[name] {
			t.Errorf("--%s is not in the README", name)
		}
	}
	for name := range described {
		if !flags[name] {
			t.Errorf("--%s of the README does not exist", name)
		}
	}
}
