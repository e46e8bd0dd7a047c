package integration

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"leeward.dev/kubernetes/clustersync"
	"leeward.dev/kubernetes/demand"
	"leeward.dev/kubernetes/internal/service"
)

// uses collects the rights that programs of a service account use.
type uses struct {
	t       *testing.T
	account string
	since   time.Time
}

func usesOf(t *testing.T, account string) *uses {
	return &uses{t: t, account: account, since: time.Now()}
}

// rights returns the rights that were used until now. A forbidden request is an error of the test.
func (u *uses) rights() map[string]bool {
	u.t.Helper()
	rights := map[string]bool{}
	for _, request := range requestsOf(u.t, release+":"+u.account, u.since) {
		if request.ResponseStatus.Code == 403 {
			u.t.Errorf("forbidden: %s %s", request.Verb, request.RequestURI)
		}
		if request.ObjectRef.Resource != "" {
			rights[request.right()] = true
		}
	}
	return rights
}

// expectAll waits until the programs have used all rights of a grant.
func (u *uses) expectAll(of grant) {
	u.t.Helper()
	var missing []string
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(50 * time.Millisecond) {
		used := u.rights()
		missing = missing[:0]
		for _, right := range slices.Concat(of.everywhere, of.inRelease, of.own) {
			// An informer watches from the beginning, and lists only at an API server that cannot stream the beginning.
			streams := strings.HasSuffix(right, ":list") && used[strings.TrimSuffix(right, "list")+"watch"]
			if !used[right] && !streams {
				missing = append(missing, right)
			}
		}
		if len(missing) == 0 {
			return
		}
	}
	u.t.Errorf("%s does not use %v, but %v", u.account, missing, slices.Sorted(maps.Keys(u.rights())))
}

func grantOf(chart, account string) grant {
	for _, of := range grants() {
		if of.chart == chart && of.account == account {
			return of
		}
	}
	panic(account)
}

func TestTheEvictorOfTheChartUsesAllRightsOfItsServiceAccountAndNeedsNoOther(t *testing.T) {
	for _, chart := range []string{"default", "options"} {
		t.Run(chart, func(t *testing.T) {
			install(t, chart)
			removeLease(t, configMap)
			t.Cleanup(func() { removeRecords(t) })
			s := newScene(t, interval, hot(1))
			startKubelet(t)
			s.start(s.args)
			f := newFleet(t, "rights-"+chart, 4, 1)
			used := usesOf(t, "leeward-evictor")
			startController(t, "leeward-evictor", s.args.Controllers[0],
				quickly("--workload-cooldown=1", "--lasts=500ms", "--hourly-budget=1000")...)
			if chart == "default" {
				// The same pod would leave again and again, so its event is patched.
				eventually(t, "no event", func() bool { return len(s.events("HotRackDryRun", "rights-")) > 0 })
				used.expectAll(grantOf(chart, "leeward-evictor"))
				if _, ended := f.counts(); ended != 0 {
					t.Errorf("%d pods ended", ended)
				}
				return
			}
			eventually(t, "no pod leaves", func() bool { _, ended := f.counts(); return ended > 1 })
			of := grantOf(chart, "leeward-evictor")
			// Each pod leaves once, so no event comes twice.
			of.everywhere = slices.DeleteFunc(of.everywhere, func(right string) bool { return right == "events.k8s.io/events:patch" })
			used.expectAll(of)
		})
	}
}

func TestTheSyncOfTheChartUsesAllRightsOfItsServiceAccountAndNeedsNoOther(t *testing.T) {
	beyondShort(t)
	install(t, "default")
	removeLease(t, "leeward-sync")
	address := service.Start(t, service.Small)
	used := usesOf(t, "leeward-sync")
	startController(t, "leeward-sync", address)
	annotate := func(value string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %s}}}`, clustersync.NIC, value)
		if _, err := plane.Client.CoreV1().Nodes().Patch(
			context.Background(), "r5h2", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { annotate("null") })
	eventually(t, "the nodes are no hosts", func() bool {
		code, text := ask(t, address, "check")
		return code == 0 && strings.Contains(text, fmt.Sprintf("%d nodes are hosts of the service", racks*rackSize))
	})
	// A difference that comes back patches its event.
	for range 2 {
		annotate(`"fast"`)
		time.Sleep(3 * time.Second)
		annotate("null")
		time.Sleep(3 * time.Second)
	}
	used.expectAll(grantOf("default", "leeward-sync"))
}

func TestTheSchedulerOfTheChartWorksWithTheRightsOfItsServiceAccount(t *testing.T) {
	beyondShort(t)
	install(t, "default")
	removeLease(t, "leeward-scheduler")
	m := &matrices{scene: newScene(t, interval, hot(5)), chooser: &chooser{hosts: []string{"r8h1", "r9h2", "r8h3"}}}
	m.connect()
	m.service.Intercept(func(writer http.ResponseWriter, request *http.Request) bool {
		isOfApp := strings.HasPrefix(request.URL.Path, "/v1/place/") || strings.HasPrefix(request.URL.Path, "/v1/decisions/")
		return isOfApp && m.chooser.answer(writer, request)
	})
	used := usesOf(t, "leeward-scheduler")
	startSchedulerProgram(t, m.args.Controllers[0])
	of := func(pod *corev1.Pod) { pod.Spec.SchedulerName = "leeward-scheduler" }
	m.ring("chart", 3)
	m.add("chart", 0, 3, of)
	if nodes := m.awaitBound("chart"); !slices.Equal(nodes, m.chooser.hosts) {
		t.Errorf("%v: expected %v", nodes, m.chooser.hosts)
	}
	m.add("alone", 3, 40, of, func(pod *corev1.Pod) { pod.Annotations = map[string]string{demand.PeakEgress: "100M"} })
	m.awaitBound("alone")
	for pod, node := range m.bindings.Nodes() {
		if strings.HasPrefix(pod, "alone-") && slices.Contains([]string{"r0", "r1", "r2", "r3", "r4"}, m.rackOf[node]) {
			t.Errorf("%s is in a hot rack: %s", pod, node)
		}
	}
	used.expectAll(grantOf("default", "leeward-scheduler"))
}
