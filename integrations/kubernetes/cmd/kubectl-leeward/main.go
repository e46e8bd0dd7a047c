// The kubectl plugin `kubectl leeward`. Put it on the path as kubectl-leeward.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"leeward.dev/kubernetes/kubectl"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := kubectl.Run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv, (*kubectl.Connection).Open)
	stop()
	os.Exit(code)
}
