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
)

const help = `The controllers of Leeward in a Kubernetes cluster.

Usage: leeward-kubernetes COMMAND [flags]

Commands:
  evictor   moves migratable pods off hot racks; says by default only which ones it would move
  sync      writes nodes, racks, speeds, taints and cordons into the service's cluster

Examples:
  leeward-kubernetes evictor --controller https://leeward:7600 --token-file /etc/leeward/token
  leeward-kubernetes evictor --controller https://leeward:7600 --mode evict
  leeward-kubernetes sync --controller https://leeward:7600 --mode report --kubeconfig ~/.kube/config

` + "`leeward-kubernetes COMMAND --help` has the flags of a command.\n"

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
		fmt.Fprint(stdout, help)
		return 0
	}
	command, ok := map[string]func(context.Context, *flag.FlagSet, []string, *slog.Logger) error{
		"evictor": runEvictor, "sync": runSync,
	}[arguments[0]]
	if !ok {
		fmt.Fprintf(stderr, "error: %q: no such command: expected evictor or sync\n", arguments[0])
		return 2
	}
	set := flag.NewFlagSet("leeward-kubernetes "+arguments[0], flag.ContinueOnError)
	set.SetOutput(stderr)
	err := command(ctx, set, arguments[1:], slog.New(slog.NewTextHandler(stderr, nil)))
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp), ctx.Err() != nil && errors.Is(err, context.Canceled):
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "error: %s\n", err)
		return 2
	}
	fmt.Fprintf(stderr, "error: %s\n", err)
	return 1
}
