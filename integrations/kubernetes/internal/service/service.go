// Package service runs the service of this repository beside tests.
package service

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Small is a cluster file with the hosts r0h0 to r3h3.
const Small = "racks: 4\nhosts_per_rack: 4\nnic: 1Gbps\nrack_link: 2Gbps\n"

// readyTimeout is the time for the service to start.
const readyTimeout = 10 * time.Second

// Command returns the command of the service. The environment variable LEEWARDD has it; a built one of this repository needs
// none. Without any, the test is skipped.
func Command(t testing.TB) []string {
	t.Helper()
	command := strings.Fields(os.Getenv("LEEWARDD"))
	if len(command) == 0 {
		command = built()
	}
	if len(command) == 0 {
		t.Skip("no leewardd: build it, or name its command in LEEWARDD")
	}
	return command
}

// Start starts the service with a cluster file and flags, and returns its address. The service ends with the test.
func Start(t testing.TB, cluster string, flags ...string) string {
	t.Helper()
	command := Command(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "cluster.yaml")
	if err := os.WriteFile(file, []byte(cluster), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	arguments := append(slices.Clone(command[1:]),
		"--cluster", file, "--interval", "10s", "--listen", address, "--store", filepath.Join(folder, "store"))
	process := exec.Command(command[0], append(arguments, flags...)...)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		_ = process.Wait()
		log.Close()
	})
	for began := time.Now(); time.Since(began) < readyTimeout; time.Sleep(10 * time.Millisecond) {
		answer, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			continue
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return "http://" + address
		}
	}
	text, _ := os.ReadFile(log.Name())
	t.Fatalf("the service is not ready after %v: %s", readyTimeout, text)
	return ""
}

// built returns the built command of the repository around the working folder, nil without one.
func built() []string {
	folder, err := os.Getwd()
	for err == nil && folder != filepath.Dir(folder) {
		for _, path := range [...]string{"target/release/leewardd", "dist/leewardd"} {
			if _, err := os.Stat(filepath.Join(folder, path)); err == nil {
				return []string{filepath.Join(folder, path)}
			}
		}
		folder = filepath.Dir(folder)
	}
	return nil
}
