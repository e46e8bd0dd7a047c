package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// copied returns a copy of a slice whose elements are copied one by one; nil stays nil.
func copied[T any](list []T, element func(T) T) []T {
	if list == nil {
		return nil
	}
	result := make([]T, 0, len(list))
	for _, each := range list {
		result = append(result, element(each))
	}
	return result
}

// pointer returns a pointer to a copy of a value; nil stays nil.
func pointer[T any](value *T) *T {
	if value == nil {
		return nil
	}
	result := *value
	return &result
}

// DeepCopy returns a copy that shares nothing with the original.
func (m *TrafficMatrix) DeepCopy() *TrafficMatrix {
	return &TrafficMatrix{
		TypeMeta: m.TypeMeta, ObjectMeta: *m.ObjectMeta.DeepCopy(), Spec: m.Spec.DeepCopy(), Status: m.Status.DeepCopy(),
	}
}

// DeepCopyObject returns a copy as an object of the API.
func (m *TrafficMatrix) DeepCopyObject() runtime.Object { return m.DeepCopy() }

// DeepCopy returns a copy that shares nothing with the original.
func (s TrafficMatrixSpec) DeepCopy() TrafficMatrixSpec {
	quantity := func(q resource.Quantity) resource.Quantity { return q.DeepCopy() }
	s.Groups = copied(s.Groups, func(g Group) Group {
		g.Selector, g.Pods = g.Selector.DeepCopy(), slices.Clone(g.Pods)
		return g
	})
	s.Transfers = copied(s.Transfers, func(t Transfer) Transfer {
		t.FromIndex, t.ToIndex, t.Bytes = pointer(t.FromIndex), pointer(t.ToIndex), t.Bytes.DeepCopy()
		return t
	})
	s.Collectives = copied(s.Collectives, func(c Collective) Collective {
		c.Groups, c.Bytes = slices.Clone(c.Groups), c.Bytes.DeepCopy()
		return c
	})
	s.Matrix = copied(s.Matrix, func(row []resource.Quantity) []resource.Quantity { return copied(row, quantity) })
	return s
}

// DeepCopy returns a copy that shares nothing with the original.
func (s TrafficMatrixStatus) DeepCopy() TrafficMatrixStatus {
	if s.Bytes != nil {
		bytes := s.Bytes.DeepCopy()
		s.Bytes = &bytes
	}
	s.Conditions = copied(s.Conditions, func(c metav1.Condition) metav1.Condition { return c })
	return s
}
