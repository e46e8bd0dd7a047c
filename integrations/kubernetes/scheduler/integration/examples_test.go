package integration

import "testing"

// repository is the folder of this repository.
const repository = "../../../../"

func TestAnApiServerAcceptsTheExamples(t *testing.T) {
	if err := plane.AddKind(t.Context(), repository+"packaging/helm/leeward/crds/trafficmatrices.yaml"); err != nil {
		t.Fatal(err)
	}
	if count, err := plane.Validate(t.Context(), repository+"examples/kubernetes/training.yaml"); err != nil || count != 3 {
		t.Errorf("%d objects: %v", count, err)
	}
}
