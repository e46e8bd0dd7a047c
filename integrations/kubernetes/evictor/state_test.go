package evictor

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheConfigMapHasTheLimitsOfTheEvictorThatWroteItsRecords(t *testing.T) {
	w := newWorld(t, 1, 40e9)
	heat(w)
	options := w.options(Evict, silent{})
	options.Settings.DerivedLinks, options.Settings.HourlyBudget = true, 7
	runner, err := NewRunner(options)
	if err != nil {
		t.Fatal(err)
	}
	run(w, runner, 6)
	state, err := StateOf(w.config)
	if err != nil || state.IsStopped || state.InHour(w.now()) != len(w.left) || len(w.left) == 0 {
		t.Fatalf("%v: %+v, %d evictions", err, state, len(w.left))
	}
	read, written := state.Settings, options.Settings
	if read.Window != written.Window || read.RackCooldown != written.RackCooldown || read.WorkloadCooldown != written.WorkloadCooldown ||
		read.HourlyBudget != 7 || !read.DerivedLinks {
		t.Errorf("%+v: expected %+v", read, written)
	}
}

func TestAConfigMapWithoutRecordsHasTheDefaultLimitsAndAnInvalidOneIsNamed(t *testing.T) {
	stopped := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{StopAnnotation: StopValue}}}
	for name, read := range map[string]*corev1.ConfigMap{"none": nil, "empty": {}, "stopped": stopped} {
		state, err := StateOf(read)
		if err != nil || state.Settings != DefaultSettings() || len(state.Records) != 0 || state.IsStopped != (name == "stopped") {
			t.Errorf("%s: %+v, %v", name, state, err)
		}
	}
	for key, texts := range map[string][]string{
		recordsKey: {"{"},
		limitsKey:  {"{", "{}", `{"window": "1m", "rack_cooldown": 0, "workload_cooldown": 1}`, `{"window": "2h", "rack_cooldown": 1}`},
	} {
		for _, text := range texts {
			if state, err := StateOf(&corev1.ConfigMap{Data: map[string]string{key: text}}); err == nil {
				t.Errorf("%s: %s: %+v", key, text, state)
			}
		}
	}
}

func TestAJudgeHasTheReasonsOfTheDecision(t *testing.T) {
	pod := migratable("a", "hot", 1e9, 0)
	pod.Budget = "shop/web"
	record := Record{UID: "b", At: now.Add(-9 * time.Minute), Source: "other", Workload: "other"}
	for _, c := range []struct {
		change             func(*Pod, *Record, *Settings)
		isUnknown, derived bool
		expected           Reason
	}{
		{func(*Pod, *Record, *Settings) {}, false, false, ""},
		{func(p *Pod, _ *Record, _ *Settings) { p.Stays = NotMigratable }, true, true, NotMigratable},
		{func(*Pod, *Record, *Settings) {}, true, true, UnknownDemand},
		{func(*Pod, *Record, *Settings) {}, false, true, DerivedLink},
		{func(_ *Pod, _ *Record, s *Settings) { s.DerivedLinks = true }, false, true, ""},
		{func(_ *Pod, r *Record, _ *Settings) { r.Source = "hot" }, false, false, RackCools},
		{func(p *Pod, r *Record, _ *Settings) { r.Workload = p.Workload }, false, false, WorkloadCools},
		{func(_ *Pod, _ *Record, s *Settings) { s.HourlyBudget = 1 }, false, false, HourSpent},
		{func(p *Pod, _ *Record, _ *Settings) { p.Budget = "shop/spent" }, false, false, BudgetSpent},
	} {
		pod, record, settings := pod, record, DefaultSettings()
		c.change(&pod, &record, &settings)
		judge := NewJudge(State{Records: []Record{record}, Settings: settings}, Places{Disruptions: map[string]int32{"shop/web": 1}}, now)
		if reason := judge.Stays(&pod, !c.isUnknown, c.derived); reason != c.expected {
			t.Errorf("%q: expected %q", reason, c.expected)
		}
	}
}
