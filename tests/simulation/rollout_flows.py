"""Flows of sets and deployments, each from a whole fleet to a whole fleet, to be disturbed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from mcm.api.machine import MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_PRESERVE,
    ANNOTATION_ROLLBACK_AFTER,
    ANNOTATION_SURGE_POOL,
    ANNOTATION_TRIGGER_DELETION,
    LABEL_MACHINE_TEMPLATE_HASH,
)
from mcm.api.timestamps import rfc3339
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import name_of
from tests.simulation.machine_ledger import found, labels_of
from tests.simulation.overshooting_fleet import Fleet
from tests.simulation.rollout_stage import (
    NAMESPACE,
    Stage,
)

Act: TypeAlias = Callable[[Stage, int], Coroutine[object, object, None]]


async def nothing(_: Stage, __: int) -> None:
    """The flow begins, or leaves, the fleet as it found it."""


async def roll(stage: Stage, number: int) -> None:
    await stage.update(f"v{number}")
    await stage.until(stage.is_whole)


async def one_fails(stage: Stage, number: int) -> None:
    """The agent of one Node fails, and its machine is replaced."""
    unlucky = min(name_of(m) for m in stage.sim.objects(MACHINES))
    stage.agents.failing[unlucky] = "kubelet did not start"
    await roll(stage, number)
    assert unlucky not in {name_of(m) for m in stage.sim.objects(MACHINES)}


async def revert(stage: Stage, _: int) -> None:
    """Of a class that never works."""
    await stage.declare("large")
    await stage.until(lambda: stage.progressing() == ("False", "NewMachinesFailing"))
    await stage.declare("small")
    await stage.until(lambda: stage.classes() == ["small"] * stage.replicas and stage.is_whole())


async def rolled_back(stage: Stage, _: int) -> None:
    """By itself, from a class that never works."""
    await stage.declare("large")
    await stage.until(lambda: "large" in stage.classes())
    await stage.until(lambda: stage.classes() == ["small"] * stage.replicas and stage.is_whole())


async def roll_twice(stage: Stage, number: int) -> None:
    await roll(stage, -number)
    await roll(stage, number)


async def roll_back(stage: Stage, number: int) -> None:
    stage.version = f"v{-number}"
    await stage.change(rollbackTo={"revision": 0})
    await stage.until(stage.is_whole)


async def freeze(stage: Stage, _: int) -> None:
    """Others make machines for the set until it is frozen; they leave."""
    fleet = Fleet(stage.sim)
    fleet.made_by_others = len(stage.ledger._vms)
    await fleet.make_too_many(stage.replicas)
    await stage.until(fleet.frozen)
    await stage.sim.pass_time(10)
    await fleet.release()
    await stage.until(fleet.free)
    await stage.until(stage.is_whole)


async def orphan_set(stage: Stage, _: int) -> None:
    (old,) = (s for s in found(stage.sim, MACHINE_SETS) if s["spec"]["replicas"])
    await stage.sim.client.delete(
        MACHINE_SETS, name_of(old), namespace=NAMESPACE, propagation="Orphan"
    )
    uid = old["metadata"]["uid"]
    await stage.until(lambda: uid not in owners(stage) | {""} and stage.is_whole())


async def orphan_deployment(stage: Stage, _: int) -> None:
    again = fresh(stage.deployment())
    await stage.sim.client.delete(
        MACHINE_DEPLOYMENTS, "sample", namespace=NAMESPACE, propagation="Orphan"
    )
    await stage.until(lambda: not stage.sim.objects(MACHINE_DEPLOYMENTS))
    await stage.sim.apply([again])
    await stage.until(stage.is_whole)


def fresh(obj: dict[str, Any], *kept: str) -> JSONObject:
    """As its user made it."""
    metadata = {k: obj["metadata"][k] for k in ("name", "namespace", *kept)}
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": metadata,
        "spec": obj["spec"],
    }


def owners(stage: Stage) -> set[str]:
    listed = [m["metadata"].get("ownerReferences") or [{}] for m in found(stage.sim, MACHINES)]
    return {str(refs[0].get("uid", "")) for refs in listed}


async def keep_one(stage: Stage, _: int) -> None:
    """Of two that fail; later its budget is taken away."""
    await stage.change(autoPreserveFailedMachineMax=1)
    for victim in sorted(name_of(m) for m in stage.sim.objects(MACHINES))[:2]:
        await stage.sim.client.delete(VIRTUAL_MACHINES, victim, namespace=NAMESPACE)
        await stage.sim.pass_time(90)
    await stage.until(lambda: len(kept(stage)) == 1)
    await stage.until(lambda: stage.sim.running() == stage.replicas - 1)
    assert len(stage.sim.objects(MACHINES)) == stage.replicas
    await stage.change(autoPreserveFailedMachineMax=0)
    await stage.until(stage.is_whole)


def kept(stage: Stage) -> list[str]:
    return [
        name_of(m)
        for m in found(stage.sim, MACHINES)
        if m["metadata"].get("annotations", {}).get(ANNOTATION_PRESERVE) == "auto-preserved"
    ]


async def grow(stage: Stage, _: int) -> None:
    stage.replicas += 1
    await stage.change(replicas=stage.replicas)
    await stage.until(stage.is_whole)


async def scale_down_meanwhile(stage: Stage, number: int) -> None:
    """The autoscaler takes one of the old machines away in the middle."""
    old = {name_of(m) for m in stage.sim.objects(MACHINES)}
    await stage.update(f"v{number}")
    await stage.until(lambda: stage.versions()[stage.version] == 1)
    chosen = max(old & {name_of(m) for m in stage.sim.objects(MACHINES)})
    stage.replicas -= 1
    stage.ledger.fewest -= 1
    listed = f"{chosen}~{rfc3339(stage.sim.clock.now())}"
    await stage.patch(
        {
            "metadata": {"annotations": {ANNOTATION_TRIGGER_DELETION: listed}},
            "spec": {"replicas": stage.replicas},
        }
    )
    await stage.until(stage.is_whole)


async def roll_both(stage: Stage, number: int) -> None:
    await stage.update(f"v{number}")
    await stage.update(f"v{number}", "other")
    await stage.until(stage.is_whole)


async def make_by_hand(stage: Stage, _: int) -> None:
    """A set that was made without the label of its template's hash, and its machines."""
    await stage.sim.client.delete(
        MACHINE_DEPLOYMENTS, "sample", namespace=NAMESPACE, propagation="Orphan"
    )
    await stage.until(lambda: not stage.sim.objects(MACHINE_DEPLOYMENTS))
    (old,) = found(stage.sim, MACHINE_SETS)
    await stage.sim.client.delete(
        MACHINE_SETS, name_of(old), namespace=NAMESPACE, propagation="Orphan"
    )
    await stage.until(lambda: not stage.sim.objects(MACHINE_SETS) and owners(stage) == {""})
    bare: JSONObject = {"metadata": {"labels": {LABEL_MACHINE_TEMPLATE_HASH: None}}}
    for machine in stage.sim.objects(MACHINES):
        await stage.sim.client.patch(MACHINES, name_of(machine), bare, namespace=NAMESPACE)
    by_hand: Any = fresh(old)
    by_hand["metadata"]["labels"] = {"name": "sample"}
    labels = {"name": "sample"}
    by_hand["spec"] = {
        "replicas": stage.replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": old["spec"]["template"]["spec"]},
    }
    await stage.sim.apply([by_hand])
    await stage.until(lambda: "" not in owners(stage))


async def adopt(stage: Stage, _: int) -> None:
    """The deployment comes back."""
    deployment = next(o for o in samples.load() if o["kind"] == "MachineDeployment")
    spec: Any = deployment["spec"]
    await stage.sim.apply([{**deployment, "spec": {**spec, "replicas": stage.replicas}}])
    await stage.until(
        lambda: (
            stage.is_whole()
            and all(LABEL_MACHINE_TEMPLATE_HASH in labels_of(m) for m in found(stage.sim, MACHINES))
            and all(
                LABEL_MACHINE_TEMPLATE_HASH in s["spec"]["selector"]["matchLabels"]
                for s in found(stage.sim, MACHINE_SETS)
            )
        )
    )


def switched(first: JSONObject, then: JSONObject) -> tuple[Act, Act]:
    """Return what begins, and the flow: another strategy once one machine is of the new version."""

    async def before(stage: Stage, _: int) -> None:
        await stage.change(strategy=first)

    async def flow(stage: Stage, number: int) -> None:
        await stage.update(f"v{number}")
        await stage.until(lambda: stage.versions()[stage.version] >= 1)
        await stage.change(strategy=then)
        await stage.until(stage.is_whole)

    return before, flow


# ---- what is to be prepared once


async def break_large(stage: Stage, _: int) -> None:
    broken: JSONObject = {
        "failures": [
            {"verb": "create", "code": "InvalidArgument", "message": "no", "probability": 1.0}
        ]
    }
    await stage.sim.client.patch(
        MACHINE_CLASSES, "large", {"providerSpec": broken}, namespace=NAMESPACE
    )
    await stage.patch({"metadata": {"annotations": {ANNOTATION_ROLLBACK_AFTER: None}}})


async def break_large_and_ask(stage: Stage, number: int) -> None:
    await break_large(stage, number)
    await stage.patch({"metadata": {"annotations": {ANNOTATION_ROLLBACK_AFTER: "30s"}}})


async def make_pool(stage: Stage, _: int) -> None:
    """A second deployment, of as many machines, that shares its limits with the first."""
    other: Any = fresh(stage.deployment())
    labels = {"name": "other"}
    other["metadata"] |= {"name": "other", "annotations": {ANNOTATION_SURGE_POOL: "pool"}}
    spec = {**other["spec"], "selector": {"matchLabels": labels}}
    spec["template"] = {**spec["template"], "metadata": {"labels": labels}}
    await stage.patch({"metadata": {"annotations": {ANNOTATION_SURGE_POOL: "pool"}}})
    await stage.sim.apply([{**other, "spec": spec}])
    stage.replicas *= 2
    await stage.until(lambda: len(stage.all()) == 2 and stage.is_whole())
