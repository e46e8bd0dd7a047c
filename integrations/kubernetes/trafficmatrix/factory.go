package trafficmatrix

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	restclient "k8s.io/client-go/rest"
	fwk "k8s.io/kube-scheduler/framework"

	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/networkload"
	"leeward.dev/kubernetes/placements"
	"leeward.dev/kubernetes/snapshot"
)

// New returns the plugin beside the plugins NetworkLoad of the scheduler. It is the factory for the registry of the scheduler; a
// program that follows the network already uses [Environment.New].
func New(ctx context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	read, err := readArgs(object)
	if err != nil {
		return nil, err
	}
	own, follow, err := newNetwork(read.Settings())
	if err != nil {
		return nil, fmt.Errorf("%s: arguments: %w", Name, err)
	}
	caller, err := snapshot.NewClient(read.Settings())
	if err != nil {
		return nil, fmt.Errorf("%s: arguments: %w", Name, err)
	}
	objects, err := objectsOf(handle)
	if err != nil {
		return nil, fmt.Errorf("%s: client of the API server: %w", Name, err)
	}
	// The plugin looks at the network once the informers run, when all plugins are there.
	network := sync.OnceValue(func() *placements.Network {
		if shared := networkload.NetworkOf(handle.SharedInformerFactory(), read.Service); shared != nil {
			return shared
		}
		go follow(ctx)
		return own
	})
	return Environment{
		View:  func() *placements.View { return network().View() },
		Fresh: func(now time.Time) bool { return network().IsFresh(now) },
		Call:  caller.Call, Objects: objects, Now: time.Now, Log: slog.Default(),
	}.New(ctx, read.settings(), handle)
}

// newNetwork returns a network without own placements, and the function that follows it until a context ends.
func newNetwork(settings snapshot.Settings) (*placements.Network, func(context.Context), error) {
	client, err := snapshot.NewClient(settings)
	if err != nil {
		return nil, nil, err
	}
	estimator, err := ledger.NewEstimator(ledger.DefaultInterval, ledger.DefaultAlpha)
	if err != nil {
		return nil, nil, err
	}
	none, err := placements.New(Name, estimator, placements.DefaultLasts)
	if err != nil {
		return nil, nil, err
	}
	network := &placements.Network{Feed: snapshot.NewFeed(client.Settings().MaxAge), Placements: none}
	return network, snapshot.NewFollower(client, network.Feed, none.OnSnapshot, rand.Float64, slog.Default()).Run, nil
}

// objectsOf returns a client for traffic matrices. The scheduler's own client may speak a binary form that only the kinds of
// Kubernetes have.
func objectsOf(handle fwk.Handle) (dynamic.Interface, error) {
	config := restclient.CopyConfig(handle.KubeConfig())
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	return dynamic.NewForConfig(config)
}
