package main

import (
	"bytes"
	"context"
	"flag"
	"io"
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
		{[]string{"evictor", "--mode", "on"}, `--mode: "on": expected dry-run, evict or stop`},
		{[]string{"evictor", "--threshold", "75"}, "--threshold: 75: expected a share"},
		{[]string{"evictor", "--hot-windows", "0"}, "--hot-windows: 0: expected 1 to 1000"},
		{[]string{"evictor", "--window", "1s", "--interval", "1m"}, "--window: 1s"},
		{[]string{"evictor", "--window", "5s", "--snapshot-interval", "10s"}, "at least the interval of snapshots, 10s"},
		{[]string{"evictor", "--alpha", "2"}, "--alpha: 2"},
		{[]string{"evictor", "--controller", "leeward"}, `--controller: "leeward"`},
		{[]string{"evictor", "--controller", "http://a", "--max-age", "1s"}, "--max-age: 1s"},
		{[]string{"evictor", "--controller", "http://a", "--snapshot-interval", "1ms"}, "--snapshot-interval: 1ms"},
		{[]string{"evictor", "--controller", "http://a", "--ca", "/does/not/exist"}, "--ca: open /does/not/exist"},
		{[]string{"evictor", "--schedulers", ""}, `--schedulers: ""`},
		{[]string{"evictor", "--schedulers", "a,*"}, `--schedulers: "a,*": expected names with commas, or * for all`},
		{[]string{"evictor", "--moves", "both"}, `--moves: "both"`},
		{[]string{"evictor", "--hot", "1"}, "flag provided but not defined: --hot"},
		{[]string{"sync"}, "--controller: missing"},
		{[]string{"sync", "--mode", "on"}, `--mode: "on": expected apply or report`},
		{[]string{"sync", "--nic", "fast"}, `--nic: "fast"`},
		{[]string{"sync", "--rack-link", "-1"}, `--rack-link: "-1"`},
	} {
		code, stdout, stderr := execute(c.arguments...)
		if code != 2 || stdout != "" || !strings.HasPrefix(stderr, "error: ") || !strings.Contains(stderr, c.problem) ||
			strings.Count(stderr, "\n") > 2 {
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

func TestTheHelpOfACommandHasExamplesAndFlagsOnStdout(t *testing.T) {
	for _, c := range commands() {
		code, stdout, stderr := execute(c.name, "--help")
		if code != 0 || stderr != "" || !strings.HasPrefix(stdout, c.summary) || !strings.Contains(stdout, "  --controller address ") {
			t.Errorf("%s: exit %d: %s%s", c.name, code, stdout, stderr)
		}
		for _, example := range c.examples {
			if !strings.Contains(stdout, "\n  "+example+"\n") {
				t.Errorf("%s: %q is missing", c.name, example)
			}
		}
	}
}

func TestTheFlagsOfExamplesExist(t *testing.T) {
	for _, c := range commands() {
		for _, example := range c.examples {
			set := flag.NewFlagSet("", flag.ContinueOnError)
			set.SetOutput(io.Discard)
			if err := c.run(context.Background(), set, []string{"--no-such-flag"}, nil); err == nil {
				t.Fatal("no error")
			}
			if err := set.Parse(strings.Fields(example)[2:]); err != nil || set.NArg() > 0 {
				t.Errorf("%s: %v", example, err)
			}
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
	for _, c := range commands() {
		set := flag.NewFlagSet("", flag.ContinueOnError)
		set.SetOutput(io.Discard)
		// The flags are defined before the error.
		if err := c.run(context.Background(), set, []string{"--no-such-flag"}, nil); err == nil {
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
