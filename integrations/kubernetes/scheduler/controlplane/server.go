package controlplane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// startServer starts the API server, and sets the configuration of clients.
func (c *ControlPlane) startServer(ctx context.Context) error {
	completed, err := c.serverOptions(ctx)
	if err != nil {
		return err
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return err
	}
	completedConfig, err := config.Complete()
	if err != nil {
		return err
	}
	server, err := app.CreateServerChain(completedConfig)
	if err != nil {
		return err
	}
	prepared, err := server.PrepareRun()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- prepared.Run(ctx) }()
	stopped := make(chan struct{})
	c.onStop(func() {
		cancel()
		<-stopped
	})
	c.Config = rest.CopyConfig(server.GenericAPIServer.LoopbackClientConfig)
	c.Config.QPS = -1
	failed := make(chan error, 1)
	go func() {
		defer close(stopped)
		failed <- <-ended
	}()
	return awaitHealth(ctx, c.Config, failed)
}

// serverOptions returns the options of the API server, given as the flags that an operator would give.
func (c *ControlPlane) serverOptions(ctx context.Context) (options.CompletedOptions, error) {
	key, err := writeKey(filepath.Join(c.folder, "service-accounts.key"))
	if err != nil {
		return options.CompletedOptions{}, err
	}
	server := options.NewServerRunOptions()
	server.Options.GenericServerRunOptions.ComponentGlobalsRegistry = c.components
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	sets := server.Flags()
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return options.CompletedOptions{}, err
	}
	address := listener.Addr().(*net.TCPAddr)
	server.SecureServing.Listener, server.SecureServing.BindPort = listener, address.Port
	server.SecureServing.ExternalAddress = address.IP
	err = flags.Parse(append([]string{
		"--etcd-servers=" + c.etcd.Config().AdvertiseClientUrls[0].String(),
		"--cert-dir=" + c.folder,
		"--service-cluster-ip-range=10.0.0.0/16",
		"--service-account-issuer=https://controlplane.invalid",
		"--service-account-key-file=" + key,
		"--service-account-signing-key-file=" + key,
		"--authorization-mode=RBAC",
		// No controller makes service accounts here, and none removes the taint of new nodes.
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
		// A loopback address is no endpoint of a service.
		"--endpoint-reconciler-type=none",
	}, c.flags...))
	if err != nil {
		return options.CompletedOptions{}, err
	}
	completed, err := server.Complete(ctx)
	if err != nil {
		return options.CompletedOptions{}, err
	}
	return completed, utilerrors.NewAggregate(completed.Validate())
}

// writeKey writes a new key for the tokens of service accounts, and returns its path.
func writeKey(path string) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, pem, 0o600)
}

// awaitHealth waits until the API server is healthy.
func awaitHealth(ctx context.Context, config *rest.Config, failed <-chan error) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		status := 0
		client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status)
		if status == http.StatusOK {
			return nil
		}
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return errTimeout
		case <-time.After(50 * time.Millisecond):
		}
	}
}
