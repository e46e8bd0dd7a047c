package peaks

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"leeward.dev/kubernetes/demand"
)

// mostRounds is the largest number of requests that name pods in one interval: 50,000 pods.
const mostRounds = 50

// uidIndex is the index of pods by their UID as agents know it.
const uidIndex = "leeward.dev/uid"

// Pods returns the pods with a UID as agents know it: 32 hexadecimal digits.
type Pods func(uid string) []*corev1.Pod

// PodsIn returns the pods of an informer by their UID. It must be called before the informer starts.
func PodsIn(informer cache.SharedIndexInformer) (Pods, error) {
	indexer := informer.GetIndexer()
	if _, ok := indexer.GetIndexers()[uidIndex]; !ok {
		if err := informer.AddIndexers(cache.Indexers{uidIndex: func(object any) ([]string, error) {
			if pod, ok := object.(*corev1.Pod); ok {
				return []string{uidOf(pod)}, nil
			}
			return nil, nil
		}}); err != nil {
			return nil, err
		}
	}
	return func(uid string) []*corev1.Pod {
		objects, err := indexer.ByIndex(uidIndex, uid)
		if err != nil {
			return nil
		}
		var pods []*corev1.Pod
		for _, object := range objects {
			if pod, ok := object.(*corev1.Pod); ok {
				pods = append(pods, pod)
			}
		}
		return pods
	}, nil
}

// uidOf returns the UID of a pod as its agent knows it. The kubelet knows a static pod by the hash of its manifest, which its
// mirror at the API server has as an annotation.
func uidOf(pod *corev1.Pod) string {
	uid := string(pod.UID)
	if hash := pod.Annotations[corev1.MirrorPodAnnotationKey]; hash != "" {
		uid = hash
	}
	return plain(uid)
}

func plain(uid string) string { return strings.ToLower(strings.ReplaceAll(uid, "-", "")) }

// name is a pod with its workload, for POST /v1/pods.
type name struct {
	Pod  string `json:"pod"`
	Host string `json:"host"`
	Job  string `json:"job"`
}

// unnamed is a pod without a workload, from POST /v1/pods.
type unnamed struct {
	Pod  string `json:"pod"`
	Host string `json:"host"`
}

// namePods names the workloads of pods until the service lists none that is known here. It returns the number of pods that
// the service did not know before.
func namePods(ctx context.Context, call Call, pods Pods) (int, error) {
	total, names := 0, []name{}
	for range mostRounds {
		body, err := json.Marshal(map[string]any{"pods": names, "limit": pageSize})
		if err != nil {
			return total, err
		}
		body, err = call(ctx, http.MethodPost, "/v1/pods", body)
		if err != nil {
			return total, err
		}
		var answer struct {
			Named   int       `json:"named"`
			Unnamed []unnamed `json:"unnamed"`
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			return total, fmt.Errorf("POST /v1/pods: %w", err)
		}
		total += min(max(answer.Named, 0), len(names))
		if names = namesOf(answer.Unnamed, pods); len(names) == 0 {
			break
		}
	}
	return total, nil
}

// namesOf returns the workloads of pods. A pod counts only on its own node, so an agent cannot report for pods of others.
func namesOf(listed []unnamed, pods Pods) []name {
	var names []name
	for _, one := range listed[:min(len(listed), pageSize)] {
		for _, pod := range pods(plain(one.Pod)) {
			job := demand.WorkloadOf(pod).String()
			if pod.Spec.NodeName == one.Host && len(job) <= demand.MostName {
				names = append(names, name{Pod: one.Pod, Host: one.Host, Job: job})
				break
			}
		}
	}
	return names
}
