package controlplane

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// Apply applies the objects of a file in their order, as `kubectl apply --server-side --validate=strict` does: an unknown field
// is an error. It returns the number of applied objects, and an error that joins those of the others.
func (c *ControlPlane) Apply(ctx context.Context, path string) (int, error) {
	return c.apply(ctx, path, nil)
}

// Validate does the same as Apply, and changes nothing, as with `--dry-run=server`.
func (c *ControlPlane) Validate(ctx context.Context, path string) (int, error) {
	return c.apply(ctx, path, []string{metav1.DryRunAll})
}

func (c *ControlPlane) apply(ctx context.Context, path string, dryRun []string) (int, error) {
	options := metav1.PatchOptions{
		FieldManager: "controlplane", FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun,
	}
	return c.each(path, func(kind dynamic.ResourceInterface, name string, text []byte) error {
		// The API server gets the text itself, in which it also sees a field that is there twice.
		_, err := kind.Patch(ctx, name, types.ApplyPatchType, text, options)
		return err
	})
}

// Remove deletes the objects of a file. Those that do not exist are no error.
func (c *ControlPlane) Remove(ctx context.Context, path string) error {
	_, err := c.each(path, func(kind dynamic.ResourceInterface, name string, _ []byte) error {
		err := kind.Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	return err
}

// each calls a function for the objects of a file in their order, with the part of the API that has their kind. It returns the
// number of calls without an error, and an error that joins the others.
func (c *ControlPlane) each(path string, call func(kind dynamic.ResourceInterface, name string, text []byte) error) (int, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	resources, err := restmapper.GetAPIGroupResources(c.Client.Discovery())
	if err != nil {
		return 0, err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(resources)
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return 0, err
	}
	var problems []error
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(file)))
	for count := 0; ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return count, errors.Join(problems...)
		}
		if err != nil {
			return count, fmt.Errorf("%s: %w", path, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
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
			err = call(client.Resource(mapping.Resource).Namespace(namespace), object.GetName(), text)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s %s: %w", path, kind.Kind, object.GetName(), err))
			continue
		}
		count++
	}
}
