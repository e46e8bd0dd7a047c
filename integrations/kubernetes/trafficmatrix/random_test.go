package trafficmatrix

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// history is an app in a random history: what the controller decided, and which requests run.
type history struct {
	*scene
	random    *rand.Rand
	decisions int
	// held are decisions that the controller has and that were not released.
	held map[string]bool
	// committed has the last decision about the nodes of each run.
	committed map[string]string
	// asked are the runs that were asked for, and chosen has the decisions of those whose answers were lost.
	asked   map[string]bool
	chosen  map[string]string
	asks    []ask
	settles []settlement
	runs    int
	live    map[types.UID]*corev1.Pod
}

// choose stores a decision of the controller.
func (h *history) choose() string {
	h.decisions++
	id := fmt.Sprintf("d%d", h.decisions)
	h.held[id] = true
	return id
}

// commit returns the decision about the nodes of a run, which is the same one until its release.
func (h *history) commit(run string) string {
	if !h.held[h.committed[run]] {
		h.committed[run] = h.choose()
	}
	return h.committed[run]
}

// work takes in the work that is due. Requests run until a later step.
func (h *history) work() {
	work := h.due(h.now)
	for _, of := range work.asks {
		if h.asked[of.run] {
			h.t.Fatalf("asked twice for the run %s", of.run)
		}
		h.asked[of.run] = true
		h.asks = append(h.asks, of)
	}
	h.settles = append(h.settles, work.settle...)
	for _, id := range work.release {
		if h.random.IntN(4) == 0 {
			h.notReleased([]string{id}, h.now)
		} else {
			delete(h.held, id)
		}
	}
	for _, of := range work.find {
		decision := h.chosen[of.key]
		if !of.held {
			decision = h.committed[strings.TrimSuffix(of.key, "-nodes")]
		}
		switch {
		case h.random.IntN(4) == 0:
			h.found(of, "", false, h.now)
		case h.held[decision]:
			h.found(of, decision, true, h.now)
		default:
			h.found(of, "", true, h.now)
		}
	}
	for _, of := range work.nominate {
		if h.random.IntN(5) == 0 {
			h.refused(of.pod.UID)
		} else if pod := h.live[of.pod.UID]; pod != nil && pod.Spec.NodeName == "" {
			h.put(nominated(pod, of.host))
		}
	}
}

func (h *history) put(pod *corev1.Pod) {
	h.live[pod.UID] = pod
	h.setPod(pod, h.now)
}

// answer ends a request to the controller.
func (h *history) answer() {
	switch {
	case len(h.asks) > 0 && h.random.IntN(2) == 0:
		of := h.asks[0]
		h.asks = h.asks[1:]
		switch h.random.IntN(5) {
		case 0:
			h.answered(of.name, of.run, nil, "", "Refused", "full")
		case 1:
			if h.random.IntN(2) == 0 {
				h.chosen[of.run] = h.choose()
			}
			h.unanswered(of.run, h.now)
			h.answered(of.name, of.run, nil, "", "Unavailable", "no answer")
		default:
			h.answered(of.name, of.run, []string{"a", "b", "c", "d"}, h.choose(), "", "")
		}
	case len(h.settles) > 0:
		// Requests overlap, so their answers come in any order.
		index := h.random.IntN(len(h.settles))
		of := h.settles[index]
		h.settles = slices.Delete(h.settles, index, index+1)
		switch {
		case h.random.IntN(3) == 0:
			if h.random.IntN(2) == 0 {
				// The controller has carried the request out, and its answer is lost.
				h.commit(of.run)
			}
			h.settledWith(of.name, of.run, "", false, h.now)
		case h.random.IntN(8) == 0:
			h.settledWith(of.name, of.run, "", true, h.now)
		case of.decision != "" && of.same && h.held[of.decision]:
			h.settledWith(of.name, of.run, of.decision, true, h.now)
		default:
			h.settledWith(of.name, of.run, h.commit(of.run), true, h.now)
		}
	}
}

// step does something that may happen in a cluster.
func (h *history) step() {
	index := h.random.IntN(4)
	switch h.random.IntN(6) {
	case 0, 1:
		pod := podOf("ring", index)
		h.runs++
		pod.UID = types.UID(fmt.Sprintf("pod-%d", h.runs))
		h.put(pod)
		h.admit(pod, h.now)
	case 2:
		for _, uid := range slices.Sorted(maps.Keys(h.live)) {
			if pod := h.live[uid]; pod.Spec.NodeName == "" && h.admit(pod, h.now) {
				h.put(on(pod, "abcd"[index:index+1]))
			}
		}
	case 3:
		if uids := slices.Sorted(maps.Keys(h.live)); len(uids) > 0 {
			uid := uids[h.random.IntN(len(uids))]
			delete(h.live, uid)
			h.dropPod(uid, h.now)
		}
	case 4:
		h.answer()
	case 5:
		h.now = h.now.Add(time.Duration(h.random.IntN(2000)) * time.Millisecond)
	}
	h.work()
}

func TestNoDecisionOutlivesItsPodsWhateverHappens(t *testing.T) {
	for seed := range uint64(200) {
		h := &history{
			scene: newScene(t), random: rand.New(rand.NewPCG(seed, 1)), held: map[string]bool{}, asked: map[string]bool{},
			committed: map[string]string{}, chosen: map[string]string{}, live: map[types.UID]*corev1.Pod{},
		}
		for range 300 {
			h.step()
		}
		for _, uid := range slices.Sorted(maps.Keys(h.live)) {
			delete(h.live, uid)
			h.dropPod(uid, h.now)
		}
		for range 200 {
			h.answer()
			h.now = h.now.Add(firstPause)
			h.work()
		}
		if len(h.held) != 0 || len(h.byPod) != 0 || len(h.asks)+len(h.settles) != 0 {
			t.Fatalf("seed %d: decisions %v are left, %d requests run", seed, h.held, len(h.asks)+len(h.settles))
		}
	}
}
