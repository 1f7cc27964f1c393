"""Overshoot protection by itself: what wakes it, what it writes, and that it bears bad luck.

The other controllers do not run, so every write that is seen is its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    MachineDeployment,
    MachineSet,
)
from mcm.api.meta import JSONObject, OwnerReference
from mcm.client.errors import ServerError, TransportError
from mcm.controllers import overshooting
from mcm.controllers.overshooting.controller import (
    deployment_to_look_at,
    deployments_of_set,
    noting_unfreezes,
    set_to_look_at,
    sets_of_deployment,
    sets_of_machine,
)
from mcm.controllers.overshooting.forced_unfreezes import ForcedUnfreezes
from mcm.controllers.owning import index_by_owner
from mcm.informers import Change, Store
from tests.unit.deployment.objects import deployment, owned_set
from tests.unit.machineset.cluster import Cluster, Running, Write, play
from tests.unit.machineset.objects import machine

UNFREEZE = "safety.machine.sapcloud.io/unfreeze"
CLASS: JSONObject = {"kind": "MachineClass", "name": "small"}
LABELS: JSONObject = {"name": "pool"}


# ---- a cluster with one deployment, whose sets and machines are as a test wants ------------------


def deployment_body(replicas: int = 3, **metadata: Any) -> JSONObject:
    return {
        "metadata": {"name": "pool", "namespace": "ns", "uid": "pool-uid", **metadata},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "strategy": {"type": "Recreate"},
            "template": {"metadata": {"labels": LABELS}, "spec": {"class": CLASS}},
        },
    }


def set_body(name: str = "set", replicas: int = 3, **metadata: Any) -> JSONObject:
    ref: JSONObject = {
        "apiVersion": "machine.sapcloud.io/v1alpha1",
        "kind": "MachineDeployment",
        "name": "pool",
        "uid": "pool-uid",
        "controller": True,
    }
    meta = {"labels": LABELS, **metadata}
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"{name}-uid",
            "ownerReferences": [ref],
            **meta,
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": {"class": CLASS}},
        },
    }


def machine_body(number: int, owner: str = "set") -> JSONObject:
    ref: JSONObject = {
        "apiVersion": "machine.sapcloud.io/v1alpha1",
        "kind": "MachineSet",
        "name": owner,
        "uid": f"{owner}-uid",
        "controller": True,
    }
    return {
        "metadata": {
            "name": f"{owner}-{number}",
            "namespace": "ns",
            "uid": f"{owner}-{number}-uid",
            "labels": LABELS,
            "ownerReferences": [ref],
        },
        "spec": {"class": CLASS},
    }


def frozen_labels() -> JSONObject:
    return {**LABELS, "freeze": "True"}


def cluster_of(*sets: JSONObject, machines: int = 0, of: str = "set") -> Cluster:
    cluster = Cluster(target=False)
    cluster.show(MACHINE_DEPLOYMENTS, [deployment_body()])
    cluster.show(MACHINE_SETS, sets or [set_body()])
    cluster.show(MACHINES, [machine_body(n, of) for n in range(machines)])
    return cluster


def running(cluster: Cluster) -> Running:
    """Only overshoot protection runs: what it does by itself is seen."""
    return Running(cluster, overshooting.build(cluster.context))


def label(cluster: Cluster, name: str = "set") -> str | None:
    return cluster.get(MACHINE_SETS, name).metadata.labels.get("freeze")


def label_of_deployment(cluster: Cluster) -> str | None:
    return cluster.get(MACHINE_DEPLOYMENTS, "pool").metadata.labels.get("freeze")


def labels(cluster: Cluster) -> tuple[str | None, str | None]:
    return (label(cluster), label_of_deployment(cluster))


def patches(cluster: Cluster) -> Sequence[tuple[str, str]]:
    return [(w.resource, w.name) for w in cluster.writes if w.verb == "patch"]


FROZEN, FREE = ("True", "True"), (None, None)


def test_the_machine_that_reaches_the_limit_freezes_and_the_one_that_leaves_unfreezes() -> None:
    async def scenario() -> None:
        cluster = cluster_of(machines=4)
        async with running(cluster) as controllers:
            await controllers.settle()
            assert cluster.writes == []
            await cluster.create(MACHINES, machine_body(4))
            await controllers.settle(0.1)
            assert labels(cluster) == FROZEN
            await cluster.delete(MACHINES, "set-4")
            await controllers.settle(0.1)
            assert labels(cluster) == FREE
            assert len(patches(cluster)) == 4  # one for each label, each way
            notes = [note for _, _, _, note in cluster.events.seen]
            assert notes[1] == "Frozen with machine sets set: see the condition Frozen"
            assert cluster.events.reasons() == [
                "FrozeMachineSet",
                "FrozeMachineDeployment",
                "UnfrozeMachineSet",
                "UnfrozeMachineDeployment",
            ]

    play(scenario)


def test_a_deployment_labelled_by_hand_is_told_once_that_its_label_stops_nothing() -> None:
    async def scenario() -> None:
        cluster = cluster_of(machines=3)
        async with running(cluster) as controllers:
            await controllers.settle(1)
            change: JSONObject = {"metadata": {"labels": {"freeze": "True"}}}
            await cluster.patch(MACHINE_DEPLOYMENTS, "pool", change)
            await controllers.settle(1)
            assert labels(cluster) == FREE
            ((_, _, reason, note),) = cluster.events.seen
            assert reason == "UnfrozeMachineDeployment"
            assert "stops nothing by itself; spec.paused does" in note

    play(scenario)


def test_several_sets_are_frozen_in_one_run_and_the_deployment_until_the_last_is_free() -> None:
    async def scenario() -> None:
        cluster = cluster_of(set_body(), set_body("twin"), machines=5)
        cluster.show(MACHINES, [machine_body(n, "twin") for n in range(5)])
        async with running(cluster) as controllers:
            await controllers.settle(0.1)
            assert (label(cluster), label(cluster, "twin")) == ("True", "True")
            assert label_of_deployment(cluster) == "True"
            await cluster.delete(MACHINES, "set-0")
            await controllers.settle(0.1)
            assert (label(cluster), label(cluster, "twin")) == (None, "True")
            assert label_of_deployment(cluster) == "True"
            await cluster.delete(MACHINES, "twin-0")
            await controllers.settle(0.1)
            assert label_of_deployment(cluster) is None

    play(scenario)


def test_a_request_on_the_deployment_unfreezes_all_its_sets_and_is_taken_off_last() -> None:
    async def scenario() -> None:
        sets = [set_body(labels=frozen_labels()), set_body("twin", labels=frozen_labels())]
        cluster = cluster_of(*sets, machines=9)
        cluster.show(MACHINES, [machine_body(n, "twin") for n in range(9)])
        async with running(cluster) as controllers:
            await controllers.settle(1)
            cluster.writes.clear()
            change: JSONObject = {"metadata": {"annotations": {UNFREEZE: "please"}}}
            await cluster.patch(MACHINE_DEPLOYMENTS, "pool", change)
            await controllers.settle(1)
            assert (label(cluster), label(cluster, "twin")) == (None, None)
            assert label_of_deployment(cluster) is None
            _, *ours = patches(cluster)
            assert sorted(ours[:2]) == [("machinesets", "set"), ("machinesets", "twin")]
            assert ours[2:] == [("machinedeployments", "pool")]
            await controllers.settle(70)  # the minute is over, and there still are too many
            assert (label(cluster), label(cluster, "twin")) == ("True", "True")
            assert label_of_deployment(cluster) == "True"

    play(scenario)


def test_a_request_on_a_set_leaves_it_alone_for_a_minute() -> None:
    async def scenario() -> None:
        cluster = cluster_of(set_body(labels=frozen_labels()), machines=9)
        async with running(cluster) as controllers:
            await controllers.settle(1)
            change: JSONObject = {"metadata": {"annotations": {UNFREEZE: ""}}}
            await cluster.patch(MACHINE_SETS, "set", change)
            await controllers.settle(59)
            assert labels(cluster) == FREE
            assert UNFREEZE not in cluster.get(MACHINE_SETS, "set").metadata.annotations
            await controllers.settle(1.1)
            assert labels(cluster) == FROZEN

    play(scenario)


def test_a_set_that_cannot_be_unfrozen_keeps_the_request_where_it_is() -> None:
    async def scenario() -> None:
        cluster = cluster_of(set_body(labels=frozen_labels()), machines=9)
        broken = [True]

        def refuse(write: Write) -> ServerError | None:
            at_fault = write.resource == "machinesets" and broken[0]
            return ServerError(500, "InternalError", "no") if at_fault else None

        async with running(cluster) as controllers:
            await controllers.settle(1)
            cluster.api.refuse = refuse
            change: JSONObject = {"metadata": {"annotations": {UNFREEZE: ""}}}
            await cluster.patch(MACHINE_DEPLOYMENTS, "pool", change)
            await controllers.settle(3)
            found = cluster.get(MACHINE_DEPLOYMENTS, "pool").metadata
            assert (UNFREEZE in found.annotations, found.labels["freeze"]) == (True, "True")
            broken[0] = False
            await controllers.settle(20)
            assert labels(cluster) == FREE
            assert cluster.get(MACHINE_DEPLOYMENTS, "pool").metadata.annotations == {}

    play(scenario)


@pytest.mark.parametrize("resource", ["machinesets", "machinedeployments"])
def test_a_lost_answer_costs_no_event_and_tells_none_twice(resource: str) -> None:
    async def scenario() -> None:
        cluster = cluster_of(machines=5)
        lost: list[Write] = []

        def lose(write: Write) -> TransportError | None:
            if write.resource != resource or lost:
                return None
            lost.append(write)
            return TransportError("the connection broke")

        cluster.api.lose = lose
        async with running(cluster) as controllers:
            await controllers.settle(0.02)
            cluster.catch_up(MACHINE_SETS)
            cluster.catch_up(MACHINE_DEPLOYMENTS)
            await controllers.settle(5)
            assert lost
            assert labels(cluster) == FROZEN
            assert sorted(cluster.events.reasons()) == [
                "FrozeMachineDeployment",
                "FrozeMachineSet",
            ]

    play(scenario)


def test_a_mirror_that_is_behind_freezes_nothing_that_changed_meanwhile() -> None:
    """A set scaled up, which the mirror does not know: the write is refused, and then not due."""

    async def scenario() -> None:
        alone = set_body()
        metadata: Any = alone["metadata"]
        metadata["ownerReferences"] = []
        cluster = cluster_of(alone, machines=7)
        async with running(cluster) as controllers:
            await controllers.settle(1)
            change: JSONObject = {"spec": {"replicas": 9}}
            cluster.api.alter(MACHINE_SETS, "set", change, namespace="ns")
            await cluster.create(MACHINES, machine_body(7))
            await controllers.settle(0.02)
            assert label(cluster) is None
            cluster.catch_up(MACHINE_SETS)
            await controllers.settle(5)
            assert label(cluster) is None
            assert cluster.events.reasons() == []

    play(scenario)


@pytest.mark.parametrize("of_set", [True, False], ids=["set frozen", "set free"])
@pytest.mark.parametrize("of_deployment", [True, False], ids=["bears it", "bears none"])
@pytest.mark.parametrize("machines", [3, 5])
def test_whatever_labels_are_found_become_what_the_machines_call_for(
    of_set: bool, of_deployment: bool, machines: int
) -> None:
    async def scenario() -> None:
        cluster = Cluster(target=False)
        marked: JSONObject = {"freeze": "True"} if of_deployment else {}
        cluster.show(MACHINE_DEPLOYMENTS, [deployment_body(labels=marked)])
        one = set_body(labels=frozen_labels()) if of_set else set_body()
        cluster.show(MACHINE_SETS, [one])
        cluster.show(MACHINES, [machine_body(n) for n in range(machines)])
        async with running(cluster) as controllers:
            await controllers.settle(1)
            assert labels(cluster) == (FROZEN if machines == 5 else FREE)
            writes = len(cluster.writes)
            await controllers.settle(300)
            assert len(cluster.writes) == writes

    play(scenario)


def test_what_is_being_deleted_is_left_alone_and_freezes_no_deployment() -> None:
    async def scenario() -> None:
        leaving: dict[str, Any] = {
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["x/y"],
        }
        cluster = cluster_of(set_body(labels=frozen_labels(), **leaving), machines=9)
        cluster.show(MACHINE_SETS, [set_body("other", **leaving)])
        cluster.show(MACHINES, [machine_body(n, "other") for n in range(9)])
        async with running(cluster) as controllers:
            await controllers.settle(1)
            assert (label(cluster), label(cluster, "other")) == ("True", None)
            assert label_of_deployment(cluster) is None
            assert cluster.writes == []

    play(scenario)


def test_an_invalid_deployment_lets_its_sets_be_as_they_are_until_it_is_mended() -> None:
    async def scenario() -> None:
        cluster = cluster_of(set_body(labels=frozen_labels()), machines=1)
        cluster.api.alter(MACHINE_DEPLOYMENTS, "pool", {"spec": {"replicas": -1}}, namespace="ns")
        cluster.catch_up(MACHINE_DEPLOYMENTS)
        async with running(cluster) as controllers:
            await controllers.settle(1)
            assert labels(cluster) == FROZEN
            await cluster.patch(MACHINE_DEPLOYMENTS, "pool", {"spec": {"replicas": 3}})
            await controllers.settle(1)
            assert labels(cluster) == FREE

    play(scenario)


def test_without_a_period_events_alone_bring_a_set_back() -> None:
    async def scenario() -> None:
        cluster = cluster_of(machines=5)
        settings = replace(cluster.context.options, overshooting_period=timedelta(0))
        context = replace(cluster.context, options=settings)
        async with Running(cluster, overshooting.build(context)) as controllers:
            await controllers.settle(1)
            assert labels(cluster) == FROZEN
            await cluster.patch(MACHINE_SETS, "set", {"metadata": {"annotations": {UNFREEZE: ""}}})
            await controllers.settle(1)
            assert labels(cluster) == FROZEN  # asked for, done, and done with
            assert UNFREEZE not in cluster.get(MACHINE_SETS, "set").metadata.annotations

    play(scenario)


# ---- which changes wake whom ---------------------------------------------------------------------


def store_of(*objects: Any) -> Store[Any]:
    store: Store[Any] = Store()
    index_by_owner(store)
    for obj in objects:
        store.put(obj)
    return store


def with_meta(obj: Any, **fields: Any) -> Any:
    meta = msgspec.structs.replace(obj.metadata, **fields)
    return msgspec.structs.replace(obj, metadata=meta)


def owned_by(name: str) -> tuple[OwnerReference, ...]:
    ref = machine().metadata.owner_references[0]
    return (msgspec.structs.replace(ref, name=name, uid=f"{name}-uid"),)


def test_a_machine_wakes_the_set_that_has_one_more_or_less() -> None:
    sets = store_of(owned_set(), owned_set("twin"))
    one, failed = machine(), machine(phase="Failed")
    moved = with_meta(machine(), owner_references=owned_by("twin"))

    def keys(old: Any, new: Any) -> set[str]:
        return set(sets_of_machine(Change(old, new), sets))

    assert keys(None, one) == keys(one, None) == {"ns/set"}
    assert keys(one, failed) == set()
    assert keys(one, machine(deleted=True)) == set()  # it counts until it is gone
    assert keys(one, moved) == {"ns/set", "ns/twin"}
    assert keys(None, machine(owner="")) == set()
    assert keys(None, machine(owner="another-uid")) == set()


def test_sets_are_woken_by_what_their_limits_and_labels_follow_from() -> None:
    one = owned_set()

    def wakes(new: MachineSet) -> bool:
        return list(set_to_look_at(Change(one, new))) == ["ns/set"]

    assert list(set_to_look_at(Change(None, one))) == ["ns/set"]
    assert wakes(with_meta(one, labels={"freeze": "True"}))
    assert wakes(with_meta(one, annotations={UNFREEZE: ""}))
    assert wakes(with_meta(one, owner_references=()))
    assert wakes(owned_set(replicas=4))
    assert not wakes(with_meta(one, labels={**one.metadata.labels, "a": "b"}))
    assert not wakes(with_meta(one, resource_version="2"))
    assert not wakes(one)

    sets = store_of(one, owned_set("twin"))
    before: MachineDeployment = deployment(3)
    after: MachineDeployment = deployment(4)
    assert set(sets_of_deployment(Change(before, after), sets)) == {"ns/set", "ns/twin"}
    assert not list(sets_of_deployment(Change(before, with_meta(before, labels={})), sets))


def test_deployments_are_woken_by_requests_and_by_their_sets_labels() -> None:
    one, pool = owned_set(), deployment()
    assert list(deployment_to_look_at(Change(pool, with_meta(pool, labels={"freeze": "True"}))))
    assert list(deployment_to_look_at(Change(pool, with_meta(pool, annotations={UNFREEZE: ""}))))
    assert not list(deployment_to_look_at(Change(pool, deployment(4))))
    deployments = store_of(pool)

    def keys(old: Any, new: Any) -> Iterable[str]:
        return list(deployments_of_set(Change(old, new), deployments))

    frozen = with_meta(one, labels={"freeze": "True"})
    assert keys(None, one) == keys(one, None) == keys(one, frozen) == ["ns/pool"]
    assert keys(one, owned_set(replicas=4)) == []
    assert keys(one, with_meta(one, owner_references=())) == ["ns/pool"]


def test_only_what_somebody_else_unfroze_is_spared() -> None:
    async def scenario() -> None:
        cluster = Cluster(target=False)
        forced = ForcedUnfreezes(cluster.clock, 60.0)
        note = noting_unfreezes(forced)
        frozen = with_meta(owned_set(), labels={"freeze": "True"})
        own = "machinesafetyovershooting ns/set"
        note(Change(frozen, owned_set(), author=own))
        note(Change(owned_set(), frozen))
        note(Change(None, owned_set()))
        note(Change(frozen, None))
        assert forced.left("ns/set") == 0
        note(Change(frozen, owned_set(), author="machinesafetyfreeze ns/pool"))
        assert forced.left("ns/set") == 60
        await cluster.clock.sleep(59)
        assert forced.left("ns/set") == 1
        await cluster.clock.sleep(1)
        assert (forced.left("ns/set"), len(forced)) == (0, 0)

    play(scenario)
