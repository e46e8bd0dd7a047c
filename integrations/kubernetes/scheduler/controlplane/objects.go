package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// Validate checks whether the API server accepts the objects of a file, as `kubectl apply --server-side --dry-run=server` does.
// It returns the number of accepted objects, and an error that joins those of the others.
func (c *ControlPlane) Validate(ctx context.Context, path string) (int, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	finder, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return 0, err
	}
	resources, err := restmapper.GetAPIGroupResources(finder)
	if err != nil {
		return 0, err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(resources)
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return 0, err
	}
	var problems []error
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for count := 0; ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return count, errors.Join(problems...)
		}
		if err != nil {
			return count, fmt.Errorf("%s: %w", path, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return count, fmt.Errorf("%s: %w", path, err)
		}
		if object.Object == nil {
			// A document of comments alone.
			continue
		}
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err == nil {
			namespace := object.GetNamespace()
			if namespace == "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
				namespace = metav1.NamespaceDefault
			}
			_, err = client.Resource(mapping.Resource).Namespace(namespace).Apply(ctx, object.GetName(), object,
				metav1.ApplyOptions{FieldManager: "controlplane", DryRun: []string{metav1.DryRunAll}})
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s %s: %w", path, kind.Kind, object.GetName(), err))
			continue
		}
		count++
	}
}
