from __future__ import annotations

import msgspec
import pytest

from mcm.api.machine import ClassSpec, Machine, MachinePhase, MachineSpec, MachineTemplate
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_EFFECTIVE_CREATION_TIMEOUT
from mcm.api.templates import machine_spec_of
from mcm.controllers.machineset.template_sync import sync_change
from tests.unit.machineset.objects import LABELS, SPEC, machine


def spec(**fields: object) -> JSONObject:
    return {**SPEC, **fields}


def of(raw: JSONObject) -> MachineSpec:
    return machine_spec_of(MachineTemplate(metadata={"labels": LABELS}, spec=raw))


def change(subject: Machine, raw: JSONObject) -> JSONObject:
    return sync_change(subject, of(raw), raw_node_template=raw.get("nodeTemplate"))


@pytest.mark.parametrize(
    ("had", "wanted"),
    [
        pytest.param(spec(), spec(), id="equal"),
        pytest.param(spec(drainTimeout="10m"), spec(drainTimeout="10m0s"), id="same duration"),
        pytest.param(spec(), spec(nodeTemplate={}), id="absent and empty"),
        pytest.param(
            spec(nodeTemplate={"metadata": {"labels": {}}, "spec": {}}), spec(), id="empty, absent"
        ),
        pytest.param(
            spec(nodeTemplate={"metadata": {"labels": {"a": "b"}}}),
            spec(nodeTemplate={"metadata": {"labels": {"a": "b"}, "creationTimestamp": None}}),
            id="a null that says nothing",
        ),
        pytest.param(spec(), spec(providerID="x", futureField=1), id="what takes a new machine"),
    ],
)
def test_what_means_the_same_is_not_written(had: JSONObject, wanted: JSONObject) -> None:
    assert change(machine(spec=of(had)), wanted) == {}


@pytest.mark.parametrize(
    ("had", "wanted", "patch"),
    [
        (spec(drainTimeout="10m"), spec(drainTimeout="5m"), {"drainTimeout": "5m"}),
        (spec(healthTimeout="10m"), spec(), {"healthTimeout": None}),
        (spec(), spec(maxEvictRetries=0), {"maxEvictRetries": 0}),
        (spec(maxEvictRetries=0), spec(), {"maxEvictRetries": None}),
        (spec(), spec(disableHealthTimeout=False), {"disableHealthTimeout": False}),
        (spec(), spec(nodeConditions=""), {"nodeConditions": ""}),
        (
            spec(nodeTemplate={"metadata": {"labels": {"a": "b", "old": "x"}}}),
            spec(nodeTemplate={"metadata": {"labels": {"a": "c"}}, "spec": {"podCIDR": "10.0/8"}}),
            {
                "nodeTemplate": {
                    "metadata": {"labels": {"a": "c", "old": None}},
                    "spec": {"podCIDR": "10.0/8"},
                }
            },
        ),
        (
            spec(nodeTemplate={"metadata": {"labels": {"a": "b"}}}),
            spec(),
            {"nodeTemplate": None},
        ),
    ],
)
def test_only_what_differs_is_written(
    had: JSONObject, wanted: JSONObject, patch: JSONObject
) -> None:
    assert change(machine(spec=of(had)), wanted) == {"spec": patch}


@pytest.mark.parametrize(
    "subject",
    [
        machine(phase=MachinePhase.FAILED, spec=of(spec(drainTimeout="1m"))),
        machine(phase=MachinePhase.TERMINATING, spec=of(spec(drainTimeout="1m"))),
        machine(deleted=True, spec=of(spec(drainTimeout="1m"))),
    ],
    ids=["failed", "terminating", "being deleted"],
)
def test_a_machine_at_its_end_only_gets_the_kind_of_its_class(subject: Machine) -> None:
    assert change(subject, spec(drainTimeout="9m")) == {}
    other = msgspec.structs.replace(
        subject, spec=MachineSpec(class_=ClassSpec(kind="AWSMachineClass", name="class-a"))
    )
    assert change(other, spec(drainTimeout="9m")) == {"spec": {"class": {"kind": "MachineClass"}}}


def test_the_class_itself_is_never_changed() -> None:
    raw: JSONObject = {"class": {"kind": "MachineClass", "name": "class-b", "apiGroup": "x"}}
    assert change(machine(spec=of(SPEC)), raw) == {}


@pytest.mark.parametrize(("override", "kept"), [("45m", True), ("soon", False)])
def test_a_machine_keeps_the_creation_timeout_it_was_given(override: str, kept: bool) -> None:
    subject = machine(
        spec=of(spec(creationTimeout="45m")),
        annotations={ANNOTATION_EFFECTIVE_CREATION_TIMEOUT: override},
    )
    wanted = {} if kept else {"spec": {"creationTimeout": "20m"}}
    assert change(subject, spec(creationTimeout="20m")) == wanted
