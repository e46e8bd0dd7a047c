package kubectl

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"leeward.dev/kubernetes/api/v1alpha1"
	"leeward.dev/kubernetes/evictor"
	"leeward.dev/kubernetes/ledger"
	"leeward.dev/kubernetes/peaks"
	"leeward.dev/kubernetes/placements"
	"leeward.dev/kubernetes/snapshot"
)

// pageSize is the number of objects that the API server returns at once.
const pageSize = 500

// pages requests all pages of a list.
func pages(request func(options metav1.ListOptions) (string, error)) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		next, err := request(options)
		if err != nil || next == "" {
			return err
		}
		options.Continue = next
	}
}

// nodes requests all nodes.
func (s *Sources) nodes(ctx context.Context) ([]*corev1.Node, error) {
	var all []*corev1.Node
	err := pages(func(options metav1.ListOptions) (string, error) {
		page, err := s.Kube.CoreV1().Nodes().List(ctx, options)
		if err != nil {
			return "", fmt.Errorf("nodes: %w", err)
		}
		for i := range page.Items {
			all = append(all, &page.Items[i])
		}
		return page.Continue, nil
	})
	return all, err
}

// pods requests all pods.
func (s *Sources) pods(ctx context.Context) ([]*corev1.Pod, error) {
	var all []*corev1.Pod
	err := pages(func(options metav1.ListOptions) (string, error) {
		page, err := s.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return "", fmt.Errorf("pods: %w", err)
		}
		for i := range page.Items {
			all = append(all, &page.Items[i])
		}
		return page.Continue, nil
	})
	return all, err
}

// budgets requests all PodDisruptionBudgets.
func (s *Sources) budgets(ctx context.Context) ([]*policyv1.PodDisruptionBudget, error) {
	var all []*policyv1.PodDisruptionBudget
	err := pages(func(options metav1.ListOptions) (string, error) {
		page, err := s.Kube.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return "", fmt.Errorf("poddisruptionbudgets: %w", err)
		}
		for i := range page.Items {
			all = append(all, &page.Items[i])
		}
		return page.Continue, nil
	})
	return all, err
}

// matrices requests all traffic matrices. A cluster without the kind has none.
func (s *Sources) matrices(ctx context.Context) ([]*v1alpha1.TrafficMatrix, error) {
	var all []*v1alpha1.TrafficMatrix
	err := pages(func(options metav1.ListOptions) (string, error) {
		page, err := s.Dynamic.Resource(v1alpha1.Resource).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("trafficmatrices: %w", err)
		}
		for i := range page.Items {
			matrix := &v1alpha1.TrafficMatrix{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(page.Items[i].Object, matrix); err != nil {
				return "", fmt.Errorf("trafficmatrix %s/%s: %w", page.Items[i].GetNamespace(), page.Items[i].GetName(), err)
			}
			all = append(all, matrix)
		}
		return page.GetContinue(), nil
	})
	return all, err
}

// evictorState requests the state of the evictor. One that has written nothing has the default limits. If the state cannot be read,
// these count too, and the problem says so.
func (s *Sources) evictorState(ctx context.Context, o *options) (state evictor.State, problem string, err error) {
	namespace, name, err := o.evictorName()
	if err != nil {
		return state, "", err
	}
	read, err := s.Kube.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		read, err = nil, nil
	}
	if err == nil {
		if state, err = evictor.StateOf(read); err == nil {
			return state, "", nil
		}
	}
	problem = fmt.Sprintf("without cooldowns and the budget of the hour: configmap %s/%s of --evictor: %s", namespace, name, err)
	return evictor.State{Settings: evictor.DefaultSettings()}, problem, nil
}

// places requests the pods, nodes and budgets of the cluster, with racks as the service knows them.
func (s *Sources) places(ctx context.Context, names *snapshot.Names, schedulers []string) (evictor.Places, error) {
	cluster := evictor.Cluster{Schedulers: schedulers}
	var err error
	if cluster.Pods, err = s.pods(ctx); err != nil {
		return evictor.Places{}, err
	}
	if cluster.Nodes, err = s.nodes(ctx); err != nil {
		return evictor.Places{}, err
	}
	if cluster.Budgets, err = s.budgets(ctx); err != nil {
		return evictor.Places{}, err
	}
	measured, err := s.peaks(ctx)
	if err != nil {
		return evictor.Places{}, err
	}
	return cluster.Places(names.RackOf, measured.Peaks), nil
}

// peaks requests the measured peaks of all workloads.
func (s *Sources) peaks(ctx context.Context) (*peaks.Table, error) {
	table, err := peaks.Fetch(ctx, func(ctx context.Context, method, path string, body []byte) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, wholeDeadlines*s.Snapshots.Settings().Deadline)
		defer cancel()
		return s.Snapshots.Call(ctx, method, path, body)
	})
	if err != nil {
		return nil, fmt.Errorf("measured peaks: %w", err)
	}
	return table, nil
}

// view requests the network.
func (s *Sources) view(ctx context.Context) (*placements.View, error) {
	next, err := s.Snapshots.Get(ctx, nil, true)
	if err != nil {
		return nil, err
	}
	estimator, err := ledger.NewEstimator(ledger.DefaultInterval, ledger.DefaultAlpha)
	if err != nil {
		return nil, err
	}
	// The plugin places nothing, so the estimator has no effect.
	own, err := placements.New("kubectl", estimator, placements.DefaultLasts)
	if err != nil {
		return nil, err
	}
	own.OnSnapshot(next)
	return own.View(), nil
}
