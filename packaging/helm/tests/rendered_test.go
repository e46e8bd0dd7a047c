package helm

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// The rendered charts have Secrets of the user, since generated ones are random.
const ownSecrets = "tokens: {existingSecret: leeward-tokens}\ntls: {mode: existing, existingSecret: leeward-tls}\n"

// renderings are values by the name of the file with the rendered chart. The tests of the scheduler apply these files to an API
// server.
var renderings = map[string]string{
	"default": ownSecrets,
	// The agent without the processes of its node.
	"links": ownSecrets + "agent: {pods: false}\n",
	"options": ownSecrets + `
image: {repository: registry.example.com/leeward, tag: "1.2.3", pullSecrets: [registry]}
controller:
  connections: 2000
  learnCapacity: true
  settings:
    log: {level: debug}
    policies: {replicas: uniform, moves: leeward}
    ledger: {alpha: 0.5}
    moves: {hook: {url: "https://mover.operations.svc/moves"}}
  extraVolumes: [{name: hook, secret: {secretName: hook}}]
  extraVolumeMounts: [{name: hook, mountPath: /etc/hook, readOnly: true}]
  persistence: {storageClass: fast}
  affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
    {weight: 1, preference: {matchExpressions: [{key: disk, operator: In, values: [ssd]}]}}]}}
agent: {interfaces: [eth0], extraArgs: [--dscp=cs6]}
scheduler:
  name: default-scheduler
  featureGates: {GenericWorkload: true}
  networkLoad: {maxAge: 10s, report: false}
  trafficMatrix: {maxAge: 10s}
  percentageOfNodesToScore: 50
  nodeSelector: {node-role.kubernetes.io/control-plane: ""}
  tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule}]
evictor: {mode: evict, extraArgs: [--threshold=0.8]}
sync: {mode: report, replicas: 2}
networkPolicy:
  nodeCIDRs: [10.0.0.0/8]
  metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]
  controllerEgress: [{to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: operations}}}], ports: [{port: 443}]}]
  apiServerPorts: [443, 16443]
resourceQuota: {enabled: true}
`,
}

func TestTheRenderedChartIsThatOfTheFile(t *testing.T) {
	for name, values := range renderings {
		rendered := files(t, values)
		var text strings.Builder
		fmt.Fprintf(&text, "# The chart as `helm template` prints it: the values %q of rendered_test.go. LEEWARD_UPDATE=1 go test . writes it.\n", name)
		for _, file := range slices.Sorted(maps.Keys(rendered)) {
			if !strings.HasSuffix(file, ".yaml") {
				continue
			}
			for _, document := range documents(t, []byte(rendered[file])) {
				fmt.Fprintf(&text, "---\n%s\n", strings.Trim(strings.TrimPrefix(string(document), "---\n"), "\n"))
			}
		}
		path := "rendered/" + name + ".yaml"
		if os.Getenv("LEEWARD_UPDATE") != "" {
			if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		expected, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if text.String() != string(expected) {
			t.Errorf("the chart has changed: look at LEEWARD_UPDATE=1 go test . && git diff %s", path)
		}
	}
}
