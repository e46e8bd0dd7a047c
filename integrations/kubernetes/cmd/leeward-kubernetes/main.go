// The controllers of Leeward in a Kubernetes cluster: `evictor` moves pods off hot racks, and `sync` writes the nodes into the
// service's cluster. Each runs as a Deployment; of several replicas one decides.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"leeward.dev/kubernetes/internal/help"
)

// command is a subcommand.
type command struct {
	name, summary string
	// examples are those of the command's help; the first one is in the help of the program too.
	examples []string
	run      func(context.Context, *flag.FlagSet, []string, *slog.Logger) error
}

// commands lists the subcommands.
func commands() []command {
	return []command{evictorCommand, syncCommand}
}

// errUsage is an invalid argument.
var errUsage = errors.New("invalid argument")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs a command until the context ends, and returns the exit code.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
	if len(arguments) == 0 || arguments[0] == "help" || arguments[0] == "--help" || arguments[0] == "-h" {
		writeHelp(stdout)
		return 0
	}
	for _, c := range commands() {
		if c.name == arguments[0] {
			return c.execute(ctx, arguments[1:], stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "error: %q: no such command: expected evictor or sync\n", arguments[0])
	return 2
}

func (c command) execute(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet(c.name, flag.ContinueOnError)
	// The help goes to stdout, and errors have one line.
	set.SetOutput(io.Discard)
	err := c.run(ctx, set, arguments, slog.New(slog.NewTextHandler(stderr, nil)))
	switch {
	case err == nil, ctx.Err() != nil && errors.Is(err, context.Canceled):
		return 0
	case errors.Is(err, flag.ErrHelp):
		help.Command{Usage: "leeward-kubernetes " + c.name, Summary: c.summary, Examples: c.examples}.Write(stdout, set)
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "error: %s\nhint: `leeward-kubernetes %s --help` lists its flags\n", err, c.name)
		return 2
	}
	fmt.Fprintf(stderr, "error: %s\n", err)
	return 1
}

func writeHelp(to io.Writer) {
	fmt.Fprint(to, "The controllers of Leeward in a Kubernetes cluster.\n\nUsage: leeward-kubernetes COMMAND [flags]\n\nCommands:\n")
	for _, c := range commands() {
		fmt.Fprintf(to, "  %-9s %s\n", c.name, c.summary)
	}
	fmt.Fprint(to, "\nExamples:\n")
	for _, c := range commands() {
		fmt.Fprintf(to, "  %s\n", c.examples[0])
	}
	fmt.Fprint(to, "\n`leeward-kubernetes COMMAND --help` has the flags and examples of a command.\n")
}
