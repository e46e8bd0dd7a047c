package evictor

import (
	"context"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"leeward.dev/kubernetes/snapshot"
)

func TestAnEvictionHasADeadline(t *testing.T) {
	w := newWorld(t, 1, 40e9)
	heat(w)
	runner := w.runner(Evict, silent{})
	seen := false
	runner.options.Client = &watchful{Interface: w.client, seen: func(ctx context.Context) {
		deadline, ok := ctx.Deadline()
		seen = ok && time.Until(deadline) <= evictionDeadline
	}}
	for len(w.left) == 0 && w.step < 10 {
		run(w, runner, 1)
	}
	if !seen {
		t.Error("an eviction may wait for ever")
	}
}

// watchful is a client that shows the contexts of evictions.
type watchful struct {
	kubernetes.Interface
	seen func(context.Context)
}

func (w *watchful) CoreV1() typedcorev1.CoreV1Interface {
	return &watchfulCore{CoreV1Interface: w.Interface.CoreV1(), seen: w.seen}
}

type watchfulCore struct {
	typedcorev1.CoreV1Interface
	seen func(context.Context)
}

func (w *watchfulCore) Pods(namespace string) typedcorev1.PodInterface {
	return &watchfulPods{PodInterface: w.CoreV1Interface.Pods(namespace), seen: w.seen}
}

type watchfulPods struct {
	typedcorev1.PodInterface
	seen func(context.Context)
}

func (w *watchfulPods) EvictV1(ctx context.Context, eviction *policyv1.Eviction) error {
	w.seen(ctx)
	return w.PodInterface.EvictV1(ctx, eviction)
}

func TestReliefCountsUntilTelemetryShowsItAlsoIfTheClocksDiffer(t *testing.T) {
	for _, ahead := range []time.Duration{0, 2 * time.Minute, -2 * time.Minute} {
		w := newWorld(t, 1, 40e9)
		heat(w)
		w.plant.network.Windows = true
		runner := w.runner(Evict, silent{})
		local := func() time.Time { return w.now().Add(-ahead) }
		runner.options.Settings.RackCooldown, runner.options.Settings.WorkloadCooldown = 1, 1
		for range 20 {
			// No replacement comes.
			clear(w.pending)
			w.advance()
			next, err := snapshot.Read(w.plant.network.Whole(), nil, local())
			if err != nil {
				t.Fatal(err)
			}
			runner.OnSnapshot(next)
			select {
			case <-runner.closed:
				runner.Round(context.Background(), local())
			default:
			}
			if len(w.left) > 1 {
				break
			}
		}
		if len(w.left) != 1 {
			t.Errorf("clock ahead by %v: %d pods left for the relief of one", ahead, len(w.left))
		}
	}
}
