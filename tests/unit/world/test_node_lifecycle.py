from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mcm.api.core import NodeCondition, NodeSpec, Taint
from mcm.api.meta import ObjectMeta
from mcm.informers import Change
from mcm.sandbox.world.kinds import Node, NodeStatus
from mcm.sandbox.world.node_lifecycle import (
    kubelet_speaks,
    tainted,
    unknown_conditions,
    wanted_taints,
)
from tests.unit.world.rig import GRACE, Rig, at, conditions, objects, on_rig

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
UNREACHABLE = {"unreachable:NoSchedule", "unreachable:NoExecute"}
NOT_READY = {"not-ready:NoSchedule", "not-ready:NoExecute"}


def node(ready: str = "", *, unschedulable: bool = False, taints: tuple[Taint, ...] = ()) -> Node:
    shown = (NodeCondition(type="Ready", status=ready),) if ready else ()
    return Node(
        metadata=ObjectMeta(name="n"),
        spec=NodeSpec(unschedulable=unschedulable, taints=taints),
        status=NodeStatus(conditions=shown),
    )


def taint(key: str, effect: str, at: datetime | None = None) -> Taint:
    return Taint(key=f"node.kubernetes.io/{key}", effect=effect, time_added=at)


@pytest.mark.parametrize(
    ("ready", "unschedulable", "wanted"),
    [
        ("True", False, set()),
        ("True", True, {"unschedulable:NoSchedule"}),
        ("False", False, NOT_READY),
        ("", False, NOT_READY),
        ("Unknown", False, UNREACHABLE),
        ("Unknown", True, UNREACHABLE | {"unschedulable:NoSchedule"}),
    ],
)
def test_the_state_of_a_node_calls_for_taints(
    ready: str, unschedulable: bool, wanted: set[str]
) -> None:
    found = wanted_taints(node(ready, unschedulable=unschedulable))
    assert {f"{k.removeprefix('node.kubernetes.io/')}:{e}" for k, e in found} == wanted


def test_taints_of_others_and_the_times_of_ours_stay() -> None:
    theirs = Taint(key="dedicated", effect="NoExecute", value="x")
    earlier = NOW - timedelta(hours=1)
    ours = taint("unreachable", "NoExecute", earlier)
    stale = taint("not-ready", "NoSchedule")
    found = tainted(node("Unknown", taints=(theirs, stale, ours)), NOW)
    assert found == (theirs, ours, taint("unreachable", "NoSchedule"))


def test_only_a_taint_that_evicts_says_since_when() -> None:
    found = tainted(node("False"), NOW + timedelta(microseconds=5))
    assert found == (
        taint("not-ready", "NoExecute", NOW),
        taint("not-ready", "NoSchedule"),
    )


def test_a_node_in_order_keeps_its_taints_as_they_are() -> None:
    theirs = Taint(key="dedicated", effect="NoSchedule")
    assert tainted(node("True", taints=(theirs,)), NOW) == (theirs,)


def test_a_kubelet_that_stopped_is_told_from_one_that_never_spoke() -> None:
    found = {c["type"]: c["reason"] for c in unknown_conditions(node("True"), "now")}
    assert found == {
        "Ready": "NodeStatusUnknown",
        "MemoryPressure": "NodeStatusNeverUpdated",
        "DiskPressure": "NodeStatusNeverUpdated",
        "PIDPressure": "NodeStatusNeverUpdated",
    }


# In a running cluster ---------------------------------------------------------------------------


def test_a_joining_node_is_tainted_until_it_is_ready() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.until(lambda: bool(rig.find("nodes", "a")) and rig.taints("a") == NOT_READY)
        await rig.until(lambda: rig.ready("a") and rig.taints("a") == set())

    on_rig(scenario)


def test_a_silent_node_becomes_unknown_and_unreachable_and_recovers() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.until(lambda: rig.ready("a"))
        await rig.patch_vm("a", powerState="Off")
        await rig.until(lambda: rig.condition("a") == "Unknown", within=GRACE + 1)
        await rig.pass_time(0.1)
        shown = conditions(rig.get("nodes", "a"))
        assert {kind: c["status"] for kind, c in shown.items()} == dict.fromkeys(
            ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"), "Unknown"
        )
        assert shown["Ready"]["reason"] == "NodeStatusUnknown"
        assert shown["Ready"]["message"] == "Kubelet stopped posting node status."
        assert rig.taints("a") == UNREACHABLE
        evicting = objects(rig.get("nodes", "a"), "spec", "taints")[0]
        assert (evicting["effect"], bool(evicting["timeAdded"])) == ("NoExecute", True)
        await rig.patch_vm("a", powerState="On")
        await rig.until(lambda: rig.ready("a") and rig.taints("a") == set())

    on_rig(scenario)


def test_a_cordoned_node_is_tainted_and_an_uncordoned_one_is_not() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.until(lambda: rig.ready("a") and rig.taints("a") == set())
        await rig.cordon("a")
        await rig.until(lambda: rig.taints("a") == {"unschedulable:NoSchedule"}, within=1)
        await rig.patch("/api/v1/nodes/a", {"spec": {"unschedulable": None}})
        await rig.until(lambda: rig.taints("a") == set(), within=1)

    on_rig(scenario)


def test_a_node_that_no_kubelet_ever_spoke_for_is_unknown_after_its_grace() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "made"}})
        waited = await rig.until(lambda: rig.condition("made") == "Unknown", within=GRACE + 1)
        assert waited == pytest.approx(GRACE, abs=0.1)
        shown = conditions(rig.get("nodes", "made"))
        assert shown["Ready"]["reason"] == "NodeStatusNeverUpdated"

    on_rig(scenario)


def test_a_restarted_world_gives_every_node_its_grace_again() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "made"}})
        await rig.pass_time(1000)
        _ = rig.start(rig.new_world().run())
        waited = await rig.until(lambda: rig.condition("made") == "Unknown", within=GRACE + 1)
        assert waited == pytest.approx(GRACE, abs=0.1)

    on_rig(scenario, with_world=False)


def test_a_dead_node_costs_two_writes_and_no_more() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.until(lambda: rig.ready("a") and rig.taints("a") == set())
        await rig.patch_vm("a", powerState="Off")
        rig.server.requests.reset()
        await rig.pass_time(600)
        assert rig.server.requests.writes(agent="node-lifecycle") == 2
        assert at(rig.get("nodes", "a"), "spec", "taints")

    on_rig(scenario)


def test_a_kubelet_that_posts_again_is_heard_of_before_it_renews_its_lease() -> None:
    """Else its Node would be called silent again at once, and the two would go on in circles."""
    silent = node("Unknown")
    posted = node("True")
    assert kubelet_speaks(Change(silent, posted))
    assert not kubelet_speaks(Change(posted, silent))
    assert not kubelet_speaks(Change(posted, posted))
    assert not kubelet_speaks(Change(None, posted))
    assert not kubelet_speaks(Change(posted, None))
