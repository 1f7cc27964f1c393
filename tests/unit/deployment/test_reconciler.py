"""Both set controllers as they run, with a cloud that takes ten seconds a machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self, cast

import pytest

from mcm.api.core import NODES, Node
from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineDeployment,
    MachineDeploymentCondition,
    MachineSet,
)
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_DESIRED_REPLICAS,
    ANNOTATION_PREFER_NO_SCHEDULE,
    ANNOTATION_PRIORITY,
    ANNOTATION_REPLICA_CHANGE_BY_SCALER,
    ANNOTATION_REVISION,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    ANNOTATION_TRIGGER_DELETION,
    LABEL_MACHINE_TEMPLATE_HASH,
    LABEL_NODE_MACHINE_NAME,
    MACHINE_FINALIZER,
)
from mcm.api.templates import class_of
from mcm.api.timestamps import rfc3339
from mcm.client.errors import AlreadyExists, Cause, Forbidden, KubeError, NotFound
from mcm.controllers import deployment, machineset
from mcm.controllers.deployment.templates import set_name
from tests.unit.deployment.objects import template
from tests.unit.machineset.cluster import Cluster, Running, Write, play

LABELS = {"name": "pool"}
BOOT, SHUTDOWN = 10.0, 20.0


def spec(class_name: str = "class-a", replicas: int = 3, **more: object) -> JSONObject:
    return {
        "replicas": replicas,
        "selector": {"matchLabels": LABELS},
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
        },
        "template": {
            "metadata": {"labels": LABELS, "finalizers": [MACHINE_FINALIZER]},
            "spec": {"class": {"kind": "MachineClass", "name": class_name}},
        },
        **more,
    }


def pool(class_name: str = "class-a", replicas: int = 3, **more: object) -> JSONObject:
    return {"metadata": {"name": "pool"}, "spec": spec(class_name, replicas, **more)}


class Field(Running):
    """A cluster with both controllers, and a cloud whose machines run ``BOOT`` seconds after they
    were made and are gone ``SHUTDOWN`` seconds after they were deleted."""

    def __init__(self, cluster: Cluster | None = None) -> None:
        cluster = cluster or Cluster()
        controllers = (*deployment.build(cluster.context), *machineset.build(cluster.context))
        super().__init__(cluster, controllers)
        self.most = 0
        self.least = 10**9
        self.broken_classes: set[str] = set()
        self._cloud: asyncio.Task[None] | None = None
        self._since: dict[tuple[str, bool], float] = {}

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._cloud = asyncio.create_task(self._run_cloud())
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._cloud is not None:
            self._cloud.cancel()
            await asyncio.gather(self._cloud, return_exceptions=True)
        await super().__aexit__(*error)

    async def _run_cloud(self) -> None:
        while True:
            for machine in self.machines:
                await self._move(machine)
            self.most = max(self.most, len(self.machines))
            self.least = min(self.least, self.available)
            await self.cluster.clock.sleep(1)

    async def _move(self, machine: Machine) -> None:
        meta, now = machine.metadata, self.cluster.clock.monotonic()
        leaving = meta.deletion_timestamp is not None
        age = now - self._since.setdefault((meta.uid, leaving), now)
        if leaving and age >= SHUTDOWN:
            await self.cluster.patch(MACHINES, meta.name, {"metadata": {"finalizers": None}})
        elif not leaving and not machine.phase:
            await self.enter(meta.name, "Pending")
        elif not leaving and machine.phase == "Pending" and self._boots(machine, age):
            await self._join(meta.name)

    def _boots(self, machine: Machine, age: float) -> bool:
        return age >= BOOT and machine.spec.class_.name not in self.broken_classes

    async def _join(self, name: str) -> None:
        if self.cluster.target is not None:
            named = {"name": f"node-{name}", "labels": {LABEL_NODE_MACHINE_NAME: name}}
            await self.cluster.create(NODES, {"metadata": named})
            labels: JSONObject = {"metadata": {"labels": {"node": f"node-{name}"}}}
            await self.cluster.patch(MACHINES, name, labels)
        await self.enter(name, "Running")

    async def enter(self, name: str, phase: str) -> None:
        now = rfc3339(self.cluster.clock.now())
        status: JSONObject = {"status": {"currentStatus": {"phase": phase, "lastUpdateTime": now}}}
        await self.cluster.patch(MACHINES, name, status, subresource="status")

    # ---- looking -------------------------------------------------------------------------------

    @property
    def machines(self) -> list[Machine]:
        return self.cluster.all(MACHINES)

    @property
    def available(self) -> int:
        return sum(
            m.phase == "Running" and m.metadata.deletion_timestamp is None for m in self.machines
        )

    @property
    def pool(self) -> MachineDeployment:
        return self.cluster.get(MACHINE_DEPLOYMENTS, "pool")

    @property
    def sets(self) -> list[MachineSet]:
        return self.cluster.all(MACHINE_SETS)

    def set_of(self, class_name: str) -> MachineSet:
        (found,) = [s for s in self.sets if s.spec.template.spec["class"] == _class(class_name)]
        return found

    def classes(self) -> list[str]:
        return sorted(m.spec.class_.name for m in self.machines)

    def condition(self, kind: str = "Progressing") -> MachineDeploymentCondition | None:
        return next((c for c in self.pool.status.conditions if c.type == kind), None)

    def progress(self) -> str:
        condition = self.condition()
        return condition.reason if condition else ""

    def nodes(self) -> list[Node]:
        return self.cluster.all(NODES)

    # ---- acting --------------------------------------------------------------------------------

    async def deploy(self, class_name: str = "class-a", replicas: int = 3, **more: object) -> None:
        await self.cluster.create(MACHINE_DEPLOYMENTS, pool(class_name, replicas, **more))
        await self.settle(60)
        self.most, self.least = 0, 10**9

    async def change(self, **fields: object) -> None:
        await self.cluster.patch(MACHINE_DEPLOYMENTS, "pool", {"spec": fields})

    async def update(self, class_name: str) -> None:
        await self.change(template={"spec": {"class": _class(class_name)}})


def _class(name: str) -> JSONObject:
    return {"kind": "MachineClass", "name": name}


def test_a_deployment_makes_its_set_and_then_writes_nothing() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=3)
            (only,) = field.sets
            assert only.metadata.name == set_name(
                "pool", template(metadata={"finalizers": [MACHINE_FINALIZER]})
            )
            assert field.classes() == ["class-a"] * 3
            status = field.pool.status
            assert (status.replicas, status.updated_replicas, status.available_replicas) == (
                3,
                3,
                3,
            )
            assert status.observed_generation == 1
            assert field.progress() == "NewMachineSetAvailable"
            available = field.condition("Available")
            assert available is not None and available.status == "True"
            assert field.pool.metadata.annotations[ANNOTATION_REVISION] == "1"
            assert field.pool.metadata.finalizers == (MACHINE_FINALIZER,)
            hashes = {m.metadata.labels[LABEL_MACHINE_TEMPLATE_HASH] for m in field.machines}
            assert hashes == {only.metadata.labels[LABEL_MACHINE_TEMPLATE_HASH]}
            field.cluster.writes.clear()
            await field.settle(24 * 3600)
            assert field.cluster.writes == []

    play(scenario)


def test_a_rolling_update_replaces_every_machine_within_its_limits() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=4)
            await field.update("class-b")
            await field.settle(600)
            assert field.classes() == ["class-b"] * 4
            told = [r for w in field.cluster.writes for r in _reasons(w)]
            assert list(dict.fromkeys(told))[-3:] == [
                "NewMachineSetCreated",
                "MachineSetUpdated",
                "NewMachineSetAvailable",
            ]
            assert field.most == 5
            assert field.least == 4
            assert field.progress() == "NewMachineSetAvailable"
            assert field.pool.metadata.annotations[ANNOTATION_REVISION] == "2"
            assert field.set_of("class-a").spec.replicas == 0
            field.cluster.writes.clear()
            await field.settle(24 * 3600)
            assert field.cluster.writes == []

    play(scenario)


def _reasons(write: Write) -> list[str]:
    """What a write says about progress."""
    if (write.resource, write.subresource) != ("machinedeployments", "status"):
        return []
    conditions = write.body["status"].get("conditions", [])  # type: ignore[attr-defined]
    return [c["reason"] for c in conditions if c["type"] == "Progressing"]


def test_without_surge_one_machine_at_a_time_is_missing() -> None:
    async def scenario() -> None:
        async with Field() as field:
            strategy = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}
            await field.deploy(replicas=3, strategy=strategy)
            await field.update("class-b")
            await field.settle(600)
            assert field.classes() == ["class-b"] * 3
            assert (field.most, field.least) == (3, 2)

    play(scenario)


def test_an_update_that_does_not_work_keeps_the_old_machines_and_runs_late() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=3, progressDeadlineSeconds=120)
            field.broken_classes = {"class-b"}
            await field.update("class-b")
            await field.settle(119)
            assert field.progress() in ("NewMachineSetCreated", "MachineSetUpdated")
            await field.settle(10)
            assert field.progress() == "ProgressDeadlineExceeded"
            assert field.available == 3
            assert field.classes() == ["class-a"] * 3 + ["class-b"]
            field.broken_classes = set()
            await field.settle(600)
            assert field.classes() == ["class-b"] * 3
            assert field.progress() == "NewMachineSetAvailable"

    play(scenario)


def test_taking_the_template_back_brings_the_former_set_back_with_the_next_revision() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=3)
            field.broken_classes = {"class-b"}
            await field.update("class-b")
            await field.settle(60)
            await field.update("class-a")
            await field.settle(120)
            assert field.classes() == ["class-a"] * 3
            assert len(field.sets) == 2
            assert field.set_of("class-a").metadata.annotations[ANNOTATION_REVISION] == "3"
            assert field.pool.metadata.annotations[ANNOTATION_REVISION] == "3"
            assert field.least == 3

    play(scenario)


def test_a_rollback_is_carried_out_and_forgotten() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=2)
            await field.update("class-b")
            await field.settle(300)
            await field.change(rollbackTo={"revision": 0})
            await field.settle(300)
            assert field.classes() == ["class-a"] * 2
            assert field.pool.spec.rollback_to is None
            assert "DeploymentRollback" in field.cluster.events.reasons()
            await field.change(rollbackTo={"revision": 77})
            await field.settle()
            assert field.pool.spec.rollback_to is None
            assert "DeploymentRollbackRevisionNotFound" in field.cluster.events.reasons()

    play(scenario)


def test_recreate_makes_nothing_new_before_all_old_is_gone() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=3, strategy={"type": "Recreate"})
            await field.update("class-b")
            for _ in range(100):
                await field.settle(1)
                assert len(set(field.classes())) <= 1
            assert field.classes() == ["class-b"] * 3
            assert field.most == 3

    play(scenario)


@pytest.mark.parametrize("replicas", [0, 1, 5])
def test_scaling_reaches_the_set_with_one_write(replicas: int) -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=3)
            field.cluster.writes.clear()
            await field.change(replicas=replicas)
            await field.settle(120)
            assert len(field.machines) == replicas
            patches = [
                w for w in field.cluster.writes if w.resource == "machinesets" and not w.subresource
            ]
            assert len(patches) == 1
            assert field.cluster.events.reasons().count("ScalingMachineSet") == 2

    play(scenario)


def test_scaling_in_the_middle_of_an_update_is_shared_and_the_update_goes_on() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=4)
            await field.update("class-b")
            await field.settle(45)
            assert set(field.classes()) == {"class-a", "class-b"}
            await field.change(replicas=6)
            await field.settle(600)
            assert field.classes() == ["class-b"] * 6
            assert field.most <= 7
            assert field.least >= 4

    play(scenario)


def test_a_pause_holds_the_update_but_neither_scaling_nor_replacement() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=3)
            await field.change(paused=True)
            await field.update("class-b")
            await field.settle(120)
            assert field.classes() == ["class-a"] * 3
            assert field.progress() == "DeploymentPaused"
            assert field.condition("Paused") is not None
            await field.change(replicas=4)
            await field.settle(120)
            assert field.classes() == ["class-a"] * 4
            await field.enter(field.machines[0].metadata.name, "Failed")
            await field.settle(120)
            assert field.classes() == ["class-a"] * 4
            await field.change(paused=None)
            await field.settle(600)
            assert field.classes() == ["class-b"] * 4
            assert field.progress() == "NewMachineSetAvailable"
            assert field.condition("Paused") is None

    play(scenario)


def test_an_update_waits_until_new_machines_have_been_ready_for_long_enough() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=2, minReadySeconds=60)
            await field.settle(30)
            await field.update("class-b")
            await field.settle(BOOT + 50)
            assert field.classes() == ["class-a", "class-a", "class-b"]
            assert field.pool.status.ready_replicas == 3
            assert field.pool.status.available_replicas == 2
            await field.settle(SHUTDOWN + 20)
            assert field.classes() == ["class-a", "class-b", "class-b"]
            await field.settle(BOOT + 30)
            assert field.progress() == "MachineSetUpdated"
            await field.settle(60)
            assert field.classes() == ["class-b", "class-b"]
            assert field.progress() == "NewMachineSetAvailable"
            assert field.least == 2

    play(scenario)


def test_what_changes_in_place_reaches_the_machines_without_replacing_them() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=2)
            names = [m.metadata.name for m in field.machines]
            await field.change(template={"spec": {"drainTimeout": "5m"}})
            await field.settle(60)
            assert [m.metadata.name for m in field.machines] == names
            assert {m.spec.drain_timeout for m in field.machines} == {"5m"}
            assert len(field.sets) == 1

    play(scenario)


def test_nodes_are_marked_while_an_update_runs_and_clean_after_it() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=3)
            assert all(not n.spec.taints and not n.metadata.annotations for n in field.nodes())
            field.broken_classes = {"class-b"}
            await field.update("class-b")
            await field.settle(60)
            marked = [n for n in field.nodes() if n.spec.taints]
            assert len(marked) == 3
            assert all(
                ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM in n.metadata.annotations for n in marked
            )
            annotations = field.set_of("class-a").metadata.annotations
            assert annotations[ANNOTATION_PREFER_NO_SCHEDULE] == "True"
            field.cluster.writes.clear()
            await field.settle(3600)
            assert field.cluster.writes == []

            await field.update("class-a")  # and back
            await field.settle(120)
            serving = {m.node_name for m in field.machines}
            clean = [n for n in field.nodes() if n.metadata.name in serving]
            assert len(clean) == 3
            assert all(not n.spec.taints and not n.metadata.annotations for n in clean)
            annotations = field.set_of("class-a").metadata.annotations
            assert ANNOTATION_PREFER_NO_SCHEDULE not in annotations
            field.cluster.writes.clear()
            await field.settle(3600)
            assert field.cluster.writes == []

    play(scenario)


def test_an_old_node_gets_its_taint_and_its_annotations_in_one_write() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=3)
            field.broken_classes = {"class-b"}
            before = {n.metadata.name for n in field.nodes()}
            field.cluster.writes.clear()
            await field.update("class-b")
            await field.settle(60)
            written = [w for w in field.cluster.writes if w.resource == "nodes"]
            assert {w.name for w in written} == before
            assert len(written) == len(before)
            for write in written:
                assert ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM in str(write.body)
                assert ANNOTATION_PREFER_NO_SCHEDULE in str(write.body)

    play(scenario)


def test_without_a_target_cluster_no_node_is_looked_for() -> None:
    async def scenario() -> None:
        async with Field(Cluster(target=False)) as field:
            await field.deploy(replicas=2)
            await field.update("class-b")
            await field.settle(300)
            assert field.classes() == ["class-b"] * 2
            assert not any(
                ANNOTATION_PREFER_NO_SCHEDULE in s.metadata.annotations for s in field.sets
            )

    play(scenario)


def test_a_node_that_refuses_to_be_marked_holds_up_nothing() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        cluster.api.refuse = lambda w: (
            Forbidden(403, "Forbidden", "not you")
            if (w.verb, w.resource) == ("patch", "nodes")
            else None
        )
        async with Field(cluster) as field:
            await field.deploy(replicas=2)
            await field.update("class-b")
            await field.settle(600)
            assert field.classes() == ["class-b"] * 2
            assert field.progress() == "NewMachineSetAvailable"

    play(scenario)


def test_the_autoscaler_gets_the_machines_it_chose_and_no_other_is_made() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=4)
            chosen = [m.metadata.name for m in field.machines][1:3]
            made = len(field.cluster.events.reasons())
            stamp = "2026-01-01T00:01:00Z"
            change: JSONObject = {
                "metadata": {
                    "annotations": {
                        ANNOTATION_TRIGGER_DELETION: ",".join(f"{n}~{stamp}" for n in chosen),
                        ANNOTATION_REPLICA_CHANGE_BY_SCALER: stamp,
                    }
                },
                "spec": {"replicas": 2},
            }
            await field.cluster.patch(MACHINE_DEPLOYMENTS, "pool", change)
            await field.settle(120)
            assert not {m.metadata.name for m in field.machines} & set(chosen)
            assert len(field.machines) == 2
            assert "SuccessfulCreate" not in field.cluster.events.reasons()[made:]
            assert ANNOTATION_TRIGGER_DELETION not in field.pool.metadata.annotations
            for machine_set in field.sets:
                assert ANNOTATION_TRIGGER_DELETION not in machine_set.metadata.annotations

    play(scenario)


def test_the_history_is_cut_to_its_limit_when_an_update_is_complete() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=1, revisionHistoryLimit=1)
            for name in ("class-b", "class-c", "class-d"):
                await field.update(name)
                await field.settle(120)
            classes = {class_of(s.spec.template).name for s in field.sets}
            assert classes == {"class-c", "class-d"}

    play(scenario)


def test_a_deleted_deployment_goes_after_its_sets_and_machines() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=2)
            await field.cluster.delete(MACHINE_DEPLOYMENTS, "pool")
            await field.settle(1)
            assert all(m.metadata.deletion_timestamp for m in field.machines)
            assert field.pool.metadata.finalizers == (MACHINE_FINALIZER,)
            await field.settle(60)
            assert (field.machines, field.sets) == ([], [])
            with pytest.raises(KeyError):
                _ = field.pool

    play(scenario)


def test_a_set_that_is_deleted_by_hand_is_replaced_at_once_under_another_name() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=2)
            former = field.sets[0].metadata.name
            await field.cluster.delete(MACHINE_SETS, former)
            await field.settle(5)
            assert len(field.sets) == 2
            assert field.pool.status.collision_count == 1
            await field.settle(120)
            (successor,) = field.sets
            assert successor.metadata.name != former
            assert field.available == 2

    play(scenario)


def test_a_name_that_is_taken_is_avoided() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with Field(cluster) as field:
            body = pool()
            taken = set_name("pool", template(metadata={"finalizers": [MACHINE_FINALIZER]}))
            other = spec(replicas=0, selector={"matchLabels": {"name": "else"}})
            other["template"] = {
                "metadata": {"labels": {"name": "else"}},
                "spec": {"class": _class("class-x")},
            }
            other.pop("strategy")
            await cluster.create(MACHINE_SETS, {"metadata": {"name": taken}, "spec": other})
            await cluster.create(MACHINE_DEPLOYMENTS, body)
            await field.settle(60)
            assert field.pool.status.collision_count == 1
            assert field.available == 3

    play(scenario)


def refuse_sets(error: KubeError) -> Callable[[Write], KubeError | None]:
    return lambda w: error if (w.verb, w.resource) == ("create", "machinesets") else None


def test_a_set_that_cannot_be_made_is_told_once_and_tried_again() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        cluster.api.refuse = refuse_sets(Forbidden(403, "Forbidden", "no quota"))
        async with Field(cluster) as field:
            await field.deploy(replicas=1)
            condition = field.condition()
            assert condition is not None
            assert (condition.status, condition.reason) == ("False", "MachineSetCreateError")
            assert "no quota" in condition.message
            assert cluster.events.reasons() == ["MachineSetCreateError"]
            cluster.api.refuse = lambda _: None
            await field.settle(300)
            assert field.available == 1
            assert field.progress() == "NewMachineSetAvailable"

    play(scenario)


def test_in_a_namespace_that_ends_nothing_is_told() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        cause = Cause("NamespaceTerminating", "it ends", "")
        cluster.api.refuse = refuse_sets(Forbidden(403, "Forbidden", "it ends", causes=(cause,)))
        async with Field(cluster) as field:
            await field.deploy(replicas=1)
            assert cluster.events.reasons() == []
            assert field.pool.status.conditions == ()

    play(scenario)


@pytest.mark.parametrize(
    ("wrong", "event", "named"),
    [
        ({"selector": None}, "InvalidSpec", "spec.selector"),
        ({"selector": {"matchLabels": None}}, "SelectingAll", "spec.selector"),
        ({"replicas": -3}, "InvalidSpec", "spec.replicas: Invalid value -3"),
        ({"replicas": 10**9}, "InvalidSpec", "spec.replicas: Invalid value 1000000000"),
        ({"replicas": 2**31}, "InvalidSpec", "spec.replicas: Invalid value 2147483648"),
        ({"replicas": "three"}, "InvalidSpec", "spec.replicas: Invalid value: Expected `int`"),
        ({"replicas": 1e30}, "InvalidSpec", "spec.replicas: Invalid value: Expected `int`"),
        ({"strategy": []}, "InvalidSpec", "spec.strategy: Invalid value: Expected `object`"),
        ({"progressDeadlineSeconds": 10**15}, "InvalidSpec", "spec.progressDeadlineSeconds"),
        ({"strategy": {"type": "Blue"}}, "InvalidSpec", "spec.strategy.type"),
        (
            {"strategy": {"rollingUpdate": {"maxSurge": "many"}}},
            "InvalidSpec",
            "spec.strategy.rollingUpdate.maxSurge",
        ),
    ],
)
def test_a_deployment_that_makes_no_sense_says_so_and_can_be_mended_or_deleted(
    wrong: JSONObject, event: str, named: str
) -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=2)
            await field.change(**wrong)
            await field.settle(60)
            assert field.available == 2
            condition = field.condition()
            assert condition is not None
            assert (condition.status, condition.reason) == ("False", "InvalidSpec")
            assert named in condition.message
            assert field.pool.status.observed_generation == field.pool.metadata.generation
            assert field.cluster.events.seen[-1][1:3] == ("Warning", event)
            assert named in field.cluster.events.seen[-1][3]
            field.cluster.writes.clear()
            await field.settle(3600)
            assert field.cluster.writes == []

            await field.cluster.delete(MACHINE_DEPLOYMENTS, "pool")
            await field.settle(60)
            assert (field.machines, field.sets) == ([], [])
            with pytest.raises(KeyError):
                _ = field.pool

    play(scenario)


def test_a_set_whose_replicas_cannot_be_read_gets_those_it_should_have() -> None:
    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=2)
            (only,) = field.sets
            wrong: JSONObject = {"spec": {"replicas": "two"}}
            await field.cluster.patch(MACHINE_SETS, only.metadata.name, wrong)
            await field.change(replicas=3)
            await field.settle(60)
            assert [s.spec.replicas for s in field.sets] == [3]
            assert field.available == 3

    play(scenario)


IN_PLACE = {
    "type": "InPlaceUpdate",
    "rollingUpdate": None,
    "inPlaceUpdate": {"maxSurge": 1, "maxUnavailable": 1, "orchestrationType": "Auto"},
}


def test_an_update_in_place_without_nodes_is_refused_loudly_and_scaling_goes_on() -> None:
    async def scenario() -> None:
        async with Field(Cluster(target=False)) as field:
            await field.deploy(replicas=2, strategy=IN_PLACE)
            assert field.available == 2
            assert field.progress() == "NewMachineSetAvailable"
            await field.update("class-b")
            await field.settle(60)
            assert field.classes() == ["class-a"] * 2
            assert field.progress() == "NoTargetCluster"
            assert field.cluster.events.reasons().count("NoTargetCluster") == 1
            await field.change(replicas=3)
            await field.settle(60)
            assert field.classes() == ["class-a"] * 3
            assert field.progress() == "NoTargetCluster"
            field.cluster.writes.clear()
            await field.settle(3600)
            assert field.cluster.writes == []
            await field.update("class-a")
            await field.settle(60)
            assert field.progress() == "NewMachineSetAvailable"

    play(scenario)


def test_a_set_made_by_hand_is_adopted_and_told_apart_without_losing_a_machine() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with Field(cluster) as field:
            by_hand = spec(replicas=2)
            by_hand.pop("strategy")
            await cluster.create(
                MACHINE_SETS, {"metadata": {"name": "by-hand", "labels": LABELS}, "spec": by_hand}
            )
            await field.settle(60)
            names = [m.metadata.name for m in field.machines]
            await field.deploy(replicas=2)
            (adopted,) = field.sets
            assert adopted.metadata.name == "by-hand"
            owner = adopted.metadata.controller_ref()
            assert owner is not None and owner.name == "pool"
            assert adopted.spec.selector is not None
            mark = adopted.spec.selector.match_labels[LABEL_MACHINE_TEMPLATE_HASH]
            assert adopted.metadata.labels[LABEL_MACHINE_TEMPLATE_HASH] == mark
            assert [m.metadata.name for m in field.machines] == names
            assert {m.metadata.labels[LABEL_MACHINE_TEMPLATE_HASH] for m in field.machines} == {
                mark
            }
            await field.update("class-b")
            await field.settle(300)
            assert field.classes() == ["class-b"] * 2

    play(scenario)


def test_an_update_costs_few_writes() -> None:
    """Of ours, for each machine replaced: its creation and deletion, two sizes, and statuses."""

    async def scenario() -> None:
        async with Field() as field:
            await field.deploy(replicas=10)
            field.cluster.writes.clear()
            await field.update("class-b")
            await field.settle(2000)
            assert field.classes() == ["class-b"] * 10
            cloud = ("machines", "nodes")
            ours = [
                w
                for w in field.cluster.writes
                if w.resource not in cloud or w.verb == "delete" or _is_creation(w)
            ]
            assert len(ours) / 10 <= 13

    play(scenario)


def _is_creation(write: Write) -> bool:
    return (write.verb, write.resource) == ("create", "machines")


def test_a_deployment_that_vanishes_in_the_middle_is_no_error() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with Field(cluster) as field:
            cluster.api.refuse = lambda w: (
                NotFound(404, "NotFound", "pool")
                if (w.resource, w.subresource) == ("machinedeployments", "status")
                else None
            )
            await field.deploy(replicas=1)
            assert field.available == 1

    play(scenario)


# ---- one step is refused, the others go on -------------------------------------------------------


def refuse(verb: str, resource: str, *, naming: str, status: bool = False) -> Cluster:
    """A cluster that refuses such writes whose body names ``naming``."""

    def answer(write: Write) -> KubeError | None:
        hit = (write.verb, write.resource) == (verb, resource) and naming in str(write.body)
        of_status = write.subresource == "status"
        return Forbidden(403, "Forbidden", "not you") if hit and of_status == status else None

    cluster = Cluster()
    cluster.api.refuse = answer
    return cluster


def test_no_set_shrinks_before_the_machines_chosen_to_go_are_marked() -> None:
    """Else the set would take other machines than those whose pods have left."""

    async def scenario() -> None:
        cluster = refuse("patch", "machines", naming=ANNOTATION_PRIORITY)
        async with Field(cluster) as field:
            await field.deploy(replicas=4)
            chosen = [m.metadata.name for m in field.machines][1:3]
            stamp = "2026-01-01T00:01:00Z"
            listed = {
                ANNOTATION_TRIGGER_DELETION: ",".join(f"{n}~{stamp}" for n in chosen),
                ANNOTATION_REPLICA_CHANGE_BY_SCALER: stamp,
            }
            await field.cluster.patch(
                MACHINE_DEPLOYMENTS,
                "pool",
                {"metadata": {"annotations": listed}, "spec": {"replicas": 2}},
            )
            await field.settle(60)
            assert field.set_of("class-a").spec.replicas == 4
            said = field.set_of("class-a").metadata.annotations[ANNOTATION_DESIRED_REPLICAS]
            assert said == "4"  # so that the change is still due
            assert field.pool.status.observed_generation == field.pool.metadata.generation
            cluster.api.refuse = lambda _: None
            await field.settle(600)
            assert len(field.machines) == 2
            assert not {m.metadata.name for m in field.machines} & set(chosen)

    play(scenario)


def test_a_deployment_grows_though_a_machine_cannot_be_marked() -> None:
    async def scenario() -> None:
        cluster = refuse("patch", "machines", naming=ANNOTATION_PRIORITY)
        async with Field(cluster) as field:
            await field.deploy(replicas=2)
            name = field.machines[0].metadata.name
            listed = {ANNOTATION_TRIGGER_DELETION: f"{name}~2026-01-01T00:01:00Z"}
            await field.cluster.patch(
                MACHINE_DEPLOYMENTS,
                "pool",
                {"metadata": {"annotations": listed}, "spec": {"replicas": 3}},
            )
            await field.settle(60)
            assert field.available == 3

    play(scenario)


def test_no_node_is_tainted_whose_set_cannot_say_so() -> None:
    """Nobody would ever take such a taint away again."""

    async def scenario() -> None:
        cluster = refuse("patch", "machinesets", naming=ANNOTATION_PREFER_NO_SCHEDULE)
        async with Field(cluster) as field:
            await field.deploy(replicas=2)
            await field.update("class-b")
            await field.settle(60)
            keys = {t.key for n in field.nodes() for t in n.spec.taints}
            assert ANNOTATION_PREFER_NO_SCHEDULE not in keys
            cluster.api.refuse = lambda _: None
            await field.settle(900)
            assert field.classes() == ["class-b"] * 2

    play(scenario)


def test_a_revision_that_cannot_be_written_on_the_deployment_holds_up_nothing() -> None:
    async def scenario() -> None:
        cluster = refuse("patch", "machinedeployments", naming=ANNOTATION_REVISION)
        async with Field(cluster) as field:
            await field.deploy(replicas=2)
            await field.settle(60)
            assert field.pool.status.available_replicas == 2
            assert field.progress() == "NewMachineSetAvailable"
            cluster.api.refuse = lambda _: None
            await field.settle(900)
            assert field.pool.metadata.annotations[ANNOTATION_REVISION] == "1"

    play(scenario)


def test_an_adopted_set_that_cannot_be_labelled_holds_up_nothing() -> None:
    async def scenario() -> None:
        cluster = refuse("patch", "machinesets", naming=LABEL_MACHINE_TEMPLATE_HASH)
        by_hand = {"metadata": {"name": "by-hand", "labels": LABELS}, "spec": spec(replicas=2)}
        cast("JSONObject", by_hand["spec"]).pop("strategy")
        async with Field(cluster) as field:
            await cluster.create(MACHINE_SETS, by_hand)
            await field.deploy(replicas=3)
            assert field.available == 3
            assert field.progress() == "NewMachineSetAvailable"
            cluster.api.refuse = lambda _: None
            await field.settle(600)
            (only,) = field.sets
            assert only.spec.selector is not None
            assert LABEL_MACHINE_TEMPLATE_HASH in only.spec.selector.match_labels

    play(scenario)


def test_a_set_of_that_name_which_is_not_known_yet_is_no_failure_to_tell_of() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        cluster.api.refuse = refuse_sets(AlreadyExists(409, "AlreadyExists", "it is there"))
        async with Field(cluster) as field:
            await field.deploy(replicas=1)
            assert cluster.events.reasons() == []
            assert field.pool.status.conditions == ()
            cluster.api.refuse = lambda _: None
            await field.settle(300)
            assert field.available == 1

    play(scenario)
