// Package v1alpha1 has the kind TrafficMatrix of the API group leeward.dev: the pods of an app, and the bytes that they send
// each other (Choreo, section 2.1).
//
// Bytes are totals and not rates, because a rate depends on the other traffic of the network. A matrix is written as
// transfers between groups of pods, as collectives, or as rows of numbers. They add up, and [TrafficMatrixSpec.App] turns
// them into the tasks and pairs that the controller places.
package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrafficMatrix says how much the pods of an app send each other.
type TrafficMatrix struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   TrafficMatrixSpec   `json:"spec"`
	Status TrafficMatrixStatus `json:"status,omitempty"`
}

// TrafficMatrixSpec is an app: groups of pods, and the traffic between them.
type TrafficMatrixSpec struct {
	// Groups are the groups of pods. Tasks are numbered through all groups, in their order.
	Groups []Group `json:"groups"`
	// Transfers are bytes between pods of two groups.
	Transfers []Transfer `json:"transfers,omitempty"`
	// Collectives are the transfers of collective operations.
	Collectives []Collective `json:"collectives,omitempty"`
	// Matrix has a row for each sending task and a column for each receiving one, in bytes.
	Matrix [][]resource.Quantity `json:"matrix,omitempty"`
}

// Group is a group of pods in the namespace of the matrix. Either a selector or names find its pods.
type Group struct {
	// Name is a DNS label, unique in the matrix.
	Name string `json:"name"`
	// Count is the number of pods; 1 by default, and with names their number.
	Count int32 `json:"count,omitempty"`
	// Selector finds the pods by their labels.
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// Pods are the names of the pods, in the order of their numbers.
	Pods []string `json:"pods,omitempty"`
	// IndexLabel is the label with the number of a pod in its group. By default it is the index of a Job or of a
	// StatefulSet. Pods without an index are numbered in the order of their names.
	IndexLabel string `json:"indexLabel,omitempty"`
}

// Transfer is the bytes that each sender sends to each receiver. Without an index, all pods of a group are meant.
type Transfer struct {
	From      string            `json:"from"`
	FromIndex *int32            `json:"fromIndex,omitempty"`
	To        string            `json:"to"`
	ToIndex   *int32            `json:"toIndex,omitempty"`
	Bytes     resource.Quantity `json:"bytes"`
}

// Pattern is the pattern of a collective operation.
type Pattern string

// Patterns. Tasks are those of the groups of the collective, numbered from 0.
const (
	// Ring means that each task sends to the next one, and the last to the first.
	Ring Pattern = "Ring"
	// Tree means a binary tree: the tasks 2i+1 and 2i+2 send to the task i, and it sends to them.
	Tree Pattern = "Tree"
	// AllToAll means that each task sends to each other one.
	AllToAll Pattern = "AllToAll"
	// Pipeline means that each task but the last sends to the next one.
	Pipeline Pattern = "Pipeline"
)

// Collective is a collective operation of at least two tasks.
type Collective struct {
	Pattern Pattern  `json:"pattern"`
	Groups  []string `json:"groups"`
	// Bytes are sent from each sender to each of its receivers.
	Bytes resource.Quantity `json:"bytes"`
}

// Types of conditions.
const (
	// ConditionValid is false if the matrix is no app; the message names the field and its value.
	ConditionValid = "Valid"
	// ConditionComplete is false if pods of the app did not come in time; the message names their groups.
	ConditionComplete = "Complete"
	// ConditionPlaced is true if the controller chose the hosts of all pods together.
	ConditionPlaced = "Placed"
)

// TrafficMatrixStatus says what became of the app.
type TrafficMatrixStatus struct {
	// ObservedGeneration is the generation of the matrix that the status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Tasks and Pairs are the numbers of tasks, and of pairs of tasks with traffic.
	Tasks int32 `json:"tasks,omitempty"`
	Pairs int32 `json:"pairs,omitempty"`
	// Bytes is the sum of all pairs.
	Bytes *resource.Quantity `json:"bytes,omitempty"`
	// Decision is the id of the controller's decision, which is released once the pods have ended.
	Decision string `json:"decision,omitempty"`
	// Conditions are those above.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
