package main

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// machineGroup is where Machines are served.
var machineGroup = schema.GroupVersion{Group: "machine.sapcloud.io", Version: "v1alpha1"}

// Machine has the fields that a controller of machines declares, as bench/recorded_objects.py
// fills them: what a typed client decodes.
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MachineSpec   `json:"spec,omitempty"`
	Status MachineStatus `json:"status,omitempty"`
}

type MachineSpec struct {
	Class           ClassRef         `json:"class,omitempty"`
	ProviderID      string           `json:"providerID,omitempty"`
	NodeTemplate    NodeTemplate     `json:"nodeTemplate,omitempty"`
	DrainTimeout    *metav1.Duration `json:"drainTimeout,omitempty"`
	HealthTimeout   *metav1.Duration `json:"healthTimeout,omitempty"`
	CreationTimeout *metav1.Duration `json:"creationTimeout,omitempty"`
	MaxEvictRetries *int32           `json:"maxEvictRetries,omitempty"`
	NodeConditions  *string          `json:"nodeConditions,omitempty"`
	UpdateTimeout   *metav1.Duration `json:"inPlaceUpdateTimeout,omitempty"`
	PreserveTimeout *metav1.Duration `json:"machinePreserveTimeout,omitempty"`
	NoHealthTimeout *bool            `json:"disableHealthTimeout,omitempty"`
}

type ClassRef struct {
	APIGroup string `json:"apiGroup,omitempty"`
	Kind     string `json:"kind,omitempty"`
	Name     string `json:"name,omitempty"`
}

type NodeTemplate struct {
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec corev1.NodeSpec `json:"spec,omitempty"`
}

type MachineStatus struct {
	Addresses      []corev1.NodeAddress   `json:"addresses,omitempty"`
	Conditions     []corev1.NodeCondition `json:"conditions,omitempty"`
	LastOperation  LastOperation          `json:"lastOperation,omitempty"`
	CurrentStatus  CurrentStatus          `json:"currentStatus,omitempty"`
	LastKnownState string                 `json:"lastKnownState,omitempty"`
}

type LastOperation struct {
	Description    string      `json:"description,omitempty"`
	ErrorCode      string      `json:"errorCode,omitempty"`
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitempty"`
	State          string      `json:"state,omitempty"`
	Type           string      `json:"type,omitempty"`
}

type CurrentStatus struct {
	Phase              string       `json:"phase,omitempty"`
	TimeoutActive      bool         `json:"timeoutActive,omitempty"`
	LastUpdateTime     metav1.Time  `json:"lastUpdateTime,omitempty"`
	PreserveExpiryTime *metav1.Time `json:"preserveExpiryTime,omitempty"`
}

// MachineList is a list of Machines, as the server sends it.
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Machine `json:"items"`
}

// DeepCopyObject is asked for by every scheme; the race reads, and never copies.
func (m *Machine) DeepCopyObject() runtime.Object {
	c := *m
	m.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	m.Spec.NodeTemplate.ObjectMeta.DeepCopyInto(&c.Spec.NodeTemplate.ObjectMeta)
	m.Spec.NodeTemplate.Spec.DeepCopyInto(&c.Spec.NodeTemplate.Spec)
	c.Spec.DrainTimeout = copied(m.Spec.DrainTimeout)
	c.Spec.HealthTimeout = copied(m.Spec.HealthTimeout)
	c.Spec.CreationTimeout = copied(m.Spec.CreationTimeout)
	c.Spec.UpdateTimeout = copied(m.Spec.UpdateTimeout)
	c.Spec.PreserveTimeout = copied(m.Spec.PreserveTimeout)
	c.Spec.NoHealthTimeout = copied(m.Spec.NoHealthTimeout)
	c.Spec.MaxEvictRetries = copied(m.Spec.MaxEvictRetries)
	c.Spec.NodeConditions = copied(m.Spec.NodeConditions)
	c.Status.Addresses = slices.Clone(m.Status.Addresses)
	c.Status.Conditions = slices.Clone(m.Status.Conditions)
	c.Status.CurrentStatus.PreserveExpiryTime = copied(m.Status.CurrentStatus.PreserveExpiryTime)
	return &c
}

// DeepCopyObject is asked for by every scheme.
func (l *MachineList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = make([]Machine, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*Machine)
	}
	return &c
}

func copied[T any](value *T) *T {
	if value == nil {
		return nil
	}
	c := *value
	return &c
}

func addMachines(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(machineGroup, &Machine{}, &MachineList{})
	metav1.AddToGroupVersion(scheme, machineGroup)
}
