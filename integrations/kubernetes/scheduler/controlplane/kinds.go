package controlplane

import (
	"context"
	"fmt"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// definitions is the path of custom kinds in the API.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// AddKind adds the custom kind of a file, and waits until the API server serves it. A kind that exists stays as it is.
func (c *ControlPlane) AddKind(ctx context.Context, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	kind := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(text, &kind.Object); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	_, err = client.Resource(definitions).Create(ctx, kind, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("%s: %w", path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		now, err := client.Resource(definitions).Get(ctx, kind.GetName(), metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if isEstablished(now) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", path, errTimeout)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func isEstablished(kind *unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(kind.Object, "status", "conditions")
	if err != nil {
		return false
	}
	for _, each := range conditions {
		if of, ok := each.(map[string]any); ok && of["type"] == "Established" && of["status"] == "True" {
			return true
		}
	}
	return false
}
