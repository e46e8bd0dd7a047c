package integration

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"leeward.dev/kubernetes/scheduler/controlplane"
)

// Programs by the name of their image, each built once.
var programs = map[string]func() (string, error){
	"leeward-kubernetes": sync.OnceValues(func() (string, error) { return build("leeward-kubernetes", "../..", "./cmd/leeward-kubernetes") }),
	"leeward-scheduler":  sync.OnceValues(func() (string, error) { return build("leeward-scheduler", "..", ".") }),
}

// build builds a program and returns its path.
func build(name, folder, pkg string) (string, error) {
	path := filepath.Join(workspace, name)
	command := exec.Command("go", "build", "-o", path, pkg)
	command.Dir = folder
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, output)
	}
	return path, nil
}

// program is a running program of the chart.
type program struct {
	t       *testing.T
	name    string
	command *exec.Cmd
	// address is that of its metrics.
	address string
	log     string
	ended   chan struct{}
}

// startProgram starts the program of a Deployment of the chart: with the arguments that the chart gives it, with a token of its
// service account, and with further arguments, of which the last one of a flag counts. It ends with the test.
func startProgram(t *testing.T, deployment string, arguments ...string) *program {
	t.Helper()
	installed, err := plane.Client.AppsV1().Deployments(release).Get(t.Context(), deployment, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	spec := installed.Spec.Template.Spec
	image := spec.Containers[0].Image
	name := image[strings.LastIndex(image, "/")+1:]
	name, _, _ = strings.Cut(name, ":")
	path, err := programs[name]()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, name: deployment, address: listener.Addr().String(), ended: make(chan struct{})}
	listener.Close()
	log, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	p.log = log.Name()
	port := map[string]string{
		"leeward-kubernetes": "--listen=" + p.address,
		"leeward-scheduler":  fmt.Sprintf("--secure-port=%d", listener.Addr().(*net.TCPAddr).Port),
	}[name]
	p.command = exec.Command(path, slices.Concat(spec.Containers[0].Args, []string{port}, arguments)...)
	p.command.Stdout, p.command.Stderr = log, log
	// The program has no credentials but those of the arguments.
	p.command.Env = []string{"HOME=" + t.TempDir()}
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.command.Wait()
		log.Close()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.signal(syscall.SIGCONT)
		p.signal(syscall.SIGTERM)
		select {
		case <-p.ended:
		case <-time.After(20 * time.Second):
			t.Errorf("%s does not end", p.name)
			p.signal(syscall.SIGKILL)
			<-p.ended
		}
		if t.Failed() {
			text, _ := os.ReadFile(p.log)
			t.Logf("%s:\n%s", p.name, text)
		}
	})
	return p
}

func (p *program) signal(signal os.Signal) {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
}

// hasEnded returns true if the process has ended.
func (p *program) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// metric returns the value of a metric with its labels as /metrics shows it, and false if the program does not answer.
func (p *program) metric(name string) (float64, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+"/metrics", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, false
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(io.LimitReader(answer.Body, 1<<20))
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			value, err := strconv.ParseFloat(text, 64)
			return value, err == nil
		}
	}
	return 0, false
}

// credentials writes a file with a token of a service account of the chart, as the flag --kubeconfig takes it.
func credentials(t *testing.T, account string) string {
	t.Helper()
	config, err := plane.ServiceAccount(t.Context(), release, account)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteCredentials(path, config); err != nil {
		t.Fatal(err)
	}
	return path
}

// startController starts the program of the evictor or of the sync beside a service. Its Lease is a new one.
func startController(t *testing.T, deployment, service string, arguments ...string) *program {
	t.Helper()
	return startProgram(t, deployment, append([]string{
		"--kubeconfig=" + credentials(t, deployment), "--namespace=" + release, "--identity=" + deployment,
		"--controller=" + service, "--token-file=", "--ca-file=",
	}, arguments...)...)
}

// quickly are the arguments of an evictor with the windows of these tests, for a service whose links report at the interval. The
// scheduler of these tests is the default scheduler.
func quickly(more ...string) []string {
	return append([]string{
		"--interval=" + interval.String(), "--alpha=0.2", "--window=" + evictionWindow.String(), "--hot-windows=3",
		"--rack-cooldown=1", "--lasts=20s", "--snapshot-interval=" + interval.String(), "--max-age=20s", "--deadline=5s",
		"--threshold=0.75", "--schedulers=*",
	}, more...)
}

// startSchedulerProgram starts the program of the scheduler beside a service, with the configuration that the chart gives it.
func startSchedulerProgram(t *testing.T, service string) *program {
	t.Helper()
	const deployment = "leeward-scheduler"
	kubeconfig := credentials(t, deployment)
	object, err := plane.Client.CoreV1().ConfigMaps(release).Get(t.Context(), deployment, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var configuration map[string]any
	if err := yaml.UnmarshalStrict([]byte(object.Data["scheduler.yaml"]), &configuration); err != nil {
		t.Fatal(err)
	}
	// In a pod of the chart, these files are volumes.
	configuration["clientConnection"].(map[string]any)["kubeconfig"] = kubeconfig
	profile := configuration["profiles"].([]any)[0].(map[string]any)
	for _, plugin := range profile["pluginConfig"].([]any) {
		args := plugin.(map[string]any)["args"].(map[string]any)
		args["controllers"] = []string{service}
		delete(args, "tokenFile")
		delete(args, "authorityFile")
	}
	text, err := yaml.Marshal(configuration)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return startProgram(t, deployment, "--config="+path, "--bind-address=127.0.0.1",
		"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)
}

// removeLease removes a Lease, so that the next leader creates it.
func removeLease(t *testing.T, name string) {
	t.Helper()
	err := plane.Client.CoordinationV1().Leases(release).Delete(context.Background(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// removeRecords removes the ConfigMap of the evictor.
func removeRecords(t *testing.T) {
	t.Helper()
	err := plane.Client.CoreV1().ConfigMaps(release).Delete(context.Background(), configMap, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}
