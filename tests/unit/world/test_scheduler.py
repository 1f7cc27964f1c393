from __future__ import annotations

from collections import Counter

from tests.unit.world.manifests import bare_node, pod
from tests.unit.world.rig import Rig, conditions, on_rig


def test_pods_are_spread_over_the_ready_nodes_and_run() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a", "b", "c")
        await rig.until(lambda: rig.ready("a", "b", "c") and not rig.taints("c"))
        await rig.create(*(pod(f"p{i}") for i in range(9)))
        await rig.until(lambda: len(rig.running()) == 9, within=3)
        assert Counter(rig.placed().values()) == {"a": 3, "b": 3, "c": 3}

    on_rig(scenario)


def test_a_pod_that_fits_nowhere_is_told_so_once_and_placed_when_a_node_comes() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.create(pod("p"))
        await rig.pass_time(1)
        told = conditions(rig.get("pods", "p"))["PodScheduled"]
        assert (told["status"], told["reason"]) == ("False", "Unschedulable")
        await rig.create(bare_node("full", pods=0))
        await rig.pass_time(30)
        assert rig.server.requests.writes(resource="pods", agent="scheduler") == 1
        await rig.boot("a")
        await rig.until(lambda: rig.running() == ["p"])
        assert rig.placed() == {"p": "a"}
        assert conditions(rig.get("pods", "p"))["PodScheduled"]["status"] == "True"

    on_rig(scenario)


def test_a_cordoned_node_gets_no_pods_until_it_is_uncordoned() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.until(lambda: rig.ready("a"))
        await rig.cordon("a")
        await rig.create(pod("p"))
        await rig.pass_time(10)
        assert rig.placed() == {"p": ""}
        await rig.patch("/api/v1/nodes/a", {"spec": {"unschedulable": None}})
        await rig.until(lambda: rig.running() == ["p"])

    on_rig(scenario)


def test_room_that_a_pod_leaves_is_given_to_the_next() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a", capacity={"pods": "1"})
        await rig.until(lambda: rig.ready("a") and not rig.taints("a"))
        await rig.create(pod("first"))
        await rig.until(lambda: rig.running() == ["first"])
        await rig.create(pod("second"))
        await rig.pass_time(5)
        assert rig.placed()["second"] == ""
        await rig.delete("/api/v1/namespaces/default/pods/first")
        await rig.until(lambda: rig.running() == ["second"])

    on_rig(scenario)


def test_a_burst_never_overfills_a_node() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a", capacity={"pods": "3"})
        await rig.until(lambda: rig.ready("a") and not rig.taints("a"))
        await rig.create(*(pod(f"p{i}") for i in range(10)))
        await rig.pass_time(5)
        assert Counter(rig.placed().values()) == {"a": 3, "": 7}

    on_rig(scenario)


def test_pods_of_other_schedulers_are_left_to_them() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.until(lambda: rig.ready("a") and not rig.taints("a"))
        await rig.create(pod("p", schedulerName="mine"))
        await rig.pass_time(5)
        assert rig.placed() == {"p": ""}
        assert conditions(rig.get("pods", "p")) == {}

    on_rig(scenario)


def test_a_pod_deleted_before_it_is_placed_is_forgotten() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.create(pod("p"))
        await rig.pass_time(1)
        await rig.delete("/api/v1/namespaces/default/pods/p")
        assert rig.names("pods") == []
        await rig.boot("a")
        await rig.until(lambda: rig.ready("a"))
        await rig.create(pod("p"))
        await rig.until(lambda: rig.running() == ["p"])

    on_rig(scenario)
