package kubectl

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"leeward.dev/kubernetes/api/v1alpha1"
	"leeward.dev/kubernetes/evictor"
)

func TestACheckOfASoundClusterSucceeds(t *testing.T) {
	text := must(t, "check")
	for _, part := range []string{"version 1.2.3", "2 nodes are hosts of the service", "3 of 3 pods have a known demand, 0 of them a measured one", "0 evictions in the last hour"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

func TestACheckHasALineForEachProblemAndFails(t *testing.T) {
	stopped := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "leeward", Name: "leeward-evictor", Annotations: map[string]string{evictor.StopAnnotation: evictor.StopValue},
	}}
	cordoned := nodeIn("r1h0", "elsewhere")
	cordoned.Spec.Unschedulable = true
	code, text, stderr := execute(t, answers(), []runtime.Object{
		nodeIn("r0h0", ""), cordoned, nodeIn("new", "r0"), stopped,
		podOn("r0h0", "web-0", map[string]string{"leeward.dev/peak-egress": "fast", "leeward.dev/migratable": "yes"}),
	}, "check")
	if code != exitProblem || stderr != "" {
		t.Errorf("exit %d: %s", code, stderr)
	}
	for _, part := range []string{
		"no_rack_label", "r0h0: the node has none of the labels", "other_rack", "add_host", "drain", "stopped by the annotation",
		`annotation leeward.dev/peak-egress: "fast"`, `annotation leeward.dev/migratable: "yes"`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

// matrixWith returns a traffic matrix of generation 2 with conditions, each as type, status, reason and message.
func matrixWith(name string, observed int64, conditions ...[4]string) *unstructured.Unstructured {
	list := []any{}
	for _, condition := range conditions {
		list = append(list, map[string]any{
			"type": condition[0], "status": condition[1], "reason": condition[2], "message": condition[3],
			"observedGeneration": observed, "lastTransitionTime": "2026-01-31T12:00:00Z",
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.Kind,
		"metadata": map[string]any{"namespace": "shop", "name": name, "generation": int64(2)},
		"spec":     map[string]any{"groups": []any{}}, "status": map[string]any{"conditions": list},
	}}
}

func TestACheckHasALineForEachTrafficMatrixThatIsNoAppOrLacksPods(t *testing.T) {
	valid := [4]string{v1alpha1.ConditionValid, "True", "Valid", ""}
	missing := [4]string{v1alpha1.ConditionComplete, "False", "MissingPods", "store: 0 of 1 pods"}
	code, text, stderr := execute(t, answers(), append(objects(),
		matrixWith("sound", 2, valid, [4]string{v1alpha1.ConditionComplete, "True", "Bound", ""}),
		matrixWith("over", 2, valid, missing, [4]string{v1alpha1.ConditionPlaced, "False", "Ended", ""}),
		matrixWith("broken", 2, [4]string{v1alpha1.ConditionValid, "False", "InvalidMatrix", "transfers[0]: from: \"x\""}),
		matrixWith("short", 2, valid, missing),
		matrixWith("replaced", 2, valid, [4]string{v1alpha1.ConditionComplete, "False", "Unbound", "a pod has no node yet"},
			[4]string{v1alpha1.ConditionPlaced, "True", "Chosen", ""}),
		matrixWith("late", 2, valid, [4]string{v1alpha1.ConditionComplete, "True", "Complete", ""},
			[4]string{v1alpha1.ConditionPlaced, "False", "Late", "no hosts in time"}),
		matrixWith("rejected", 2, valid, [4]string{v1alpha1.ConditionComplete, "True", "Complete", ""},
			[4]string{v1alpha1.ConditionPlaced, "False", "Rejected", "the token has no role"}),
		matrixWith("foreign", 2, valid, [4]string{v1alpha1.ConditionPlaced, "False", "OtherScheduler", "pod web-0 has schedulerName x"}),
		matrixWith("empty", 2, valid),
		matrixWith("typo", 2, valid, [4]string{v1alpha1.ConditionComplete, "False", "NoPods", "no pod matches its groups: worker"}),
		matrixWith("unread", 1, valid),
	), "check")
	if code != exitProblem || stderr != "" {
		t.Errorf("exit %d: %s", code, stderr)
	}
	for _, line := range []string{
		`wrong matrix shop/broken: transfers[0]: from: "x"`, "wrong matrix shop/short: pods are missing: store: 0 of 1 pods",
		"note matrix shop/replaced: a pod has no node yet", "note matrix shop/late: no hosts in time",
		"wrong matrix shop/rejected: the token has no role", "wrong matrix shop/foreign: pod web-0 has schedulerName x",
		"note matrix shop/empty: none of its pods has come", "wrong matrix shop/typo: no pod matches its groups: worker",
		"note matrix shop/unread: no scheduler",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(line), " ")) {
			t.Errorf("%q is missing in\n%s", line, text)
		}
	}
	if strings.Contains(text, "shop/sound") || strings.Contains(text, "shop/over") {
		t.Errorf("a sound matrix has a line:\n%s", text)
	}
	if text := must(t, "check"); strings.Contains(text, "matrix") {
		t.Errorf("a line about no matrix:\n%s", text)
	}
}

func TestACheckNotesPodsWithAPeakOfASchedulerWithoutThePlugins(t *testing.T) {
	other := func(name, scheduler string, annotations map[string]string) *corev1.Pod {
		pod := podOn("r0h0", name, annotations)
		pod.Spec.SchedulerName = scheduler
		return pod
	}
	peak := map[string]string{"leeward.dev/peak-ingress": "1G"}
	ended := other("ended", "default-scheduler", peak)
	ended.Status.Phase = corev1.PodSucceeded
	cluster := append(objects(), other("api-0", "", peak), other("api-1", "batch", peak), other("plain", "default-scheduler", nil), ended)
	for arguments, expected := range map[string]string{
		"check": "2 pods with a peak have another schedulerName than leeward-scheduler, such as shop/api-",
		"check --scheduler leeward-scheduler,batch": "1 pods with a peak have another schedulerName than leeward-scheduler, batch, such as shop/api-0 (default-scheduler)",
	} {
		if code, text, stderr := execute(t, answers(), cluster, strings.Fields(arguments)...); code != exitOK || !strings.Contains(text, expected) {
			t.Errorf("%s: exit %d: %s%s", arguments, code, text, stderr)
		}
	}
	if text := must(t, "check"); strings.Contains(text, "schedulerName") {
		t.Errorf("a line about no pod:\n%s", text)
	}
}
