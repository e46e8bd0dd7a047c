package integration

import (
	"syscall"
	"testing"
	"time"
)

// evictedBy returns the evictions that an evictor counts, 0 while it does not answer.
func evictedBy(p *program) float64 {
	count, _ := p.metric(`leeward_evictor_evictions_total{outcome="evicted"}`)
	return count
}

func leads(p *program) bool {
	leader, ok := p.metric("leeward_evictor_leader")
	return ok && leader == 1
}

// leaderOf waits until exactly one of two evictors leads, and returns it and the other.
func leaderOf(t *testing.T, a, b *program) (leader, follower *program) {
	t.Helper()
	eventually(t, "no evictor leads", func() bool { return leads(a) != leads(b) })
	if leads(a) {
		return a, b
	}
	return b, a
}

// Three evictors with the rights of the chart: the first leader is killed, and the next one is stopped for longer than its Lease. When it
// goes on, it may take itself for the leader until it notices, so both decide, on the same records.
func TestSeveralEvictorsHaveTheBudgetOfOneThoughALeaderIsKilledOrStopped(t *testing.T) {
	beyondShort(t)
	install(t, "options")
	removeLease(t, configMap)
	removeRecords(t)
	t.Cleanup(func() { removeRecords(t) })
	s := newScene(t, interval, hot(1))
	startKubelet(t)
	s.start(s.args)
	since := time.Now()
	f := newFleet(t, "led", 20, 10)
	begin := func(identity string) *program {
		return startController(t, "leeward-evictor", s.args.Controllers[0],
			quickly("--identity="+identity, "--hourly-budget=9", "--lasts=2s")...)
	}
	ended := func() int { _, count := f.counts(); return count }
	a, b := begin("a"), begin("b")
	leader, follower := leaderOf(t, a, b)
	eventually(t, "the leader evicts nothing", func() bool { return evictedBy(leader) >= 2 })
	if inverts, ok := leader.metric("leeward_evictor_inverts_estimates"); !ok || inverts != 0 {
		t.Error("the leader reads estimates instead of the means of windows")
	}
	if count := evictedBy(follower); count != 0 {
		t.Errorf("the follower evicts %v pods", count)
	}
	leader.signal(syscall.SIGKILL)
	<-leader.ended
	time.Sleep(time.Second)
	before := ended()
	if before < 2 || before > 8 {
		t.Fatalf("%d pods left with the first leader: the test shows nothing", before)
	}
	eventually(t, "the follower does not lead", func() bool { return leads(follower) })
	eventually(t, "the second leader evicts nothing", func() bool { return ended() > before })

	third := begin("c")
	follower.signal(syscall.SIGSTOP)
	stopped := time.Now()
	eventually(t, "the third evictor does not lead", func() bool { return leads(third) })
	if after := time.Since(stopped); after < 5*time.Second {
		t.Errorf("a leader that is stopped loses its Lease after %v", after)
	}
	follower.signal(syscall.SIGCONT)
	eventually(t, "the stopped leader does not notice that its Lease is lost", follower.hasEnded)
	eventually(t, "the budget of the hour is not used", func() bool {
		// The record of a leader that was killed may be of a pod that the next one evicts.
		count := 0
		for _, records := range recorded(t, release) {
			count += len(records)
		}
		return count == 9
	})
	time.Sleep(10 * evictionWindow)
	pods := map[string]bool{}
	for _, eviction := range evictions(t, "led-", since) {
		if pods[eviction.ObjectRef.Name] {
			t.Errorf("%s was evicted twice", eviction.ObjectRef.Name)
		}
		pods[eviction.ObjectRef.Name] = true
	}
	// A record comes before its eviction, so the leader that was killed may have left one without an eviction.
	if len(pods) < 8 || len(pods) > 9 || ended() != len(pods) {
		t.Errorf("%d evictions, %d pods ended: expected the budget of the hour, 9", len(pods), ended())
	}
	if least, _ := f.counts(); least < 10 {
		t.Errorf("only %d pods ran", least)
	}
	if !leads(third) {
		t.Error("the third evictor leads no more")
	}
}
