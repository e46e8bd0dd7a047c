package integration

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics"

	"leeward.dev/kubernetes/clustersync"
	"leeward.dev/kubernetes/httpapi"
	"leeward.dev/kubernetes/internal/service"
	"leeward.dev/kubernetes/kubectl"
	"leeward.dev/kubernetes/snapshot"
)

// ask runs a command of the kubectl plugin, and returns its exit code and output.
func ask(t *testing.T, address string, arguments ...string) (int, string) {
	t.Helper()
	var output bytes.Buffer
	open := func(connection *kubectl.Connection) (*kubectl.Sources, error) {
		requests, err := httpapi.New(connection.Service, connection.Timeout)
		if err != nil {
			return nil, err
		}
		objects, err := dynamic.NewForConfig(plane.Config)
		if err != nil {
			return nil, err
		}
		snapshots, err := snapshot.NewClient(connection.Service)
		return &kubectl.Sources{
			Kube: plane.Client, Dynamic: objects, Service: requests, Snapshots: snapshots, Namespace: metav1.NamespaceDefault, Now: time.Now(),
		}, err
	}
	arguments = append(arguments, "--controller", address)
	code := kubectl.Run(t.Context(), arguments, &output, &output, func(string) string { return "" }, open)
	return code, output.String()
}

// cordon cordons a node, or ends that.
func cordon(t *testing.T, node string, cordoned bool) {
	t.Helper()
	patch := []byte(`{"spec": {"unschedulable": true}}`)
	if !cordoned {
		patch = []byte(`{"spec": {"unschedulable": null}}`)
	}
	_, err := plane.Client.CoreV1().Nodes().Patch(context.Background(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Error(err)
	}
}

// newSyncer returns a syncer that writes the nodes of the control plane into a service, with its view of the nodes and its metrics.
func newSyncer(t *testing.T, client *httpapi.Client) (*clustersync.Syncer, corelisters.NodeLister, metrics.KubeRegistry) {
	t.Helper()
	shared := informers.NewSharedInformerFactory(plane.Client, 0)
	nodes := shared.Core().V1().Nodes().Lister()
	shared.Start(t.Context().Done())
	shared.WaitForCacheSync(t.Context().Done())
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: plane.Client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	registry := metrics.NewKubeRegistry()
	syncer, err := clustersync.NewSyncer(clustersync.Options{
		Mode: clustersync.Apply, Settings: clustersync.DefaultSettings(), Service: client, Namespace: metav1.NamespaceDefault, Name: "leeward-sync",
		Interval: time.Minute,
		Nodes: func() ([]*corev1.Node, bool) {
			list, err := nodes.List(labels.Everything())
			return list, err == nil
		},
		Events: broadcaster.NewRecorder(scheme.Scheme, "leeward-sync"), Metrics: clustersync.NewMetrics(registry),
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return syncer, nodes, registry
}

func TestTheRealServiceGetsAllNodesAndTheCheckIsSatisfied(t *testing.T) {
	address := service.Start(t, service.Small)
	client, err := httpapi.New(snapshot.Settings{Controllers: []string{address}}, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	syncer, nodes, _ := newSyncer(t, client)
	// The service has 16 of the nodes from its file, and ten lines are listed.
	rest := fmt.Sprintf("... %d more", racks*rackSize-16-10)
	if code, text := ask(t, address, "check"); code != 1 || !strings.Contains(text, "add_host") || !strings.Contains(text, rest) {
		t.Errorf("exit %d before the sync: %s", code, text)
	}
	cordon(t, "r7h3", true)
	t.Cleanup(func() { cordon(t, "r7h3", false) })
	eventually(t, "the informer does not see the cordon", func() bool {
		node, err := nodes.Get("r7h3")
		return err == nil && node.Spec.Unschedulable
	})
	began := time.Now()
	if remaining := syncer.Step(t.Context(), time.Now()); len(remaining) != 0 {
		t.Errorf("%+v", remaining)
	}
	t.Logf("%d nodes in %v", racks*rackSize, time.Since(began).Round(time.Millisecond))
	hosts, err := client.Hosts(t.Context())
	if err != nil || len(hosts) != racks*rackSize {
		t.Fatalf("%v: %d hosts", err, len(hosts))
	}
	draining := []string{}
	for _, host := range hosts {
		if host.Draining {
			draining = append(draining, host.Host)
		}
	}
	if len(draining) != 1 || draining[0] != "r7h3" {
		t.Errorf("draining: %v", draining)
	}
	if code, text := ask(t, address, "check"); code != 0 || !strings.Contains(text, fmt.Sprintf("%d nodes are hosts of the service", racks*rackSize)) {
		t.Errorf("exit %d after the sync: %s", code, text)
	}
	if code, text := ask(t, address, "top", "--nodes", "--limit", "3"); code != 0 || !strings.Contains(text, fmt.Sprintf("%d more", racks*rackSize-3)) {
		t.Errorf("exit %d: %s", code, text)
	}
	if err := plane.AddNode(t.Context(), "unlabeled", "", podsOfNode); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Client.CoreV1().Nodes().Delete(context.Background(), "unlabeled", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the informer does not see the node", func() bool {
		_, err := nodes.Get("unlabeled")
		return err == nil
	})
	for range 2 {
		if remaining := syncer.Step(t.Context(), time.Now()); len(remaining) != 1 || remaining[0].Kind != clustersync.NoRack {
			t.Errorf("%+v", remaining)
		}
	}
	eventually(t, "not one event", func() bool { return len(eventsOf(t, "LeewardNoRackLabel", "unlabeled")) == 1 })
	if code, text := ask(t, address, "check"); code != 1 || !strings.Contains(text, "unlabeled: the node has none of the labels") {
		t.Errorf("exit %d: %s", code, text)
	}
}
