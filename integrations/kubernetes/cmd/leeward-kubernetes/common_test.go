package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/component-base/metrics"

	"leeward.dev/kubernetes/evictor"
)

func processOf(kube kubernetes.Interface, identity string) *process {
	return &process{
		common: common{namespace: "leeward", name: "leeward-evictor", identity: identity, elect: true},
		kube:   kube, registry: metrics.NewKubeRegistry(), watchdog: leaderelection.NewLeaderHealthzAdaptor(leaseDuration),
		log: slog.New(slog.DiscardHandler),
	}
}

func TestOfTwoProcessesOneLeadsAndTheOtherFollowsItsEnd(t *testing.T) {
	kube := kubefake.NewClientset()
	var working [2]atomic.Bool
	var ends [2]context.CancelFunc
	ended := make(chan error, 2)
	for i, identity := range []string{"a", "b"} {
		ctx, cancel := context.WithCancel(t.Context())
		ends[i] = cancel
		t.Cleanup(cancel)
		p := processOf(kube, identity)
		go func() {
			ended <- p.lead(ctx, func(ctx context.Context) {
				working[i].Store(true)
				<-ctx.Done()
				working[i].Store(false)
			})
		}()
		if i == 0 {
			eventually(t, "the first process does not lead", working[0].Load)
		}
	}
	time.Sleep(retryPeriod + time.Second)
	if working[1].Load() {
		t.Error("two processes lead")
	}
	ends[0]()
	eventually(t, "the second process does not lead after the end of the first", working[1].Load)
	ends[1]()
	for range ends {
		if err := <-ended; err != nil {
			t.Errorf("an ordered end: %v", err)
		}
	}
}

func TestWithoutAnElectionTheWorkBeginsAtOnce(t *testing.T) {
	p := processOf(kubefake.NewClientset(), "a")
	p.elect = false
	worked := false
	if err := p.lead(t.Context(), func(context.Context) { worked = true }); err != nil || !worked {
		t.Errorf("%v, %v", worked, err)
	}
}

func TestEventsOfTheLastWorkAreWritten(t *testing.T) {
	for _, elect := range []bool{false, true} {
		kube := kubefake.NewClientset()
		p := processOf(kube, "a")
		p.elect = elect
		ctx, cancel := context.WithCancel(t.Context())
		if err := p.record(ctx); err != nil {
			t.Fatal(err)
		}
		err := p.run(ctx, func(ctx context.Context) {
			cancel()
			time.Sleep(100 * time.Millisecond)
			pod := &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web-0"}
			p.recorder().Eventf(pod, nil, corev1.EventTypeNormal, "HotRack", "Evict", "evicted")
		})
		if err != nil {
			t.Fatal(err)
		}
		list, err := kube.EventsV1().Events("shop").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 || list.Items[0].Reason != "HotRack" {
			t.Errorf("election %v: %v, %+v", elect, err, list.Items)
		}
	}
}

func TestHealthReadinessAndMetricsAreServed(t *testing.T) {
	p := processOf(kubefake.NewClientset(), "a")
	evictor.NewMetrics(p.registry)
	get := func(path string) (int, string) {
		answer := httptest.NewRecorder()
		p.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		return answer.Code, answer.Body.String()
	}
	if code, _ := get("/healthz"); code != http.StatusOK {
		t.Errorf("health: %d", code)
	}
	if code, _ := get("/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("before it is ready: %d", code)
	}
	p.controllers = "https://leeward:7600"
	p.asks.Store(true)
	if code, text := get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "waiting for the service at https://leeward:7600") {
		t.Errorf("before the service answers: %d: %s", code, text)
	}
	p.asks.Store(false)
	p.ready.Store(true)
	if code, _ := get("/readyz"); code != http.StatusOK {
		t.Errorf("ready: %d", code)
	}
	code, text := get("/metrics")
	for _, line := range []string{
		`leeward_evictor_evictions_total{outcome="would_evict"} 0`, `leeward_evictor_stays_total{reason="disruption_budget"} 0`,
		"leeward_evictor_leader 0",
	} {
		if code != http.StatusOK || !strings.Contains(text, line) {
			t.Errorf("status %d: %q is missing in\n%s", code, line, text)
		}
	}
}

func eventually(t *testing.T, problem string, holds func() bool) {
	t.Helper()
	for range 3000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("after 30 s: %s", problem)
}
