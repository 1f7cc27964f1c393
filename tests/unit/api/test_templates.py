from __future__ import annotations

import copy

import pytest

from mcm.api.machine import ClassSpec, MachineTemplate
from mcm.api.templates import (
    TemplateError,
    annotations_of,
    class_of,
    finalizers_of,
    labels_of,
    machine_spec_of,
    with_label,
    without_label,
)

TEMPLATE = MachineTemplate(
    metadata={
        "creationTimestamp": None,
        "labels": {"name": "demo"},
        "annotations": {"note": "hello"},
        "finalizers": ["a/b"],
        "somethingNew": {"kept": [1, None]},
    },
    spec={
        "class": {"apiGroup": "g", "kind": "MachineClass", "name": "class-a"},
        "drainTimeout": "10m0s",
        "nodeTemplate": {
            "metadata": {"creationTimestamp": None, "labels": {"pool": "demo"}},
            "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/8"},
        },
    },
)


def test_the_views_show_what_decides_something() -> None:
    assert labels_of(TEMPLATE) == {"name": "demo"}
    assert annotations_of(TEMPLATE) == {"note": "hello"}
    assert finalizers_of(TEMPLATE) == ("a/b",)
    assert class_of(TEMPLATE) == ClassSpec(api_group="g", kind="MachineClass", name="class-a")
    spec = machine_spec_of(TEMPLATE)
    assert spec.class_ == class_of(TEMPLATE)
    assert spec.drain_timeout == "10m0s"
    assert spec.node_template is not None and spec.node_template.spec is not None
    assert [t.key for t in spec.node_template.spec.taints or ()] == ["k"]


@pytest.mark.parametrize(
    "metadata",
    [{}, {"labels": None}, {"labels": ["x"]}, {"labels": {"a": 1}}, {"finalizers": "x"}],
)
def test_metadata_of_the_wrong_form_is_left_out(metadata: dict[str, object]) -> None:
    template = MachineTemplate(metadata=metadata)
    assert labels_of(template) == {}
    assert annotations_of(template) == {}
    assert finalizers_of(template) == ()


@pytest.mark.parametrize(
    "spec", [{}, {"class": None}, {"class": []}, {"class": {"name": 5, "kind": None}}]
)
def test_a_class_of_the_wrong_form_is_empty(spec: dict[str, object]) -> None:
    assert class_of(MachineTemplate(spec=spec)) == ClassSpec()


def test_nulls_mean_absent() -> None:
    spec = machine_spec_of(
        MachineTemplate(spec={"class": None, "providerID": None, "maxEvictRetries": 3})
    )
    assert spec.class_ == ClassSpec()
    assert spec.provider_id == ""
    assert spec.max_evict_retries == 3


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"drainTimeout": 5}, ".drainTimeout"),
        ({"class": "x"}, ".class"),
        ({"nodeTemplate": {"spec": {"taints": [{"effect": "x"}]}}}, ".nodeTemplate.spec.taints[0]"),
        ({"nodeTemplate": {"metadata": {"labels": {"a": 1}}}}, ".nodeTemplate.metadata.labels"),
    ],
)
def test_a_spec_of_the_wrong_form_names_the_field(spec: dict[str, object], path: str) -> None:
    with pytest.raises(TemplateError) as caught:
        machine_spec_of(MachineTemplate(spec=spec))
    assert caught.value.path.startswith(f"spec.template.spec{path}")
    assert str(caught.value) == f"{caught.value.path}: {caught.value.detail}"


def test_labels_are_added_and_removed_in_copies() -> None:
    before = copy.deepcopy(TEMPLATE)
    hashed = with_label(TEMPLATE, "machine-template-hash", "42")
    assert labels_of(hashed) == {"name": "demo", "machine-template-hash": "42"}
    assert hashed.spec == TEMPLATE.spec
    assert hashed.metadata["somethingNew"] == {"kept": [1, None]}
    assert without_label(hashed, "machine-template-hash") == TEMPLATE == before


def test_removing_a_label_that_is_not_there_changes_nothing() -> None:
    assert without_label(TEMPLATE, "other") is TEMPLATE
    assert labels_of(with_label(MachineTemplate(), "a", "b")) == {"a": "b"}
