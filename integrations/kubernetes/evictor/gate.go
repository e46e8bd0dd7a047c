package evictor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// StopAnnotation stops all evictions while the evictor's ConfigMap has it with the value "stop".
const StopAnnotation = "leeward.dev/evictions"

// StopValue is the value of [StopAnnotation] that stops evictions.
const StopValue = "stop"

// recordsKey is the key of the records in the ConfigMap.
const recordsKey = "records"

// gate is the evictor's ConfigMap. It has the records, so that budgets and cooldowns hold across restarts, and the annotation
// that stops evictions.
//
// Each eviction is written before it is requested. The write fails if anything else has changed the ConfigMap since it was
// read. So two evictors that both believe to lead share one budget and its cooldowns, and an evictor that missed the annotation
// evicts nothing.
type gate struct {
	maps typedcorev1.ConfigMapInterface
	name string
	// settings have the limits, which are written with the records.
	settings Settings
	read     *corev1.ConfigMap
}

// open reads the ConfigMap and returns its records, and true if evictions are stopped. It creates a missing one.
func (g *gate) open(ctx context.Context) ([]Record, bool, error) {
	read, err := g.maps.Get(ctx, g.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		empty := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
		read, err = g.maps.Create(ctx, empty, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, false, fmt.Errorf("configmap %s: %w", g.name, err)
	}
	g.read = read
	records, err := decodeRecords(read.Data[recordsKey])
	if err != nil {
		return nil, false, fmt.Errorf("configmap %s: %w: correct it, or delete the ConfigMap to forget earlier evictions", g.name, err)
	}
	return records, read.Annotations[StopAnnotation] == StopValue, nil
}

// write replaces the records. It fails if the ConfigMap has changed since it was read or written.
func (g *gate) write(ctx context.Context, records []Record) error {
	text, err := encodeRecords(records)
	if err != nil {
		return fmt.Errorf("records: %w", err)
	}
	limits, err := encodeLimits(g.settings)
	if err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	next := g.read.DeepCopy()
	if next.Data == nil {
		next.Data = map[string]string{}
	}
	if (next.Data[recordsKey] == text && next.Data[limitsKey] == limits) || (len(records) == 0 && next.Data[recordsKey] == "") {
		return nil
	}
	next.Data[recordsKey], next.Data[limitsKey] = text, limits
	written, err := g.maps.Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("configmap %s: %w", g.name, err)
	}
	g.read = written
	return nil
}
