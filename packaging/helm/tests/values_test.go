package helm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

func TestUnknownAndInvalidValuesAreRejected(t *testing.T) {
	for values, expected := range map[string]string{
		"{evictor: {mod: evict}}":                  "mod",
		"{evictor: {mode: always}}":                "mode",
		"{scheduler: {replicas: 0}}":               "replicas",
		"{controller: {interval: 1}}":              "interval",
		"{controller: {settings: {interval: 2s}}}": "set controller.interval",
		"{controller: {connections: 0}}":           "connections",
		"{networkPolicy: {apiServerPorts: []}}":    "apiServerPorts",
		"{tls: {mode: existing}}":                  "tls.existingSecret",
		"{agents: {enabled: false}}":               "agents",
		"{image: {}}":                              "image.onNodes=true",
		"{image: {repository: localhost}}":         "make kubernetes-push IMAGE_REPOSITORY=",
		"{image: {onNodes: 1}}":                    "onNodes",
		"{evictor: {derivedLinks: 1}}":             "derivedLinks",
		"{evictor: {schedulers: [\"a,b\"]}}":       "schedulers",
		"{scheduler: {matrixWait: x}}":             "matrixWait",
		"{scheduler: {matrixWait: 2m}}":            "matrixWait",
		"{scheduler: {matrixWait: 60001ms}}":       "matrixWait",
		"{scheduler: {matrixWait: 61s}}":           "matrixWait",
		"{scheduler: {matrixHold: 10ms}}":          "matrixHold",
		"{scheduler: {matrixHold: 0s}}":            "matrixHold",
		"{scheduler: {matrixHold: 61m}}":           "matrixHold",
		"{scheduler: {matrixHold: 3601s}}":         "matrixHold",
	} {
		if _, err := render(values); err == nil || !strings.Contains(err.Error(), expected) {
			t.Errorf("%s: %v", values, err)
		}
	}
}

func TestTheSchedulerTakesAllTimesWithinItsBounds(t *testing.T) {
	for field, times := range map[string][]string{
		"matrixWait": {"0s", "0ms", "250ms", "60000ms", "1.5s", "59s", "60s", "1m", "1m0s"},
		"matrixHold": {"1s", "1.5s", "1500ms", "90s", "1m", "1m30s", "59m59s", "60m", "3600s", "1h"},
	} {
		for _, time := range times {
			if _, err := render(fmt.Sprintf("{scheduler: {%s: %s}}", field, time)); err != nil {
				t.Errorf("%s: %s: %v", field, time, err)
			}
		}
	}
}

func TestTheAgentSeesTheProcessesOfItsNodeOnlyToReadPods(t *testing.T) {
	for values, expected := range map[string]bool{"": true, "{agent: {pods: false}}": false} {
		spec := templates(objects(t, values))["agent"].Spec
		isMounted := false
		for _, mount := range spec.Containers[0].VolumeMounts {
			if mount.Name == "proc" {
				isMounted = mount.ReadOnly && mount.MountPath == "/host/proc"
			}
		}
		hasVolume := slices.ContainsFunc(spec.Volumes, func(volume corev1.Volume) bool { return volume.HostPath != nil })
		reads := slices.Contains(spec.Containers[0].Args, "--pods=/host/proc")
		if isMounted != expected || hasVolume != expected || reads != expected {
			t.Errorf("%s: mounted %v, volume %v, read %v", values, isMounted, hasVolume, reads)
		}
	}
}

func TestPoliciesOpenOnlyWhatTheValuesName(t *testing.T) {
	const values = "{networkPolicy: {controllerEgress: [{ports: [{port: 5432}]}], apiServerPorts: [16443]}}"
	policies := of[*networkingv1.NetworkPolicy](objects(t, values))
	if open := policies["leeward-controller"].Spec.Egress; len(open) != 1 || len(open[0].Ports) != 1 || open[0].Ports[0].Port.IntValue() != 5432 {
		t.Errorf("%+v", open)
	}
	for _, part := range []string{"scheduler", "evictor", "sync"} {
		var ports []int
		for _, port := range policies["leeward-"+part].Spec.Egress[1].Ports {
			ports = append(ports, port.Port.IntValue())
		}
		if !slices.Equal(ports, []int{53, 53, 16443}) {
			t.Errorf("%s: %v", part, ports)
		}
	}
}

// A quota for the priority classes of the chart admits its pods where others need one.
func TestAQuotaHoldsForThePriorityClassesOfAllPods(t *testing.T) {
	if quotas := of[*corev1.ResourceQuota](objects(t, "")); len(quotas) != 0 {
		t.Errorf("%d quotas by default", len(quotas))
	}
	all := objects(t, "{resourceQuota: {enabled: true, pods: 7}, agent: {priorityClassName: nodes}}")
	quota := of[*corev1.ResourceQuota](all)["leeward-pods"]
	if quota.Spec.Hard.Pods().Value() != 7 {
		t.Errorf("%+v", quota.Spec)
	}
	classes := quota.Spec.ScopeSelector.MatchExpressions[0].Values
	for part, template := range templates(all) {
		if !slices.Contains(classes, template.Spec.PriorityClassName) {
			t.Errorf("%s: %s is not in %v", part, template.Spec.PriorityClassName, classes)
		}
	}
}

// settings returns the settings of the controller.
func settings(t *testing.T, values string) map[string]any {
	t.Helper()
	result, err := common.ReadValues([]byte(of[*corev1.ConfigMap](objects(t, values))["leeward-controller"].Data["leeward.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestTheControllerHasConnectionsForAllAgents(t *testing.T) {
	for values, expected := range map[string]string{
		"": "16384", "{controller: {connections: 600}}": "600", "{controller: {settings: {limits: {connections: 700, streams: 9}}}}": "700",
	} {
		limits, _ := settings(t, values)["limits"].(map[string]any)
		if fmt.Sprint(limits["connections"]) != expected {
			t.Errorf("%s: %v", values, limits)
		}
	}
}

func TestTheControllerLearnsLostCapacityByAValue(t *testing.T) {
	for values, expected := range map[string]string{
		"": "leeward", "{controller: {learnCapacity: true}}": "leeward:learn_capacity=true",
		"{controller: {learnCapacity: true, settings: {policies: {tasks: borg}}}}": "borg",
		"{controller: {learnCapacity: true, settings: {policies: {tasks: utp}}}}":  "utp:host_balance=true:learn_capacity=true",
	} {
		policies, _ := settings(t, values)["policies"].(map[string]any)
		if policies["tasks"] != expected || policies["replicas"] != "sinbad" {
			t.Errorf("%s: %v", values, policies)
		}
	}
}

func TestUTPKeepsTheBalanceOfHostsUnlessItHasSettings(t *testing.T) {
	for tasks, expected := range map[string]string{
		"utp": "utp:host_balance=true", "utp-proactive": "utp-proactive:host_balance=true", "utp-reactive": "utp-reactive",
		"utp:host_balance=false": "utp:host_balance=false", "{utp: {step: 0.1}}": "map[utp:map[step:0.1]]",
	} {
		policies, _ := settings(t, "{controller: {settings: {policies: {tasks: "+tasks+"}}}}")["policies"].(map[string]any)
		if fmt.Sprint(policies["tasks"]) != expected {
			t.Errorf("%s: %v", tasks, policies)
		}
	}
}

// One interval of a second is no reason to move pods.
func TestMovesOfTheControllerTakeMinutesAtAnyInterval(t *testing.T) {
	for values, expected := range map[string][2]string{
		"": {"300", "600"}, "{controller: {interval: 10s}}": {"30", "60"}, "{controller: {interval: 1m30s}}": {"3", "6"},
		"{controller: {interval: 500ms}}": {"600", "1200"}, "{controller: {interval: 20m}}": {"1", "1"},
		"{controller: {settings: {moves: {windows: 7, timeout: 1min}}}}": {"7", "600"},
	} {
		moves, _ := settings(t, values)["moves"].(map[string]any)
		if fmt.Sprint(moves["windows"]) != expected[0] || fmt.Sprint(moves["cooldown"]) != expected[1] {
			t.Errorf("%s: %v", values, moves)
		}
	}
}

func TestTheEvictorLeavesPodsOfOtherSchedulersAndLinksThatAreSumsUnlessTheValuesSayOtherwise(t *testing.T) {
	for values, expected := range map[string][]string{
		"":                                {"--schedulers=leeward-scheduler"},
		"{scheduler: {name: network}}":    {"--schedulers=network"},
		"{evictor: {schedulers: [a, b]}}": {"--schedulers=a,b"},
		"{evictor: {schedulers: [\"*\"], derivedLinks: true}}": {"--schedulers=*", "--derived-links"},
	} {
		arguments := templates(objects(t, values))["evictor"].Spec.Containers[0].Args
		ours := slices.DeleteFunc(slices.Clone(arguments), func(argument string) bool {
			return !strings.HasPrefix(argument, "--schedulers") && !strings.HasPrefix(argument, "--derived-links")
		})
		if !slices.Equal(ours, expected) {
			t.Errorf("%s: %v", values, arguments)
		}
	}
}

func TestTheNotesSayThatTheEvictorNeedsCountersOfSwitches(t *testing.T) {
	for values, expected := range map[string]bool{
		"": true, "{evictor: {mode: evict}}": true, "{evictor: {derivedLinks: true}}": false, "{evictor: {enabled: false}}": false,
		"{controller: {settings: {telemetry: {prometheus: {url: \"http://prometheus:9090\", map: map.yaml}}}}}": false,
	} {
		if notes := files(t, values)["leeward/templates/NOTES.txt"]; strings.Contains(notes, "With agents alone it moves nothing") != expected {
			t.Errorf("%s: %s", values, notes)
		}
	}
}

func TestTheNotesHaveTheConnectionToTheController(t *testing.T) {
	for values, expected := range map[string]string{
		"":                    "export LEEWARD_CONTROLLER=https://localhost:7600 LEEWARD_TOKEN_FILE=token LEEWARD_CA_FILE=ca.crt\n",
		"{tls: {mode: none}}": "export LEEWARD_CONTROLLER=http://localhost:7600 LEEWARD_TOKEN_FILE=token\n",
	} {
		notes := files(t, values)["leeward/templates/NOTES.txt"]
		if !strings.Contains(notes, expected) || strings.Contains(notes, "ca.crt") != (values == "") {
			t.Errorf("%s: %s", values, notes)
		}
	}
}

func TestArgumentsOfThePluginsFollowTheValues(t *testing.T) {
	configuration := configurationOf(t, `
scheduler: {networkLoad: {report: false, interval: 500ms, alpha: 0.5}, trafficMatrix: {wait: 7s}, percentageOfNodesToScore: 30}
`)
	if *configuration.PercentageOfNodesToScore != 30 {
		t.Errorf("%d", *configuration.PercentageOfNodesToScore)
	}
	for i, expected := range [][]string{
		{`"alpha":0.5`, `"report":false`, `"interval":"500ms"`, `"client":"network/leeward-scheduler"`},
		{`"wait":"7s"`, `"hold":"1m"`},
	} {
		for _, argument := range expected {
			if args := string(configuration.Profiles[0].PluginConfig[i].Args.Raw); !strings.Contains(args, argument) {
				t.Errorf("%s is not in %s", argument, args)
			}
		}
	}
}
