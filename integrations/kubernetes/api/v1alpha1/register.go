package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is the name of the kind.
const Kind = "TrafficMatrix"

// GroupVersion is the API group with its version, and Resource the path of the kind in the API.
var (
	GroupVersion = schema.GroupVersion{Group: "leeward.dev", Version: "v1alpha1"}
	Resource     = GroupVersion.WithResource("trafficmatrices")
)

// AddToScheme registers the kind in a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &TrafficMatrix{}, &TrafficMatrixList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
