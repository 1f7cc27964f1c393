from __future__ import annotations

import msgspec

from mcm.api.core import Toleration
from mcm.sandbox.world.daemon_placement import LABEL_HASH, belongs_on, plan
from mcm.sandbox.world.kinds import Node, Pod, PodSpec
from tests.unit.world.manifests import bare_node, template, workload
from tests.unit.world.rig import Rig, at, on_rig

PATH = "/apis/apps/v1/namespaces/default/daemonsets/web"


def a_node(*taints: dict[str, str], zone: str = "") -> Node:
    raw = {**bare_node("n", zone=zone), "spec": {"taints": list(taints)}}
    return msgspec.convert(raw, Node)


def a_pod(name: str, node: str, *, revision: str = "1", ready: bool = True, **status: str) -> Pod:
    shown = {"conditions": [{"type": "Ready", "status": str(ready)}], **status}
    raw = {
        "metadata": {
            "name": name,
            "labels": {LABEL_HASH: revision},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"nodeName": node},
        "status": shown,
    }
    return msgspec.convert(raw, Pod)


def names(pods: tuple[Pod, ...]) -> list[str]:
    return [pod.metadata.name for pod in pods]


def test_daemons_ignore_the_state_of_a_node_but_not_what_it_is_reserved_for() -> None:
    cordoned = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    dead = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    reserved = {"key": "gpu", "effect": "NoSchedule"}
    assert belongs_on(a_node(cordoned, dead), PodSpec())
    assert not belongs_on(a_node(reserved), PodSpec())
    assert belongs_on(a_node(reserved), PodSpec(tolerations=(Toleration(operator="Exists"),)))
    assert not belongs_on(a_node(zone="1"), PodSpec(node_selector={"zone": "2"}))


def test_every_node_gets_one_pod_and_no_other_node_any() -> None:
    pods = [a_pod("p", "a"), a_pod("twin", "a"), a_pod("stray", "x")]
    found = plan(["a", "b"], pods, revision="1", rolls=True)
    assert found.missing == ("b",)
    assert sorted(names(found.surplus)) == ["stray", "twin"]


def test_a_pod_that_has_failed_makes_room_for_another() -> None:
    failed = a_pod("p", "a", phase="Failed")
    found = plan(["a"], [failed], revision="1", rolls=True)
    assert (found.missing, names(found.surplus)) == ((), ["p"])


def test_outdated_pods_go_one_by_one_while_all_others_serve() -> None:
    old = [a_pod("p", "a"), a_pod("q", "b")]
    assert names(plan(["a", "b"], old, revision="2", rolls=True).surplus) == ["p"]
    assert plan(["a", "b"], old, revision="2", rolls=False).surplus == ()
    assert plan(["a", "b", "c"], old, revision="2", rolls=True).surplus == ()
    starting = [a_pod("n", "a", revision="2", ready=False), a_pod("q", "b")]
    assert plan(["a", "b"], starting, revision="2", rolls=True).surplus == ()
    broken = [a_pod("p", "a"), a_pod("q", "b", ready=False)]
    assert names(plan(["a", "b"], broken, revision="2", rolls=True).surplus) == ["q"]


# In a running cluster ---------------------------------------------------------------------------


def test_a_daemon_runs_on_every_node_cordoned_or_not_and_on_those_that_come() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a", "b")
        await rig.until(lambda: rig.ready("a", "b"))
        await rig.cordon("a")
        await rig.create(workload("DaemonSet"))
        await rig.until(lambda: len(rig.running()) == 2)
        await rig.boot("c")
        await rig.until(lambda: len(rig.running()) == 3)
        assert sorted(rig.placed().values()) == ["a", "b", "c"]
        await rig.pass_time(1)
        status = at(rig.get("daemonsets", "web", "apps"), "status")
        assert status == {
            "desiredNumberScheduled": 3,
            "currentNumberScheduled": 3,
            "updatedNumberScheduled": 3,
            "numberReady": 3,
            "numberAvailable": 3,
            "numberUnavailable": 0,
            "numberMisscheduled": 0,
            "observedGeneration": 1,
        }
        rig.server.requests.reset()
        await rig.pass_time(300)
        assert rig.server.requests.writes(agent="daemonset-controller") == 0

    on_rig(scenario)


def test_a_new_template_replaces_daemons_one_at_a_time() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a", "b", "c")
        await rig.create(workload("DaemonSet"))
        await rig.until(lambda: len(rig.running()) == 3)
        old = set(rig.names("pods"))
        await rig.patch(PATH, {"spec": {"template": template(image="app:2")}})
        while old & set(rig.names("pods")) or len(rig.running()) < 3:
            assert len(rig.running()) >= 2
            await rig.pass_time(0.1)
            assert rig.now < 60
        await rig.delete(PATH)
        await rig.until(lambda: rig.names("pods") == [])

    on_rig(scenario)


def test_daemons_of_a_node_that_is_gone_go_as_well() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a", "b")
        await rig.create(workload("DaemonSet"))
        await rig.until(lambda: len(rig.running()) == 2)
        await rig.delete(
            "/apis/simulation.machine.sapcloud.io/v1alpha1/namespaces/default/virtualmachines/a"
        )
        await rig.delete("/api/v1/nodes/a")
        await rig.until(lambda: list(rig.placed().values()) == ["b"])

    on_rig(scenario)


def test_a_template_nobody_can_read_disturbs_no_other_daemon() -> None:
    async def scenario(rig: Rig) -> None:
        await rig.boot("a")
        await rig.create(workload("DaemonSet", "odd", template={"spec": {"tolerations": "all"}}))
        await rig.create(workload("DaemonSet"))
        await rig.until(lambda: len(rig.running()) == 1)
        rig.server.requests.reset()
        await rig.pass_time(60)
        assert rig.server.requests.writes(agent="daemonset-controller") == 0

    on_rig(scenario)
