package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// Kind is the name of the kind.
const Kind = "TrafficMatrix"

// GroupVersion is the API group with its version, and Resource the path of the kind in the API.
var (
	GroupVersion = schema.GroupVersion{Group: "leeward.dev", Version: "v1alpha1"}
	Resource     = GroupVersion.WithResource("trafficmatrices")
)
