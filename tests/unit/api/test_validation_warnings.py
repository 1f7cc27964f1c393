"""What is acted on, perhaps not as meant: warnings, which nobody is refused for."""

from __future__ import annotations

import msgspec
import pytest

from mcm.api.machine import Machine, MachineClass, MachineDeployment, MachineSet
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_EFFECTIVE_CREATION_TIMEOUT,
    ANNOTATION_MARKED_FOR_DELETION,
    ANNOTATION_PRESERVE,
    ANNOTATION_PRIORITY,
    ANNOTATION_REPLICA_CHANGE_BY_SCALER,
    ANNOTATION_ROLLBACK_AFTER,
    ANNOTATION_SURGE_POOL,
    ANNOTATION_TRIGGER_DELETION,
    LABEL_SELECTED_FOR_UPDATE,
)
from mcm.api.validation import Examined, describe, errors_among, examine
from mcm.sandbox.apiserver.patches import apply_merge_patch

META: JSONObject = {"name": "pool", "namespace": "ns"}
TEMPLATE: JSONObject = {
    "metadata": {"labels": {"name": "pool"}},
    "spec": {"class": {"kind": "MachineClass", "name": "small"}},
}
POOL: JSONObject = {
    "metadata": META,
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"name": "pool"}},
        "template": TEMPLATE,
        "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
    },
}
SET: JSONObject = {
    "metadata": META,
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"name": "pool"}},
        "template": TEMPLATE,
    },
}
MACHINE: JSONObject = {"metadata": META, "spec": TEMPLATE["spec"]}
CLASS: JSONObject = {"metadata": META, "secretRef": {"name": "cloud", "namespace": "ns"}}

_BASES: dict[type[Examined], JSONObject] = {
    MachineDeployment: POOL,
    MachineSet: SET,
    Machine: MACHINE,
    MachineClass: CLASS,
}


def _annotated(key: str, value: str) -> JSONObject:
    return {"metadata": {"annotations": {key: value}}}


def _templated(**fields: object) -> JSONObject:
    return {"spec": {"template": {"spec": fields}}}


def _strategy(kind: str = "RollingUpdate", **blocks: object) -> JSONObject:
    return {"spec": {"strategy": {"type": kind, **blocks}}}


def _shares(surge: int | str, unavailable: int | str) -> JSONObject:
    return {"maxSurge": surge, "maxUnavailable": unavailable}


@pytest.mark.parametrize("kind", _BASES)
def test_of_a_good_object_there_is_nothing_to_say(kind: type[Examined]) -> None:
    assert examine(msgspec.convert(_BASES[kind], kind)) == ()


_TIMEOUT = f"metadata.annotations[{ANNOTATION_EFFECTIVE_CREATION_TIMEOUT}]"
_ROLLING = "spec.strategy.rollingUpdate"
_IN_PLACE = "spec.strategy.inPlaceUpdate"


@pytest.mark.parametrize(
    ("kind", "change", "field"),
    [
        (MachineDeployment, _strategy(rollingUpdate=_shares(0, 0)), f"{_ROLLING}.maxUnavailable"),
        (
            MachineDeployment,
            _strategy(rollingUpdate=_shares("0%", "33%")),
            f"{_ROLLING}.maxUnavailable",
        ),
        (MachineDeployment, _strategy(rollingUpdate=_shares("101%", 0)), f"{_ROLLING}.maxSurge"),
        (MachineDeployment, _strategy("Recreate"), _ROLLING),
        (MachineDeployment, _strategy(inPlaceUpdate=_shares(1, 0)), _IN_PLACE),
        (
            MachineDeployment,
            {"spec": {"progressDeadlineSeconds": 30, "minReadySeconds": 30}},
            "spec.progressDeadlineSeconds",
        ),
        (
            MachineDeployment,
            {"spec": {"progressDeadlineSeconds": 0}},
            "spec.progressDeadlineSeconds",
        ),
        (MachineDeployment, _annotated(ANNOTATION_EFFECTIVE_CREATION_TIMEOUT, "soon"), _TIMEOUT),
        (MachineSet, _annotated(ANNOTATION_EFFECTIVE_CREATION_TIMEOUT, "-1s"), _TIMEOUT),
        (Machine, _annotated(ANNOTATION_EFFECTIVE_CREATION_TIMEOUT, ""), _TIMEOUT),
        (
            MachineDeployment,
            _annotated(ANNOTATION_TRIGGER_DELETION, "one~2026-01-01T00:00:00Z,two~today"),
            f"metadata.annotations[{ANNOTATION_TRIGGER_DELETION}]",
        ),
        (
            MachineDeployment,
            _annotated(ANNOTATION_ROLLBACK_AFTER, "a while"),
            f"metadata.annotations[{ANNOTATION_ROLLBACK_AFTER}]",
        ),
        (
            MachineDeployment,
            _annotated(ANNOTATION_SURGE_POOL, " "),
            f"metadata.annotations[{ANNOTATION_SURGE_POOL}]",
        ),
        (
            MachineDeployment,
            _annotated(ANNOTATION_REPLICA_CHANGE_BY_SCALER, "today"),
            f"metadata.annotations[{ANNOTATION_REPLICA_CHANGE_BY_SCALER}]",
        ),
        (
            Machine,
            _annotated(ANNOTATION_PRIORITY, "high"),
            f"metadata.annotations[{ANNOTATION_PRIORITY}]",
        ),
        (
            Machine,
            _annotated(ANNOTATION_PRESERVE, "yes"),
            f"metadata.annotations[{ANNOTATION_PRESERVE}]",
        ),
        (
            Machine,
            _annotated(ANNOTATION_MARKED_FOR_DELETION, "x"),
            f"metadata.annotations[{ANNOTATION_MARKED_FOR_DELETION}]",
        ),
        (MachineSet, {"metadata": {"labels": {"freeze": "true"}}}, "metadata.labels[freeze]"),
        (
            Machine,
            {"metadata": {"labels": {"force-deletion": "yes"}}},
            "metadata.labels[force-deletion]",
        ),
        (MachineSet, {"spec": {"machineClass": {"name": "small"}}}, "spec.machineClass"),
        (MachineSet, _templated(providerID="x://1"), "spec.template.spec.providerID"),
        (
            MachineSet,
            {"spec": {"template": {"metadata": {"name": "x"}}}},
            "spec.template.metadata.name",
        ),
        (
            MachineDeployment,
            {"spec": {"template": {"metadata": {"annotations": {ANNOTATION_PRESERVE: "yes"}}}}},
            f"spec.template.metadata.annotations[{ANNOTATION_PRESERVE}]",
        ),
        (Machine, {"spec": {"class": {"apiGroup": "apps"}}}, "spec.class.apiGroup"),
        (Machine, {"spec": {"class": {"kind": "AWSMachineClass"}}}, "spec.class.kind"),
        (
            Machine,
            {"spec": {"nodeConditions": "DiskPressure,Kernel Deadlock"}},
            "spec.nodeConditions",
        ),
        (
            MachineSet,
            _templated(nodeTemplate={"metadata": {"labels": {"a b": ""}}}),
            "spec.template.spec.nodeTemplate.metadata.labels[a b]",
        ),
        (
            Machine,
            {"spec": {"nodeTemplate": {"metadata": {"annotations": {"/": ""}}}}},
            "spec.nodeTemplate.metadata.annotations[/]",
        ),
        (
            Machine,
            {"spec": {"nodeTemplate": {"metadata": {"labels": {LABEL_SELECTED_FOR_UPDATE: ""}}}}},
            f"spec.nodeTemplate.metadata.labels[{LABEL_SELECTED_FOR_UPDATE}]",
        ),
        (
            Machine,
            {"spec": {"nodeTemplate": {"spec": {"taints": [{"key": "a", "effect": "Never"}]}}}},
            "spec.nodeTemplate.spec.taints[0]",
        ),
        (MachineClass, {"secretRef": {"name": ""}}, "secretRef.name"),
        (MachineClass, {"secretRef": {"name": "A b"}}, "secretRef.name"),
        (
            MachineClass,
            {"credentialsSecretRef": {"name": "a", "namespace": "B"}},
            "credentialsSecretRef.namespace",
        ),
    ],
)
def test_a_warning_names_its_field_and_refuses_nothing(
    kind: type[Examined], change: JSONObject, field: str
) -> None:
    body = apply_merge_patch(_BASES[kind], change)
    found = examine(msgspec.convert(body, kind))
    assert [f.field for f in found] == [field]
    assert found[0].is_warning and not errors_among(found)


def test_a_warning_says_what_happens() -> None:
    body = apply_merge_patch(POOL, _strategy(rollingUpdate=_shares("0%", 0)))
    assert describe(examine(msgspec.convert(body, MachineDeployment))) == (
        "spec.strategy.rollingUpdate.maxUnavailable: 0: "
        "it and maxSurge are none of 3 machines; it acts as 1"
    )


def test_the_bound_of_replicas_can_be_chosen_and_switched_off() -> None:
    many = msgspec.convert(apply_merge_patch(POOL, {"spec": {"replicas": 11}}), MachineDeployment)
    assert describe(examine(many, max_replicas=10)) == (
        "spec.replicas: Invalid value 11: must be at most 10, which --max-replicas allows"
    )
    assert examine(many, max_replicas=11) == ()
    all_there_may_be = msgspec.structs.replace(many.spec, replicas=2**31 - 1)
    assert examine(msgspec.structs.replace(many, spec=all_there_may_be), max_replicas=0) == ()
    too_many = msgspec.structs.replace(many.spec, replicas=2**31)
    assert errors_among(examine(msgspec.structs.replace(many, spec=too_many), max_replicas=0))


def test_texts_of_users_are_repeated_in_short() -> None:
    long = "x" * 1000
    body = apply_merge_patch(POOL, {"spec": {"strategy": {"type": long}}})
    for change in (
        _templated(drainTimeout="-" + "1h" * 500),
        _annotated(ANNOTATION_PRIORITY, long),
    ):
        body = apply_merge_patch(body, change)
    found = examine(msgspec.convert(body, MachineDeployment))
    assert found and all(len(str(f)) < 400 for f in found)
