from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mcm.api.machine import Machine, MachineDeployment, MachineSet
from mcm.api.meta import JSONObject, OwnerReference
from mcm.api.names import ANNOTATION_SCALE_DOWN_DISABLED, ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM
from mcm.controllers.machine.node.template import node_patch
from mcm.controllers.rollouts import KEPT_FROM_AUTOSCALER, Rollouts, keeping_annotations
from mcm.informers.store import Store
from tests.unit.deployment.objects import deployment, owned_set
from tests.unit.machine import objects
from tests.unit.machineset.objects import machine

NAME = "node.gardener.cloud/machine-name"


def of_set(name: str, set_name: str) -> Machine:
    ref = OwnerReference(
        api_version="machine.sapcloud.io/v1alpha1",
        kind="MachineSet",
        name=set_name,
        uid=f"{set_name}-uid",
        controller=True,
    )
    subject = machine(name)
    metadata = msgspec.structs.replace(subject.metadata, owner_references=(ref,))
    return msgspec.structs.replace(subject, metadata=metadata)


def concerns(
    *,
    sets: tuple[MachineSet, ...],
    others: tuple[Machine, ...] = (),
    found: MachineDeployment | None = None,
    subject: Machine | None = None,
) -> bool:
    machines: Store[Machine] = Store()
    known: Store[MachineSet] = Store()
    deployments: Store[MachineDeployment] = Store()
    rollouts = Rollouts(machines, known, deployments)
    subject = subject or of_set("m", "new")
    for one in (subject, *others):
        machines.put(one)
    for machine_set in sets:
        known.put(machine_set)
    deployments.put(found or deployment())
    return rollouts.concern(subject)


NEW, WANTING, EMPTY = owned_set("new"), owned_set("old", 2), owned_set("old", 0)


def test_a_rollout_lasts_while_another_set_wants_or_has_machines() -> None:
    assert not concerns(sets=(NEW,))
    assert concerns(sets=(NEW, WANTING))
    assert not concerns(sets=(NEW, EMPTY))
    assert concerns(sets=(NEW, EMPTY), others=(of_set("o", "old"),))
    assert not concerns(sets=(NEW,), others=(of_set("o", "new"),))


def test_a_paused_deployment_and_machines_that_are_in_none_are_left_alone() -> None:
    assert not concerns(sets=(NEW, WANTING), found=deployment(paused=True))
    assert not concerns(sets=(NEW, WANTING), subject=machine(owner=""))
    assert not concerns(sets=(WANTING,))
    other = deployment()
    other = msgspec.structs.replace(
        other, metadata=msgspec.structs.replace(other.metadata, uid="another")
    )
    assert not concerns(sets=(NEW, WANTING), found=other)


@pytest.mark.parametrize(
    ("present", "missing"),
    [
        ({}, KEPT_FROM_AUTOSCALER),
        ({ANNOTATION_SCALE_DOWN_DISABLED: "true"}, {}),
        (KEPT_FROM_AUTOSCALER, {}),
        ({ANNOTATION_SCALE_DOWN_DISABLED: "false"}, KEPT_FROM_AUTOSCALER),
        (
            {ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM: "true"},
            {ANNOTATION_SCALE_DOWN_DISABLED: "true"},
        ),
    ],
)
def test_somebody_elses_wish_is_not_taken_for_ours(
    present: dict[str, str], missing: dict[str, str]
) -> None:
    assert keeping_annotations(objects.node(annotations=present)) == missing


def test_a_node_that_joins_is_kept_by_the_patch_that_names_it_and_a_named_one_is_not() -> None:
    subject = objects.machine()
    new = written(node_patch(objects.node(), subject, None, in_rollout=True))
    assert KEPT_FROM_AUTOSCALER.items() <= new["annotations"].items()
    assert new["labels"][NAME] == subject.metadata.name
    assert "resourceVersion" not in new, "a kubelet that joins writes all the time"
    named = objects.node(labels={NAME: subject.metadata.name})
    for patch in (
        node_patch(named, subject, None, in_rollout=True),
        node_patch(objects.node(), subject, None),
    ):
        assert not KEPT_FROM_AUTOSCALER.keys() & written(patch).get("annotations", {}).keys()


def written(patch: JSONObject | None) -> dict[str, Any]:
    assert patch is not None
    metadata = patch["metadata"]
    assert isinstance(metadata, dict)
    return metadata
