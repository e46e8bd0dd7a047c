// The command testplane runs the control plane of the tests for a program in another language, until its input ends.
//
// It writes a kubeconfig into a folder, and a log of all requests of clients, and then a line on its output:
//
//	FOLDER/kubeconfig   the connection, for kubectl
//	FOLDER/audit        a line of JSON for each request, with its verb and the client's userAgent
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"leeward.dev/kubernetes/scheduler/controlplane"
)

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

func main() {
	folder := flag.String("folder", "", "empty `folder` for the data")
	flag.Parse()
	if *folder == "" {
		fmt.Fprintln(os.Stderr, "error: -folder: missing: name an empty folder")
		os.Exit(2)
	}
	if err := run(context.Background(), *folder); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder string) error {
	policy := filepath.Join(folder, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	audit := "--audit-log-path=" + filepath.Join(folder, "audit")
	plane, err := controlplane.Start(ctx, folder, "--audit-policy-file="+policy, audit)
	if err != nil {
		return err
	}
	defer plane.Stop()
	if err := controlplane.WriteCredentials(filepath.Join(folder, "kubeconfig"), plane.Config); err != nil {
		return err
	}
	fmt.Println("ready")
	// The parent closes the pipe when it ends, however it ends.
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
