"""What else the Go original leaves half done: scaling, rollbacks, adoption, marks, surplus."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.takeover.as_left import (
    DESIRED,
    HASH,
    MOST,
    OLD_NODE_TAINT,
    PREFER_NO_SCHEDULE,
    LeftFleet,
    LeftMachine,
    LeftSet,
    ago,
    condition,
    rolling,
)
from tests.simulation.takeover.handed_over import HandedOver, take_over

TRIGGER = "node.machine.sapcloud.io/trigger-deletion-by-mcm"
CHANGED = "machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"
MARKED = "machine.sapcloud.io/marked-for-deletion-time"
PRIORITY = "machinepriority.machine.sapcloud.io"
PRESERVE = "node.machine.sapcloud.io/preserve"


def halfway(replicas: int = 6) -> tuple[LeftFleet, LeftSet, LeftSet]:
    """Four of a, three of b, one on top of six."""
    left = LeftFleet(replicas=6, strategy=rolling(1, 1), surge=1)
    old = left.add_set("a", 4)
    left.want("b")
    new = left.add_set("b", 3, revision=2)
    left.report(updated=new)
    left.annotations["deployment.kubernetes.io/revision"] = "2"
    if replicas != 6:
        left.spec["replicas"] = replicas
        left.deployment["metadata"]["generation"] += 1
    return left, old, new


def scaled_for(owner: LeftSet, replicas: int) -> None:
    owner.annotations.update({DESIRED: str(replicas), MOST: str(replicas + 1)})


# ---- scaling in the middle -----------------------------------------------------------------------


def unscaled(old: LeftSet, new: LeftSet) -> None:
    """Only the deployment says so."""


def the_new_set_is_scaled(old: LeftSet, new: LeftSet) -> None:
    scaled_for(new, 9)
    new.scaled(6)


def both_are_scaled(old: LeftSet, new: LeftSet) -> None:
    the_new_set_is_scaled(old, new)
    scaled_for(old, 9)


@pytest.mark.parametrize(
    "write", [unscaled, the_new_set_is_scaled, both_are_scaled], ids=lambda w: w.__name__
)
def test_growth_in_the_middle_of_a_rollout(write: Callable[[LeftSet, LeftSet], None]) -> None:
    left, old, new = halfway(9)
    write(old, new)
    updated = {m.uid for m in new.machines}

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("b")
        assert not seen.lost & updated
        assert seen.made == 6
        assert seen.witness.most <= 10
        assert seen.witness.fewest_serving >= 7 - 1

    take_over(left, scenario)


def shrunk(old: LeftSet, new: LeftSet) -> None:
    scaled_for(old, 4)
    old.scaled(2)


@pytest.mark.parametrize("write", [unscaled, shrunk], ids=lambda w: w.__name__)
def test_a_reduction_in_the_middle_of_a_rollout(write: Callable[[LeftSet, LeftSet], None]) -> None:
    """Seven machines, four wanted and one on top: by proportion one of the new ones may go."""
    left, old, new = halfway(4)
    write(old, new)

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("b")
        assert seen.made <= 2
        assert seen.witness.most <= 7
        assert seen.witness.fewest_serving >= 3

    take_over(left, scenario)


# ---- pauses and rollbacks ------------------------------------------------------------------------


@pytest.mark.parametrize("told", [False, True], ids=["not told yet", "told"])
def test_a_paused_rollout_stays_where_it_is(told: bool) -> None:
    left, _old, new = halfway()
    left.spec["paused"] = True
    updated = {m.uid for m in new.machines}
    if told:
        conditions = left.deployment["status"]["conditions"]
        conditions[:] = [
            conditions[0],
            condition("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused"),
        ]

    async def scenario(seen: HandedOver) -> None:
        await seen.sim.pass_time(120)
        assert (seen.made, seen.lost) == (0, set())
        assert seen.progress() == "DeploymentPaused"
        assert set(seen.sizes().values()) == {4, 3}
        await seen.patch_deployment({"spec": {"paused": None}})
        await seen.ends("b")
        assert not seen.lost & updated
        assert seen.made == 3

    take_over(left, scenario)


def rolled_back() -> tuple[LeftFleet, LeftSet, LeftSet]:
    """Of three machines one more is new and does not come up."""
    left = LeftFleet(replicas=3, strategy=rolling(1, 0), surge=1)
    old = left.add_set("a", 3)
    old.annotations[PREFER_NO_SCHEDULE] = "True"
    for machine in old.machines:
        machine.taint(OLD_NODE_TAINT)
        machine.keep_from_autoscaler()
    left.want("b")
    new = left.add_set("b", 1, machines=0, revision=2)
    left.add_new_machine(new, seen=True)
    new.report()
    left.report(updated=new)
    left.annotations["deployment.kubernetes.io/revision"] = "2"
    return left, old, new


def asked(left: LeftFleet, old: LeftSet) -> None:
    left.spec["rollbackTo"] = {}


def asked_for_a_revision(left: LeftFleet, old: LeftSet) -> None:
    left.spec["rollbackTo"] = {"revision": 1}


def some_taints_are_gone(left: LeftFleet, old: LeftSet) -> None:
    asked(left, old)
    for machine in old.machines[:2]:
        machine.its_node["spec"].pop("taints")


def the_set_says_no_more_of_taints(left: LeftFleet, old: LeftSet) -> None:
    asked(left, old)
    for machine in old.machines:
        machine.its_node["spec"].pop("taints")
    del old.annotations[PREFER_NO_SCHEDULE]


def the_template_is_back(left: LeftFleet, old: LeftSet) -> None:
    the_set_says_no_more_of_taints(left, old)
    del left.spec["rollbackTo"]
    left.want("a")


def the_set_is_numbered_anew(left: LeftFleet, old: LeftSet) -> None:
    the_template_is_back(left, old)
    old.annotations.update(
        {
            "deployment.kubernetes.io/revision": "3",
            "deployment.kubernetes.io/revision-history": "1,1",
        }
    )


@pytest.mark.parametrize(
    "write",
    [
        asked,
        asked_for_a_revision,
        some_taints_are_gone,
        the_set_says_no_more_of_taints,
        the_template_is_back,
        the_set_is_numbered_anew,
    ],
    ids=lambda write: write.__name__,
)
def test_a_rollback_keeps_what_it_returns_to(write: Callable[[LeftFleet, LeftSet], None]) -> None:
    left, old, _new = rolled_back()
    write(left, old)
    former = {m.uid for m in old.machines}

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("a")
        assert seen.made == 0
        assert not seen.lost & former
        assert "rollbackTo" not in seen.deployment["spec"]
        assert seen.witness.fewest_serving == 3

    take_over(left, scenario)


# ---- adopted sets get their hash -----------------------------------------------------------------


def nothing_has_a_hash(owner: LeftSet) -> None:
    del owner.spec["template"]["metadata"]["labels"][HASH]
    the_machines_lack_it(owner, 3)


def its_template_has_it(owner: LeftSet) -> None:
    the_machines_lack_it(owner, 3)


def one_machine_has_it(owner: LeftSet) -> None:
    the_machines_lack_it(owner, 2)


def all_machines_have_it(owner: LeftSet) -> None:
    the_machines_lack_it(owner, 0)


def the_machines_lack_it(owner: LeftSet, count: int) -> None:
    del owner.spec["selector"]["matchLabels"][HASH], owner.labels[HASH]
    for machine in owner.machines[:count]:
        del machine.labels[HASH]


@pytest.mark.parametrize(
    "write",
    [nothing_has_a_hash, its_template_has_it, one_machine_has_it, all_machines_have_it],
    ids=lambda write: write.__name__,
)
@pytest.mark.parametrize("rolling_on", [False, True], ids=["at rest", "in a rollout"])
def test_an_adopted_set_is_labelled_to_the_end(
    write: Callable[[LeftSet], None], *, rolling_on: bool
) -> None:
    left = LeftFleet(replicas=3, strategy=rolling(1, 1), surge=1)
    adopted = left.add_set("a", 3)
    adopted.annotations.clear()
    write(adopted)
    if rolling_on:
        left.want("b")

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("b" if rolling_on else "a")
        assert seen.made == (3 if rolling_on else 0)
        assert len(seen.lost) == seen.made
        assert seen.witness.most <= 4
        assert seen.witness.fewest_serving >= 2

    take_over(left, scenario)


# ---- the autoscaler's choices --------------------------------------------------------------------


def chosen(machine: LeftMachine) -> None:
    machine.annotations.update({PRIORITY: "1", MARKED: ago(minutes=1)})


def listed(left: LeftFleet, *, legacy: bool = False) -> LeftMachine:
    one = left.machines[1]
    left.annotations[TRIGGER] = one.name if legacy else f"{one.name}~{ago(minutes=1)}"
    left.annotations[CHANGED] = ago(minutes=1)
    left.spec["replicas"] = 2
    left.deployment["metadata"]["generation"] += 1
    return one


def a_list_of_names(left: LeftFleet) -> None:
    listed(left, legacy=True)


def a_list_of_names_and_no_time(left: LeftFleet) -> None:
    listed(left, legacy=True)
    del left.annotations[CHANGED]


def a_list_with_times(left: LeftFleet) -> None:
    listed(left)


def the_machine_is_marked(left: LeftFleet) -> None:
    chosen(listed(left))


def the_set_is_smaller(left: LeftFleet) -> None:
    the_machine_is_marked(left)
    left.sets[0].scaled(2)
    scaled_for(left.sets[0], 2)


def the_set_knows_when(left: LeftFleet) -> None:
    the_set_is_smaller(left)
    left.sets[0].annotations[CHANGED] = ago(minutes=1)


def the_machine_leaves(left: LeftFleet) -> None:
    the_set_knows_when(left)
    left.machines[1].deleted("Initiate node drain")


@pytest.mark.parametrize(
    "write",
    [
        a_list_of_names,
        a_list_of_names_and_no_time,
        a_list_with_times,
        the_machine_is_marked,
        the_set_is_smaller,
        the_set_knows_when,
        the_machine_leaves,
    ],
    ids=lambda write: write.__name__,
)
def test_the_machine_goes_that_the_autoscaler_chose(write: Callable[[LeftFleet], None]) -> None:
    left = LeftFleet(replicas=3, strategy=rolling(1, 1), surge=1)
    left.complete(left.add_set("a", 3))
    write(left)
    one = left.machines[1]

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("a")
        assert seen.lost == {one.uid}
        assert seen.made == 0
        assert TRIGGER not in seen.deployment["metadata"]["annotations"]

    take_over(left, scenario)


# ---- too many, too few ---------------------------------------------------------------------------


@pytest.mark.parametrize("extra", [1, 2])
def test_machines_made_twice_from_a_stale_cache_are_the_only_ones_to_go(extra: int) -> None:
    left = LeftFleet(replicas=3, strategy=rolling(1, 1), surge=1)
    only = left.add_set("a", 3)
    for _ in range(extra):
        left.add_new_machine(only)
    left.complete(only)
    running = {m.uid for m in left.machines[:3]}

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("a")
        assert not seen.lost & running
        assert len(seen.lost) == extra
        assert seen.made == 0

    take_over(left, scenario)


def test_a_machine_whose_release_came_to_nothing_is_released_and_lives_on() -> None:
    """Its labels were changed; the original's patch left the owner, and counted it no more."""
    left = LeftFleet(replicas=3, strategy=rolling(1, 1), surge=1)
    only = left.add_set("a", 3, machines=4)
    one = left.machines[1]
    one.labels["name"] = "under-inspection"
    left.complete(only)

    async def scenario(seen: HandedOver) -> None:
        await seen.sim.until(lambda: owners(seen, one) == [], within=60, what="released")
        await seen.sim.pass_time(120)
        assert (seen.made, seen.lost) == (0, set())
        assert seen.sim.running() == 4
        assert only.name in seen.sizes()
        assert only.size == seen.sets[0]["status"]["replicas"] == 3
        await seen.rests()

    take_over(left, scenario)


def owners(seen: HandedOver, one: LeftMachine) -> list[object]:
    (found,) = [m for m in seen.machines if m["metadata"]["uid"] == one.uid]
    references: list[object] = found["metadata"].get("ownerReferences") or []
    return references


# ---- preservation --------------------------------------------------------------------------------


def failed(left: LeftFleet, count: int) -> None:
    for machine in left.machines[:count]:
        text = f"Machine {machine.name} health checks failing since 20s"
        machine.set_phase("Failed", "HealthCheck", "Failed", text)


def nothing_is_asked(left: LeftFleet) -> None:
    """Two failed just now."""


def one_is_asked_for_and_not_counted(left: LeftFleet) -> None:
    left.machines[0].annotations[PRESERVE] = "auto-preserved"


def one_is_counted(left: LeftFleet) -> None:
    one_is_asked_for_and_not_counted(left)
    left.sets[0].document["status"]["autoPreserveFailedMachineCount"] = 1


def one_is_preserved(left: LeftFleet) -> None:
    one_is_counted(left)
    status = left.machines[0].document["status"]["currentStatus"]
    status["preserveExpiryTime"] = ago(hours=-48)


@pytest.mark.parametrize(
    "write",
    [nothing_is_asked, one_is_asked_for_and_not_counted, one_is_counted, one_is_preserved],
    ids=lambda write: write.__name__,
)
def test_one_of_two_failed_machines_is_kept(write: Callable[[LeftFleet], None]) -> None:
    left = LeftFleet(replicas=4, strategy=rolling(1, 1), surge=1)
    left.spec["autoPreserveFailedMachineMax"] = 1
    only = left.add_set("a", 4)
    only.spec["autoPreserveFailedMachineMax"] = 1
    failed(left, 2)
    for machine in left.machines[:2]:
        machine.has_vm = False  # or its kubelet would report that it is well
        machine.its_node["status"]["conditions"][0]["status"] = "Unknown"
    only.report()
    left.complete(only)
    write(left)
    chosen_already = write is not nothing_is_asked
    kept = left.machines[0].uid

    async def scenario(seen: HandedOver) -> None:
        await seen.sim.until(lambda: seen.sim.running() == 3, within=300)
        await seen.sim.pass_time(120)
        assert seen.made == 1
        assert len(seen.lost) == 1
        assert not (chosen_already and kept in seen.lost)
        assert seen.misread == set()
        (status,) = [s["status"] for s in seen.sets]
        assert status["autoPreserveFailedMachineCount"] == 1

    take_over(left, scenario)
