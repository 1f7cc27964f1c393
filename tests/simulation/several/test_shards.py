"""Shards of one namespace: each has its own, nobody has what another has, nothing is forgotten."""

from __future__ import annotations

from typing import Any

from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES
from mcm.api.meta import JSONObject
from mcm.manager import LEASE_NAMES
from mcm.options import Options
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sharding.shard import JOINT_IDENTITY, SHARED_DUTIES
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.several.managers import Managers
from tests.simulation.several.shards import (
    fleet,
    hold_to_the_law,
    label,
    marks,
    scale,
    start,
    vm_names,
)


def test_each_shard_makes_the_machines_of_its_own_deployments() -> None:
    async def main() -> None:
        async with Managers.open() as managers:
            sim = managers.sim
            hold_to_the_law(managers)
            a, b = start(managers, "a"), start(managers, "b")
            await sim.apply(fleet({"one": "a", "two": "b", "three": "b"}))
            await sim.until(lambda: sim.running() == 6, within=120)
            assert (marks(sim, "one"), marks(sim, "t")) == ({"a"}, {"b"})
            assert len(vm_names(sim)) == 6 and managers.offences == []
            assert {managers.holder(name) for name in LEASE_NAMES} == {JOINT_IDENTITY}
            assert managers.holder(f"{LEASE_NAMES[0]}-a") == "a"
            await sim.pass_time(30)
            assert a.value("mcm_shard_objects", state="held") == 4
            assert b.value("mcm_shard_objects", state="held") == 8
            assert a.value("mcm_shard_info", shard="a", selector="shard=a") == 1
            duties = [p.value("mcm_shard_shared_duties") for p in (a, b)]
            assert sorted(duties, key=lambda value: value or 0) == [0, 1]
            # Nobody else begins as long as one of them lives, and nobody waits for one that ended.
            managers.start("whole", Options())
            await a.kill()
            await sim.pass_time(60)
            assert "whole" not in managers.acting()
            await b.stop()
            await sim.until(lambda: managers.holder(LEASE_NAMES[0]) == "whole", within=60)
            managers.judge = lambda _: ""
            await scale(sim, "one", 3)
            await sim.until(lambda: sim.running() == 7, within=60)

    run_virtual(main)


def test_shards_wait_for_a_go_process_and_keep_it_out_afterwards() -> None:
    async def main() -> None:
        async with Managers.open() as managers:
            sim = managers.sim
            await managers.hold_lease(LEASE_NAMES[1])
            start(managers, "a"), start(managers, "b")
            await sim.apply(fleet({"one": "a", "two": "b"}))
            await sim.pass_time(60)
            assert managers.acts == [] and managers.holder(f"{LEASE_NAMES[0]}-a") == ""
            await managers.let_go(LEASE_NAMES[1])
            await sim.until(lambda: sim.running() == 4, within=120)

    run_virtual(main)


def test_a_label_changed_midway_hands_everything_over_once_it_is_finished() -> None:
    async def main() -> None:
        async with Managers.open() as managers:
            sim = managers.sim
            hold_to_the_law(managers)
            a, b = start(managers, "a"), start(managers, "b")
            await sim.apply(fleet({"one": "a", "two": "b"}, replicas=5))
            await sim.until(lambda: len(vm_names(sim)) >= 5, within=60)
            await label(sim, "one", "b")
            await sim.until(lambda: marks(sim) == {"b"}, within=60)
            await sim.until(lambda: sim.running() == 10, within=120)
            assert len(vm_names(sim)) == 10
            assert (a.value("mcm_shard_hand_overs_total") or 0) >= 7
            # And back, in the midst of a scale-down.
            await scale(sim, "two", 1)
            await label(sim, "two", "a")
            await sim.until(lambda: marks(sim, "two") == {"a"}, within=300)
            await sim.until(lambda: len(vm_names(sim)) == 6, within=300)
            await sim.until(lambda: sim.running() == 6, within=60)
            assert managers.offences == [] and managers.overlaps() == []
            assert not b.task.done()

    run_virtual(main)


def test_a_label_that_nobody_matches_or_several_do_leaves_things_where_they_are() -> None:
    async def main() -> None:
        async with Managers.open() as managers:
            sim = managers.sim
            hold_to_the_law(managers)
            a = start(managers, "a")
            b = start(managers, "b", "shard in (b,both)")
            c = start(managers, "c", "shard in (c,both)")
            await sim.apply(fleet({"one": "a", "new": "nobody"}, replicas=1))
            await sim.until(lambda: sim.running() == 1, within=60)
            await sim.pass_time(30)

            def told(reason: str) -> float:
                name = "mcm_shard_misplaced_objects"
                return sum(p.value(name, reason=reason) or 0 for p in (a, b, c))

            assert (told("outside"), told("contested")) == (1, 0)
            await label(sim, "one", "both")
            await sim.pass_time(30)
            assert (told("outside"), told("contested")) == (1, 1)
            await label(sim, "one", None)
            await sim.pass_time(30)
            assert (told("outside"), told("contested")) == (2, 0)
            assert marks(sim, "one") == {"a"} and marks(sim, "new") == {""}
            await scale(sim, "one", 2)
            await sim.until(lambda: sim.running() == 2, within=120)
            await label(sim, "one", "c")
            await sim.until(lambda: marks(sim, "one") == {"c"}, within=60)
            await sim.pass_time(30)
            assert told("outside") == 1 and managers.offences == []

    run_virtual(main)


def test_a_killed_shard_is_followed_by_its_own_standby_and_its_duties_by_another() -> None:
    async def main() -> None:
        async with Managers.open() as managers:
            sim = managers.sim
            a = start(managers, "a")
            await sim.until(lambda: managers.holder(SHARED_DUTIES) == "a", within=30)
            b = start(managers, "b")
            start(managers, "a", process="a2")
            await sim.apply(fleet({"one": "a", "two": "b"}))
            await sim.until(lambda: sim.running() == 4, within=120)
            await a.kill()
            await scale(sim, "one", 3)
            assert await sim.until(lambda: sim.running() == 5, within=60) < 30
            assert managers.holder(f"{LEASE_NAMES[1]}-a") == "a2"
            await sim.until(lambda: managers.holder(SHARED_DUTIES) in ("a2", "b"), within=30)
            # What is handed to a shard that is not alive would have nobody.
            await b.kill()
            await sim.pass_time(40)
            await label(sim, "one", "b")
            await sim.pass_time(60)
            assert marks(sim, "one") == {"a"}

    run_virtual(main)


def test_a_vm_of_another_shards_machine_is_no_orphan_and_orphans_are_collected_once() -> None:
    async def main() -> None:
        async with Managers.open() as managers:
            sim = managers.sim
            hold_to_the_law(managers)
            start(managers, "a"), start(managers, "b")
            await sim.apply(fleet({"one": "a", "two": "b"}))
            await sim.until(lambda: sim.running() == 4, within=120)
            before = uids(sim)
            await sim.apply([orphan_like(sim.objects(VIRTUAL_MACHINES)[0])])
            await sim.pass_time(8 * 60)
            assert uids(sim) == before
            deleting = [
                act.by for act in managers.acts
                if act.reconcile.startswith("machinesafetyorphanvms") and "DELETE" in act.request
            ]  # fmt: skip
            assert len(deleting) == 1 and managers.holder(SHARED_DUTIES) == deleting[0]

    run_virtual(main)


def test_a_machine_that_lost_its_labels_is_still_its_sets_and_makes_no_other_one() -> None:
    async def main() -> None:
        async with Managers.open() as managers:
            sim = managers.sim
            hold_to_the_law(managers)
            start(managers, "a"), start(managers, "b")
            await sim.apply(fleet({"one": "a"}, replicas=3))
            await sim.until(lambda: sim.running() == 3, within=120)
            name = name_of(sim.objects(MACHINES)[0])
            await sim.client.patch(
                MACHINES, name, {"metadata": {"labels": {"shard": "b"}}}, namespace="default"
            )
            await sim.pass_time(120)
            assert marks(sim) == {"a"} and len(sim.objects(MACHINES)) == 3
            # A deployment that is deleted is finished by whoever has it, whatever its label.
            await label(sim, "one", "nobody")
            await sim.client.delete(MACHINE_DEPLOYMENTS, "one", namespace="default")
            await sim.until(lambda: sim.objects(VIRTUAL_MACHINES) == [], within=300)
            assert managers.offences == []

    run_virtual(main)


def uids(sim: Simulation) -> set[str]:
    found: list[Any] = sim.objects(VIRTUAL_MACHINES)
    return {vm["metadata"]["uid"] for vm in found}


def orphan_like(vm: JSONObject) -> JSONObject:
    """Return a VM of the same class for a machine that there is not."""
    made: Any = {k: v for k, v in vm.items() if k != "status"}
    unset = ("uid", "resourceVersion", "creationTimestamp")
    meta = {k: v for k, v in made["metadata"].items() if k not in unset}
    meta["name"] = "lost"
    return {**made, "metadata": meta, "spec": {**made["spec"], "machineName": "nobody"}}


def test_a_shard_that_is_cut_off_has_ended_before_anybody_else_begins() -> None:
    async def main() -> None:
        async with Managers.open() as managers:
            sim = managers.sim
            hold_to_the_law(managers)
            a = start(managers, "a")
            await sim.apply(fleet({"one": "a"}))
            await sim.until(lambda: sim.running() == 2, within=60)
            managers.start("whole", Options())
            await sim.pass_time(30)
            a.faults.refuse()
            cut = sim.clock.monotonic()
            await scale(sim, "one", 3)
            managers.judge = lambda _: ""
            await sim.until(lambda: "whole" in managers.acting(), within=60)
            first = min(act.began for act in managers.acts if act.by == "whole")
            assert 10 < first - cut < 20
            assert max(act.began for act in managers.acts if act.by == "a") < cut + 10
            await sim.until(lambda: sim.running() == 3, within=60)

    run_virtual(main)
