package trafficmatrix

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	restclient "k8s.io/client-go/rest"
	fwk "k8s.io/kube-scheduler/framework"

	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/placements"
	"leeward.dev/kubernetes/snapshot"
)

// New returns the plugin with a follower of its own. It is the factory for the registry of the scheduler; a program that
// follows the network already uses [Environment.New].
func New(ctx context.Context, object runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	read, err := readArgs(object)
	if err != nil {
		return nil, err
	}
	client, err := snapshot.NewClient(read.Settings())
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
	estimator, err := ledger.NewEstimator(ledger.DefaultInterval, ledger.DefaultAlpha)
	if err != nil {
		return nil, err
	}
	// The controller counts the apps itself, so there are no placements beside its snapshots.
	network, err := placements.New(Name, estimator, placements.DefaultLasts)
	if err != nil {
		return nil, err
	}
	feed := snapshot.NewFeed(client.Settings().MaxAge)
	follower := snapshot.NewFollower(client, feed, network.OnSnapshot, rand.Float64, slog.Default())
	plugin, err := Environment{
		View: network.View, Fresh: func(now time.Time) bool { return feed.IsFresh(feed.Last(), now) },
		Call: caller.Call, Objects: objects, Now: time.Now, Log: slog.Default(),
	}.New(ctx, read.settings(), handle)
	if err != nil {
		return nil, err
	}
	go follower.Run(ctx)
	return plugin, nil
}

// objectsOf returns a client for traffic matrices. The scheduler's own client may speak a binary form that only the kinds of
// Kubernetes have.
func objectsOf(handle fwk.Handle) (dynamic.Interface, error) {
	config := restclient.CopyConfig(handle.KubeConfig())
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	return dynamic.NewForConfig(config)
}
