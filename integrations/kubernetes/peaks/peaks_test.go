package peaks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"leeward.dev/kubernetes/demand"
	network "leeward.dev/kubernetes/internal/fake"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/snapshot"
)

// uid returns the UID of a pod with a number.
func uid(number int) string { return fmt.Sprintf("5f0c9b9e-1d3a-4f43-9a53-%012x", number) }

// podOf returns a pod of the Deployment web on a node.
func podOf(number int, node string) *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprintf("web-7d4b9c-%d", number), UID: types.UID(uid(number)),
			Labels:          map[string]string{"pod-template-hash": "7d4b9c"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-7d4b9c", Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: node},
	}
}

// podsOf returns pods by their UID.
func podsOf(pods ...*corev1.Pod) Pods {
	return func(wanted string) []*corev1.Pod {
		var found []*corev1.Pod
		for _, pod := range pods {
			if uidOf(pod) == wanted {
				found = append(found, pod)
			}
		}
		return found
	}
}

var web = demand.Workload{Namespace: "shop", Kind: "Deployment", Name: "web"}

// scene is a follower beside a service.
type scene struct {
	t        *testing.T
	service  *network.Controller
	follower *Follower
	now      time.Time
	log      strings.Builder
}

func newScene(t *testing.T, pods Pods) *scene {
	t.Helper()
	s := &scene{t: t, service: network.NewController(network.Tree(0, 2, 2)), now: network.Start}
	address, err := s.service.Serve(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	client, err := snapshot.NewClient(snapshot.Settings{Controllers: []string{address}, Deadline: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s.follower = New(Options{
		Call: client.Call, Pods: pods, Now: func() time.Time { return s.now }, Random: func() float64 { return 0.5 },
		Log: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	return s
}

func (s *scene) expect(workload demand.Workload, egress, ingress int64, known bool) {
	s.t.Helper()
	if out, in, ok := s.follower.Peaks(workload); out != egress || in != ingress || ok != known {
		s.t.Errorf("%v: %d, %d, %v: expected %d, %d, %v", workload, out, in, ok, egress, ingress, known)
	}
}

func TestPeaksOfAllPagesCountOnceThereAreEnoughObservations(t *testing.T) {
	s := newScene(t, nil)
	s.expect(web, 0, 0, false)
	listed := []network.Peak{
		{Job: web.String(), Egress: 7, Ingress: 8, Observations: leastObservations},
		{Job: "shop/Deployment/new", Egress: 7, Ingress: 8, Observations: leastObservations - 1},
		{Job: "shop/StatefulSet/absurd", Egress: math.MaxInt64, Ingress: 1, Observations: math.MaxInt64},
		{Job: "shop/StatefulSet/negative", Egress: -1, Ingress: 1, Observations: 100},
		{Job: "crawl", Egress: 1, Ingress: 1, Observations: 100},
		{Job: "a//b", Egress: 1, Ingress: 1, Observations: 100},
	}
	for number := range 20 {
		listed = append(listed, network.Peak{
			Job: fmt.Sprintf("other/StatefulSet/s%d", number), Egress: int64(number), Observations: 100,
		})
	}
	s.service.SetPeaks(listed...)
	s.follower.step(t.Context())
	s.expect(web, 7, 8, true)
	s.expect(demand.Workload{Namespace: "shop", Kind: "Deployment", Name: "new"}, 0, 0, false)
	s.expect(demand.Workload{Namespace: "shop", Kind: "StatefulSet", Name: "absurd"}, ledger.MaxRate, 1, true)
	s.expect(demand.Workload{Namespace: "shop", Kind: "StatefulSet", Name: "negative"}, 0, 0, false)
	for number := range 20 {
		workload := demand.Workload{Namespace: "other", Kind: "StatefulSet", Name: fmt.Sprintf("s%d", number)}
		s.expect(workload, int64(number), 0, true)
	}
	if counts := s.follower.Counts(); counts.Workloads != 22 || counts.ReadFailures != 0 {
		t.Errorf("%+v", counts)
	}
}

func TestTheLastPeaksCountForAnHourWithoutTheService(t *testing.T) {
	s := newScene(t, nil)
	s.service.SetPeaks(network.Peak{Job: web.String(), Egress: 7, Ingress: 8, Observations: 100})
	s.follower.step(t.Context())
	s.service.Intercept(func(writer http.ResponseWriter, _ *http.Request) bool {
		http.Error(writer, `{"detail": "no leader"}`, http.StatusServiceUnavailable)
		return true
	})
	for _, age := range []time.Duration{time.Minute, maxAge} {
		s.now = network.Start.Add(age)
		s.follower.step(t.Context())
		s.expect(web, 7, 8, true)
	}
	s.now = network.Start.Add(maxAge + time.Second)
	s.expect(web, 0, 0, false)
	if counts := s.follower.Counts(); counts.Workloads != 0 || counts.ReadFailures != 2 || counts.Age != maxAge+time.Second {
		t.Errorf("%+v", counts)
	}
	s.service.Intercept(nil)
	s.follower.step(t.Context())
	s.expect(web, 7, 8, true)
	if text := s.log.String(); strings.Count(text, "no leader") != 1 || strings.Count(text, "read again") != 1 {
		t.Errorf("each change is one line: %s", text)
	}
}

// randomAnswer returns an answer with fields of which each may be anything. Some answers end early.
func randomAnswer(random *rand.Rand) string {
	value := func(values ...string) string { return values[random.IntN(len(values))] }
	number := func() string {
		return value("7", "7", "0", "-5", "1e99", "9223372036854775807", "9223372036854775808", "0.5", `"7"`, "null", "NaN")
	}
	long := `"` + strings.Repeat("x", 300) + `/b/c"`
	items, unnamed := []string{}, []string{}
	for range random.IntN(4) {
		items = append(items, fmt.Sprintf(`{"job": %s, "egress_peak_bps": %s, "ingress_peak_bps": %s, "observations": %s}`,
			value(`"a/b/c"`, `"a/b/d"`, `"a"`, `"//"`, long, "7"), value("3", number()), value("4", number()), value("99", number())))
		unnamed = append(unnamed, fmt.Sprintf(`{"pod": %s, "host": %s}`,
			value(`"`+uid(1)+`"`, `"x"`, long, "7"), value(`"r0h0"`, `"r9h9"`, "null")))
	}
	text := fmt.Sprintf(`{"items": [%s], "next": %s, "window_s": %s, "named": %s, "unnamed": [%s]}`,
		strings.Join(items, ", "), value("null", "null", `"a"`, `"b"`, `""`, "7"), value("86400", number()), number(),
		strings.Join(unnamed, ", "))
	if random.IntN(10) == 0 {
		return text[:random.IntN(len(text))]
	}
	return text
}

func TestNoAnswerOfAServiceGivesAnInvalidPeakOrEndsNever(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tables, answers := 0, 0
	for range 20_000 {
		requests := 0
		call := func(context.Context, string, string, []byte) ([]byte, error) {
			if requests++; requests > mostWorkloads {
				t.Fatal("the list does not end")
			}
			return []byte(randomAnswer(random)), nil
		}
		if table, err := Fetch(t.Context(), call); err == nil {
			tables += min(table.Len(), 1)
			for workload, rates := range table.rates {
				if rates[0] < 0 || rates[1] < 0 || rates[0] > ledger.MaxRate || rates[1] > ledger.MaxRate {
					t.Fatalf("%v: %v", workload, rates)
				}
			}
			if table.Window < 0 {
				t.Fatal(table.Window)
			}
		}
		requests = 0
		named, err := namePods(t.Context(), call, podsOf(podOf(1, "r0h0")))
		if named < 0 || requests > mostRounds {
			t.Fatal(named, requests)
		}
		if err == nil {
			answers++
		}
	}
	if tables < 100 || answers < 100 {
		t.Errorf("%d tables and %d answers are valid: the test shows nothing", tables, answers)
	}
}

func TestAPageThatLeadsBackIsAnError(t *testing.T) {
	for _, next := range []string{"", "a", "b"} {
		call := func(context.Context, string, string, []byte) ([]byte, error) {
			return json.Marshal(map[string]any{"items": []any{}, "next": next})
		}
		if _, err := Fetch(t.Context(), call); err == nil || !strings.Contains(err.Error(), "ends with") {
			t.Errorf("%q: %v", next, err)
		}
	}
}

func TestPodsAreNamedOnTheirOwnNodeOnly(t *testing.T) {
	s := newScene(t, podsOf(podOf(1, "r0h0"), podOf(2, "r1h0"), podOf(3, "r0h0")))
	s.service.ReportPods(
		network.Pod{UID: uid(1), Host: "r0h0"}, network.Pod{UID: strings.ReplaceAll(uid(2), "-", ""), Host: "r1h0"},
		// An agent that reports the pod of another node, and a pod that nobody knows.
		network.Pod{UID: uid(3), Host: "r1h1"}, network.Pod{UID: uid(4), Host: "r0h0"},
	)
	s.follower.step(t.Context())
	named := s.service.NamedPods()
	if len(named) != 2 || named[0].UID != uid(1) || named[0].Job != "shop/Deployment/web" || named[1].Host != "r1h0" {
		t.Errorf("%v", named)
	}
	s.follower.step(t.Context())
	if counts := s.follower.Counts(); counts.Named != 2 || counts.NameFailures != 0 {
		t.Errorf("%+v", counts)
	}
}

func TestManyPodsAreNamedInOneIntervalAlsoBehindPodsThatNobodyKnows(t *testing.T) {
	var pods []*corev1.Pod
	for number := range 3000 {
		pods = append(pods, podOf(number, "r0h0"))
	}
	index := map[string]*corev1.Pod{}
	for _, pod := range pods {
		index[uidOf(pod)] = pod
	}
	s := newScene(t, func(uid string) []*corev1.Pod {
		if pod := index[uid]; pod != nil {
			return []*corev1.Pod{pod}
		}
		return nil
	})
	for number := range 1500 {
		s.service.ReportPods(network.Pod{UID: uid(10_000 + number), Host: "r0h0"})
	}
	for _, pod := range pods {
		s.service.ReportPods(network.Pod{UID: string(pod.UID), Host: "r0h0"})
	}
	for range 3 {
		s.follower.step(t.Context())
	}
	if named := s.follower.Counts().Named; named != 3000 {
		t.Errorf("%d pods are named", named)
	}
}

func TestAFollowerThatMayNotNamePodsReadsPeaks(t *testing.T) {
	s := newScene(t, podsOf(podOf(1, "r0h0")))
	s.service.SetPeaks(network.Peak{Job: web.String(), Egress: 7, Observations: 100})
	s.service.Intercept(func(writer http.ResponseWriter, request *http.Request) bool {
		if request.Method == http.MethodPost {
			http.Error(writer, `{"detail": "the role is read"}`, http.StatusForbidden)
		}
		return request.Method == http.MethodPost
	})
	s.follower.step(t.Context())
	s.expect(web, 7, 0, true)
	if counts := s.follower.Counts(); counts.NameFailures != 1 || !strings.Contains(s.log.String(), "pods are not named") {
		t.Errorf("%+v: %s", counts, s.log.String())
	}
}

func TestAnInformerKnowsPodsByTheUIDOfTheirAgent(t *testing.T) {
	static := podOf(2, "r0h0")
	static.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "0123456789abcdef0123456789abcdef"}
	factory := informers.NewSharedInformerFactory(kubefake.NewClientset(podOf(1, "r0h0"), static), 0)
	informer := factory.Core().V1().Pods().Informer()
	pods, err := PodsIn(informer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := PodsIn(informer); err != nil {
		t.Fatalf("two plugins share an informer: %v", err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	for wanted, name := range map[string]string{
		plain(uid(1)): "web-7d4b9c-1", "0123456789abcdef0123456789abcdef": "web-7d4b9c-2", plain(uid(2)): "",
	} {
		found := pods(wanted)
		if name == "" && len(found) == 0 {
			continue
		}
		if len(found) != 1 || found[0].Name != name {
			t.Errorf("%s: %v", wanted, found)
		}
	}
}

func TestTheFirstListIsShownBeforeItCounts(t *testing.T) {
	s, shown := newScene(t, nil), 0
	s.service.SetPeaks(network.Peak{Job: web.String(), Egress: 7, Ingress: 8, Observations: 100})
	s.follower.options.First = func(table *Table) {
		shown++
		if egress, _, ok := table.Peaks(web); egress != 7 || !ok {
			t.Errorf("%d, %v", egress, ok)
		}
		s.expect(web, 0, 0, false)
	}
	for range 2 {
		s.follower.step(t.Context())
		s.expect(web, 7, 8, true)
	}
	if shown != 1 {
		t.Errorf("%d lists are shown", shown)
	}
}

func TestAFollowerThatIsWokenRequestsPeaksAtOnce(t *testing.T) {
	s := newScene(t, nil)
	go s.follower.Run(t.Context())
	for before := range 3 {
		for s.service.Requests() <= before {
			time.Sleep(time.Millisecond)
		}
		// The interval is a minute.
		s.follower.Wake()
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan struct{}, 1)
	follower := New(Options{
		Call: func(context.Context, string, string, []byte) ([]byte, error) {
			select {
			case asked <- struct{}{}:
			default:
			}
			return nil, errors.New("no service")
		},
		Now: time.Now, Random: func() float64 { return 0 }, Log: slog.New(slog.DiscardHandler),
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		follower.Run(ctx)
	}()
	<-asked
	cancel()
	<-done
}
