"""The MachineSet controller as it runs: handlers, queue, workers, writer, and a small server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_SETS, MACHINES, Machine, MachineSet
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_PRESERVE, MACHINE_FINALIZER
from mcm.client.errors import Forbidden, KubeError, RequestTimeout
from mcm.controllers import machineset
from tests.unit.machineset.cluster import Cluster, Running, Write, play
from tests.unit.machineset.objects import LABELS, SPEC

FINALIZED = {"metadata": {"finalizers": [MACHINE_FINALIZER]}}


def body(replicas: int = 3, **spec: object) -> JSONObject:
    return {
        "metadata": {"name": "set", "labels": {"name": "pool"}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"labels": LABELS, "finalizers": [MACHINE_FINALIZER]},
                "spec": SPEC,
            },
            **spec,
        },
    }


def running(cluster: Cluster) -> Running:
    return Running(cluster, machineset.build(cluster.context))


def the_set(cluster: Cluster) -> MachineSet:
    return cluster.get(MACHINE_SETS, "set")


def living(cluster: Cluster) -> list[Machine]:
    return [m for m in cluster.all(MACHINES) if m.metadata.deletion_timestamp is None]


async def enter(cluster: Cluster, machine: Machine, phase: str) -> None:
    status: JSONObject = {"status": {"currentStatus": {"phase": phase}}}
    await cluster.patch(MACHINES, machine.metadata.name, status, subresource="status")


async def all_running(cluster: Cluster) -> None:
    for machine in living(cluster):
        await enter(cluster, machine, "Running")


async def vanish(cluster: Cluster) -> None:
    """The machine controller is through with whatever is being deleted."""
    for machine in cluster.all(MACHINES):
        if machine.metadata.deletion_timestamp is not None:
            change: JSONObject = {"metadata": {"finalizers": None}}
            await cluster.patch(MACHINES, machine.metadata.name, change)


def verbs(writes: list[Write]) -> list[str]:
    return [f"{w.verb} {w.resource}{'/' if w.subresource else ''}{w.subresource}" for w in writes]


def test_a_set_makes_its_machines_and_then_writes_nothing() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(3))
            await controllers.settle()
            machines = living(cluster)
            assert len(machines) == 3
            assert all(m.metadata.generate_name == "set-" for m in machines)
            assert all(m.metadata.name.startswith("set-") for m in machines)
            await all_running(cluster)
            await controllers.settle()
            status = the_set(cluster).status
            assert (status.replicas, status.available_replicas, status.ready_replicas) == (3, 3, 3)
            assert status.fully_labeled_replicas == 3
            assert status.observed_generation == 1
            assert the_set(cluster).metadata.finalizers == (MACHINE_FINALIZER,)
            assert cluster.events.reasons() == ["SuccessfulCreate"] * 3
            cluster.writes.clear()
            for key in ("set",):
                await cluster.patch(MACHINE_SETS, key, {"metadata": {"annotations": {"a": "b"}}})
            await controllers.settle(24 * 3600)
            assert verbs(cluster.writes) == ["patch machinesets"]  # the test's own

    play(scenario)


def test_a_new_set_costs_two_writes_beside_its_machines() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(2))
            await controllers.settle()
            assert verbs(cluster.writes[1:]) == [
                "patch machinesets",
                "create machines",
                "create machines",
                "patch machinesets/status",
            ]

    play(scenario)


def test_scaling_down_deletes_the_least_useful_machine() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(3))
            await controllers.settle()
            await all_running(cluster)
            idle = living(cluster)[1]
            await enter(cluster, idle, "Pending")
            await cluster.patch(MACHINE_SETS, "set", {"spec": {"replicas": 2}})
            await controllers.settle()
            (gone,) = [m for m in cluster.all(MACHINES) if m.metadata.deletion_timestamp]
            assert gone.metadata.name == idle.metadata.name
            assert gone.phase == "Pending"  # whose phase it is: the machine controller's
            assert the_set(cluster).status.replicas == 3
            await vanish(cluster)
            await controllers.settle()
            assert the_set(cluster).status.replicas == 2
            assert cluster.events.reasons().count("SuccessfulDelete") == 1

    play(scenario)


def test_a_failed_machine_is_deleted_and_replaced() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(2))
            await controllers.settle()
            await all_running(cluster)
            broken = living(cluster)[0]
            await enter(cluster, broken, "Failed")
            await controllers.settle()
            assert broken.metadata.name not in {m.metadata.name for m in living(cluster)}
            assert len(living(cluster)) == 2
            assert len(cluster.all(MACHINES)) == 3

    play(scenario)


def test_a_preserved_machine_is_deleted_to_the_second_when_its_time_is_over() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(1))
            await controllers.settle()
            (kept,) = living(cluster)
            until = "2026-01-01T01:00:00Z"
            status: JSONObject = {"phase": "Failed", "preserveExpiryTime": until}
            await cluster.patch(
                MACHINES,
                kept.metadata.name,
                {"status": {"currentStatus": status}},
                subresource="status",
            )
            await cluster.clock.sleep(3600 - cluster.clock.monotonic() - 1)
            assert len(cluster.all(MACHINES)) == 1
            assert the_set(cluster).status.preserved_failed_replicas == 1
            await cluster.clock.sleep(1.01)
            assert cluster.get(MACHINES, kept.metadata.name).metadata.deletion_timestamp

    play(scenario)


async def enter_at(cluster: Cluster, machine: Machine, phase: str, second: int) -> None:
    """The machine controller stamps a phase, by a clock that may be wrong."""
    since = f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"
    current: JSONObject = {"phase": phase, "lastUpdateTime": since}
    await cluster.patch(
        MACHINES,
        machine.metadata.name,
        {"status": {"currentStatus": current}},
        subresource="status",
    )


def test_machines_become_available_to_the_second_and_cost_one_write_each_time() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(2, minReadySeconds=60))
            await controllers.settle()
            first, second = living(cluster)
            await enter_at(cluster, first, "Running", 10)
            await enter_at(cluster, second, "Running", 30)
            await cluster.clock.sleep(69.5 - cluster.clock.monotonic())
            assert the_set(cluster).status.ready_replicas == 2
            assert the_set(cluster).status.available_replicas == 0
            cluster.writes.clear()
            await cluster.clock.sleep(1)
            assert the_set(cluster).status.available_replicas == 1
            await cluster.clock.sleep(19)
            assert the_set(cluster).status.available_replicas == 1
            await cluster.clock.sleep(1)
            assert the_set(cluster).status.available_replicas == 2
            await cluster.clock.sleep(3600)
            assert len(cluster.writes) == 2

    play(scenario)


def test_a_machine_that_was_not_ready_for_a_moment_waits_from_the_beginning() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(1, minReadySeconds=60))
            await controllers.settle()
            (machine,) = living(cluster)
            await enter_at(cluster, machine, "Running", 10)
            await cluster.clock.sleep(50 - cluster.clock.monotonic())
            # Nobody sees the phase between: both changes come as one.
            await enter_at(cluster, machine, "Running", 50)
            await cluster.clock.sleep(109.5 - cluster.clock.monotonic())
            assert the_set(cluster).status.available_replicas == 0
            await cluster.clock.sleep(1)
            assert the_set(cluster).status.available_replicas == 1

    play(scenario)


def test_a_shorter_wait_counts_at_once() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(1, minReadySeconds=3600))
            await controllers.settle()
            (machine,) = living(cluster)
            await enter_at(cluster, machine, "Running", 6)
            await controllers.settle(30)
            assert the_set(cluster).status.available_replicas == 0
            await cluster.patch(MACHINE_SETS, "set", {"spec": {"minReadySeconds": 20}})
            await controllers.settle(0.5)
            assert the_set(cluster).status.available_replicas == 1

    play(scenario)


def test_a_status_names_every_counter_from_the_first_write_on() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(0))
            await controllers.settle()
            written = cluster.api.stored(MACHINE_SETS, "set", "ns")["status"]
            assert isinstance(written, dict)
            assert {key: value for key, value in written.items() if value == 0} == {
                "replicas": 0,
                "fullyLabeledReplicas": 0,
                "readyReplicas": 0,
                "availableReplicas": 0,
                "preservedFailedReplicas": 0,
                "autoPreserveFailedMachineCount": 0,
            }

    play(scenario)


def test_counters_that_another_program_left_out_come_with_the_next_write_that_is_due() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            taken_over = body(0)
            meta = taken_over["metadata"]
            assert isinstance(meta, dict)
            meta |= {"namespace": "ns", "generation": 1, "finalizers": [MACHINE_FINALIZER]}
            cluster.show(MACHINE_SETS, [{**taken_over, "status": {"observedGeneration": 1}}])
            await controllers.settle()
            assert cluster.writes == []
            await cluster.patch(MACHINE_SETS, "set", {"spec": {"minReadySeconds": 20}})
            await controllers.settle()
            written = cluster.api.stored(MACHINE_SETS, "set", "ns")["status"]
            assert isinstance(written, dict)
            assert written["readyReplicas"] == 0

    play(scenario)


def test_a_request_on_the_node_protects_its_failed_machine() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(1))
            await controllers.settle()
            (kept,) = living(cluster)
            name = kept.metadata.name
            annotations = {ANNOTATION_PRESERVE: "when-failed"}
            node: JSONObject = {"metadata": {"name": "node", "annotations": annotations}}
            await cluster.create(NODES, node)
            await cluster.patch(MACHINES, name, {"metadata": {"labels": {"node": "node"}}})
            await enter(cluster, kept, "Failed")
            await controllers.settle()
            assert cluster.get(MACHINES, name).metadata.deletion_timestamp is None

    play(scenario)


def refused(verb: str, error: KubeError) -> Callable[[Write], KubeError | None]:
    return lambda w: error if (w.verb, w.resource) == (verb, "machines") else None


def test_a_used_up_quota_costs_few_requests_and_shows_in_condition_and_event() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        cluster.api.refuse = refused("create", Forbidden(403, "Forbidden", "quota exceeded"))
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(100))
            await cluster.clock.sleep(0.004)
            # Twice, as the finalizer was news to the set itself; never a hundred times.
            assert verbs(cluster.writes).count("create machines") == 2
            (condition,) = the_set(cluster).status.conditions
            assert (condition.type, condition.status) == ("ReplicaFailure", "True")
            assert (condition.reason, condition.message) == ("FailedCreate", "quota exceeded")
            assert "quota exceeded" in cluster.events.seen[0][3]
            assert set(cluster.events.reasons()) == {"FailedCreate"}
            await controllers.settle(600)
            tries = verbs(cluster.writes).count("create machines")
            assert tries < 25  # it backs off
            assert verbs(cluster.writes).count("patch machinesets/status") == 1
            cluster.api.refuse = lambda _: None
            await controllers.settle(2000)
            assert len(living(cluster)) == 100
            assert the_set(cluster).status.conditions == ()

    play(scenario)


def test_lost_answers_never_cost_a_machine_too_many() -> None:
    """The requests happened, the answers did not arrive, and the watch is silent."""

    async def scenario() -> None:
        cluster = Cluster()
        lost = iter([True, False, True, True, False, True] + [False] * 1000)

        def lose(write: Write) -> KubeError | None:
            if (write.verb, write.resource) != ("create", "machines"):
                return None
            return RequestTimeout("no answer") if next(lost) else None

        cluster.api.lose = lose
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(5))
            await controllers.settle(600)
            assert len(cluster.all(MACHINES)) == 5
            for machine in cluster.all(MACHINES):
                cluster.behind(machine, MACHINES)  # the watch catches up
            await controllers.settle(600)
            assert len(cluster.all(MACHINES)) == 5
            assert the_set(cluster).status.replicas == 5

    play(scenario)


def test_who_changes_his_mind_while_machines_are_made_gets_none_too_many() -> None:
    async def scenario() -> None:
        cluster = Cluster()

        def shrink(write: Write) -> None:
            if (write.verb, write.resource) == ("create", "machines"):
                change: JSONObject = {"spec": {"replicas": 2}, "metadata": {"generation": 2}}
                cluster.api.alter(MACHINE_SETS, "set", change, namespace="ns")
                cluster.catch_up(MACHINE_SETS)

        cluster.api.lose = shrink
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(40))
            await controllers.settle()
            made = [w for w in cluster.writes if (w.verb, w.resource) == ("create", "machines")]
            assert len(made) == 2
            assert len(living(cluster)) == 2

    play(scenario)


def test_a_set_of_two_minds_remembers_machines_whose_answers_got_lost() -> None:
    """They exist, and no watch has told so yet: wanting as many as before asks for the same."""

    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(2))
            await controllers.settle()
            cluster.api.lose = lambda w: RequestTimeout("no answer") if w.verb == "create" else None
            await cluster.patch(MACHINE_SETS, "set", {"spec": {"replicas": 3}})
            await controllers.settle(1)
            assert len(cluster.all(MACHINES)) == 3
            cluster.api.lose = lambda _: None
            await cluster.patch(MACHINE_SETS, "set", {"spec": {"replicas": 2}})
            await controllers.settle(1)
            await cluster.patch(MACHINE_SETS, "set", {"spec": {"replicas": 3}})
            await controllers.settle(60)
            assert len(cluster.all(MACHINES)) == 3

    play(scenario)


def test_requests_that_never_arrived_are_made_again() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        cluster.api.refuse = refused("create", RequestTimeout("no answer"))
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(3))
            await controllers.settle(30)
            assert cluster.all(MACHINES) == []
            cluster.api.refuse = lambda _: None
            await controllers.settle(120)
            assert len(cluster.all(MACHINES)) == 3

    play(scenario)


def test_a_deletion_that_is_refused_is_told_and_tried_again() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(1))
            await controllers.settle()
            cluster.api.refuse = refused("delete", Forbidden(403, "Forbidden", "not you"))
            await cluster.patch(MACHINE_SETS, "set", {"spec": {"replicas": 0}})
            await controllers.settle()
            (condition,) = the_set(cluster).status.conditions
            assert (condition.reason, condition.message) == ("FailedDelete", "not you")
            assert "FailedDelete" in cluster.events.reasons()
            cluster.api.refuse = lambda _: None
            await controllers.settle(60)
            assert living(cluster) == []
            assert the_set(cluster).status.conditions == ()

    play(scenario)


def test_the_template_reaches_existing_machines_with_one_patch_each() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(2))
            await controllers.settle()
            await all_running(cluster)
            cluster.writes.clear()
            changed: JSONObject = {
                "drainTimeout": "5m",
                "nodeTemplate": {"metadata": {"labels": {"pool": "a"}}},
            }
            await cluster.patch(MACHINE_SETS, "set", {"spec": {"template": {"spec": changed}}})
            await controllers.settle()
            patches = [w for w in cluster.writes if w.resource == "machines"]
            assert [w.body["spec"] for w in patches] == [changed, changed]
            assert all(m.spec.drain_timeout == "5m" for m in living(cluster))

    play(scenario)


def test_a_machine_that_cannot_be_patched_keeps_no_other_from_being_made() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(1))
            await controllers.settle()
            cluster.api.refuse = refused("patch", Forbidden(403, "Forbidden", "not you"))
            change: JSONObject = {"replicas": 3, "template": {"spec": {"drainTimeout": "5m"}}}
            await cluster.patch(MACHINE_SETS, "set", {"spec": change})
            await controllers.settle()
            assert len(living(cluster)) == 3
            assert the_set(cluster).status.replicas == 3

    play(scenario)


def test_orphans_are_adopted_and_strangers_released() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        other = {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "other-uid"}
        stray: JSONObject = {
            "metadata": {"name": "stray", "labels": LABELS, "ownerReferences": [other]},
            "spec": SPEC,
        }
        async with running(cluster) as controllers:
            await cluster.create(MACHINES, stray)
            await cluster.create(MACHINE_SETS, body(2))
            await controllers.settle()
            assert len(cluster.all(MACHINES)) == 2
            adopted = cluster.get(MACHINES, "stray").metadata
            assert [r.name for r in adopted.owner_references] == ["o", "set"]
            assert adopted.controller_ref() is not None

            await cluster.patch(MACHINES, "stray", {"metadata": {"labels": {"name": "else"}}})
            await controllers.settle()
            released = cluster.get(MACHINES, "stray").metadata
            assert [r.name for r in released.owner_references] == ["o"]
            assert len(cluster.all(MACHINES)) == 3  # one was made in its place

    play(scenario)


def test_nothing_is_adopted_by_a_set_that_was_deleted_meanwhile() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        controllers = running(cluster)  # the stores are there now
        await cluster.create(
            MACHINES, {"metadata": {"name": "stray", "labels": LABELS}, "spec": SPEC}
        )
        finalized = body(1)
        metadata = finalized["metadata"]
        assert isinstance(metadata, dict)
        metadata["finalizers"] = [MACHINE_FINALIZER]
        await cluster.create(MACHINE_SETS, finalized)
        # Another set by now, of which no watch has told the store.
        other: JSONObject = {"metadata": {"uid": "another"}}
        cluster.api.alter(MACHINE_SETS, "set", other, cluster.namespace)
        async with controllers:
            await controllers.settle()
            assert cluster.get(MACHINES, "stray").metadata.owner_references == ()

    play(scenario)


def test_a_deleted_set_takes_its_machines_along_and_goes_last() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(3))
            await controllers.settle()
            await cluster.delete(MACHINE_SETS, "set")
            await controllers.settle()
            assert living(cluster) == []
            assert the_set(cluster).metadata.finalizers == (MACHINE_FINALIZER,)
            await vanish(cluster)
            await controllers.settle()
            assert cluster.all(MACHINE_SETS) == []
            assert len(cluster.all(MACHINES)) == 0

    play(scenario)


def test_whoever_asks_to_keep_the_machines_keeps_them() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(2))
            await controllers.settle()
            keep: JSONObject = {"metadata": {"finalizers": [MACHINE_FINALIZER, "orphan"]}}
            await cluster.patch(MACHINE_SETS, "set", keep)
            await cluster.delete(MACHINE_SETS, "set")
            await controllers.settle()
            assert the_set(cluster).metadata.finalizers == ("orphan",)
            assert len(living(cluster)) == 2

    play(scenario)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"selector": None}, "spec.selector"),
        ({"replicas": -1}, "spec.replicas: Invalid value -1"),
        ({"replicas": 10**9}, "spec.replicas: Invalid value 1000000000: must be at most 100000"),
        ({"replicas": 2**31}, "spec.replicas: Invalid value 2147483648: is more than an int32"),
        ({"replicas": "three"}, "spec.replicas: Invalid value: Expected `int`, got `str`"),
        ({"replicas": 1e30}, "spec.replicas: Invalid value: Expected `int`, got `float`"),
        ({"template": "none"}, "spec.template: Invalid value: Expected `object`, got `str`"),
        ({"minReadySeconds": 2**40}, "spec.minReadySeconds"),
        ({"selector": {"matchLabels": {"name": "else"}}}, "spec.selector.matchLabels"),
        (
            {"selector": {}, "template": {"spec": SPEC}},
            "spec.template.metadata.labels",
        ),
    ],
)
def test_a_set_that_makes_no_sense_says_so_and_can_be_mended_or_deleted(
    wrong: JSONObject, named: str
) -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(1))
            await controllers.settle()
            await cluster.patch(MACHINE_SETS, "set", {"spec": None})
            spec = body(2)["spec"]
            assert isinstance(spec, dict)
            await cluster.patch(MACHINE_SETS, "set", {"spec": {**spec, **wrong}})
            await controllers.settle()
            assert len(living(cluster)) == 1
            status = the_set(cluster).status
            assert status.observed_generation == the_set(cluster).metadata.generation
            (condition,) = status.conditions
            assert (condition.type, condition.reason) == ("ReplicaFailure", "InvalidSpec")
            assert named in condition.message
            name, kind, reason, note = cluster.events.seen[-1]
            assert (name, kind, reason) == ("set", "Warning", "InvalidSpec")
            assert named in note
            writes = len(cluster.writes)
            await cluster.patch(MACHINE_SETS, "set", {"metadata": {"labels": {"x": "y"}}})
            await controllers.settle()
            assert len(cluster.writes) == writes + 1  # the test's own: said once is enough

            await cluster.delete(MACHINE_SETS, "set")
            await controllers.settle()
            assert living(cluster) == []
            await vanish(cluster)
            await controllers.settle()
            assert cluster.all(MACHINE_SETS) == []

    play(scenario)


def test_a_mended_set_goes_on() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(-1))
            await controllers.settle()
            await cluster.patch(MACHINE_SETS, "set", {"spec": {"replicas": 1}})
            await controllers.settle()
            assert len(living(cluster)) == 1
            assert the_set(cluster).status.conditions == ()

    play(scenario)


def test_a_frozen_set_waits_until_it_is_thawed() -> None:
    async def scenario() -> None:
        cluster = Cluster(target=False)
        async with running(cluster) as controllers:
            await cluster.create(MACHINE_SETS, body(0))
            await cluster.patch(MACHINE_SETS, "set", {"metadata": {"labels": {"freeze": "True"}}})
            await cluster.patch(MACHINE_SETS, "set", {"spec": {"replicas": 2}})
            await controllers.settle()
            assert cluster.all(MACHINES) == []
            await cluster.patch(MACHINE_SETS, "set", {"metadata": {"labels": {"freeze": None}}})
            await controllers.settle()
            assert len(living(cluster)) == 2

    play(scenario)
