// Package controlplane runs a control plane of Kubernetes in one process, for tests and measurements: etcd, kube-apiserver,
// the disruption controller, and any number of schedulers. Nodes are objects without machines, and a small kubelet starts
// the pods that are bound to them.
//
// Nothing leaves the loopback interface, and no container runs. The credentials of the process itself allow everything, and
// those of a service account what its roles allow.
package controlplane

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	utilcompatibility "k8s.io/apiserver/pkg/util/compatibility"
)

// startTimeout is the time for etcd and for the API server to start, each.
const startTimeout = time.Minute

func init() {
	// Several components in one process set up logging again and again.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
}

// ControlPlane is a running control plane.
type ControlPlane struct {
	// Config is that of clients that may do everything, without limits on their rate. Client is such a client.
	Config *rest.Config
	Client kubernetes.Interface

	folder string
	// flags are those of the API server beyond the ones that it needs here.
	flags      []string
	components compatibility.ComponentGlobalsRegistry
	etcd       *embed.Etcd
	stopped    []func()
}

// Start starts a control plane with its data and its log in a folder, and with more flags of the API server. The caller must
// stop it.
func Start(ctx context.Context, folder string, flags ...string) (*ControlPlane, error) {
	c := &ControlPlane{folder: folder, flags: flags}
	if err := c.start(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *ControlPlane) start(ctx context.Context) error {
	if err := c.redirectLog(); err != nil {
		return err
	}
	if err := c.registerComponents(); err != nil {
		return err
	}
	etcd, err := startEtcd(filepath.Join(c.folder, "etcd"))
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	c.etcd = etcd
	if err := c.startServer(ctx); err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	if c.Client, err = kubernetes.NewForConfig(c.Config); err != nil {
		return err
	}
	if err := c.startDisruptionController(ctx); err != nil {
		return fmt.Errorf("disruption controller: %w", err)
	}
	return nil
}

// Stop stops everything, etcd last: an API server without etcd waits for it in vain.
func (c *ControlPlane) Stop() {
	for i := len(c.stopped) - 1; i >= 0; i-- {
		c.stopped[i]()
	}
	c.stopped = nil
	if c.etcd != nil {
		c.etcd.Close()
		c.etcd = nil
	}
}

// onStop calls a function when the control plane stops, before those of earlier calls.
func (c *ControlPlane) onStop(stop func()) { c.stopped = append(c.stopped, stop) }

// redirectLog sends the log of the components to a file: it has hundreds of lines at the start alone.
func (c *ControlPlane) redirectLog() error {
	file, err := os.OpenFile(filepath.Join(c.folder, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("log", flag.ContinueOnError)
	klog.InitFlags(flags)
	// By default errors go to stderr too, and every stop of a scheduler has some.
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			return err
		}
	}
	klog.SetOutput(file)
	return nil
}

// registerComponents registers the version and the features of Kubernetes for the components of this control plane. A
// registry of its own allows several control planes, one after the other.
func (c *ControlPlane) registerComponents() error {
	features := utilfeature.DefaultMutableFeatureGate
	version := utilcompatibility.DefaultKubeEffectiveVersionForTest()
	version.SetEmulationVersion(features.EmulationVersion())
	version.SetMinCompatibilityVersion(features.MinCompatibilityVersion())
	c.components = compatibility.NewComponentGlobalsRegistry()
	if err := c.components.Register(compatibility.DefaultKubeComponent, version, features.DeepCopy()); err != nil {
		return err
	}
	return c.components.Set()
}

var errTimeout = errors.New("not ready within a minute")
