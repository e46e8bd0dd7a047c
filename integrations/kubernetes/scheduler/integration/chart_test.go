package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// packaging is the folder of the Helm chart.
const packaging = "../../../../packaging/helm/"

func TestAnApiServerAcceptsAllObjectsOfTheChartAndTheExamples(t *testing.T) {
	if err := plane.AddKind(t.Context(), packaging+"leeward/crds/trafficmatrices.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"network", metav1.NamespaceSystem} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := plane.Client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for path, objects := range map[string]int{"tests/rendered.yaml": 30, "../../examples/kubernetes/training.yaml": 3} {
		if count, err := plane.Validate(t.Context(), packaging+path); err != nil || count < objects {
			t.Errorf("%s: %d objects: %v", path, count, err)
		}
	}
}
