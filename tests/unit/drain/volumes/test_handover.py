from __future__ import annotations

from datetime import timedelta

from mcm.drain.volumes import Handover, Stage
from tests.unit.drain.volumes.small_cluster import CSI, START, THERE, SmallCluster


def at(seconds: float) -> object:
    return START + timedelta(seconds=seconds)


def detached(cluster: SmallCluster, name: str = "db-0") -> Handover:
    """A handover whose volume left the node the moment its pod ended."""
    pod = cluster.stateful(name)
    handover = cluster.ask(pod)
    cluster.end(pod)
    cluster.detach(f"pv-data-{name}")
    return cluster.look(handover, after=1)


def test_a_handover_from_its_first_stage_to_its_last() -> None:
    cluster = SmallCluster()
    pod = cluster.stateful("db-0")
    cluster.attached = cluster.in_use = {f"kubernetes.io/csi/{CSI}^h-data-db-0"}
    handover = cluster.ask(pod)
    assert handover.stage is Stage.ASKED
    assert handover.reason == "awaiting the pod to end"
    assert handover.until == at(30 + 120)

    cluster.end(pod)
    cluster.successor(pod, node=THERE)
    handover = cluster.look(handover, after=5)
    assert (handover.stage, handover.since) == (Stage.GONE, at(5))
    assert handover.until == at(30 + 120), "the limit counts from the accepted eviction"
    assert handover.reason == "awaiting volume pv-data-db-0 to be detached from node node-a"

    cluster.in_use = set()
    cluster.attach("pv-data-db-0", leaving=True)
    assert cluster.look(handover, after=1).stage is Stage.GONE, "a deletion is no detachment yet"
    cluster.detach("pv-data-db-0")
    assert cluster.look(handover, after=1).stage is Stage.GONE, "the node's status says attached"
    cluster.attached = set()
    handover = cluster.look(handover, after=1)
    assert (handover.stage, handover.since, handover.detached_at) == (Stage.DETACHED, at(8), at(8))
    assert handover.until == at(8 + 90)
    assert handover.reason == (
        "awaiting volume pv-data-db-0 to be attached for default/db-0 on node node-b"
    )

    cluster.attach("pv-data-db-0", THERE, attached=False)
    assert cluster.look(handover, after=1).stage is Stage.DETACHED
    cluster.attach("pv-data-db-0", THERE)
    handover = cluster.look(handover, after=1)
    assert (handover.stage, handover.since, handover.until) == (Stage.ATTACHED, at(10), None)
    assert handover.over
    assert handover.reason == "attached to node-b"
    assert not handover.late


def test_what_is_attached_elsewhere_already_is_over_at_once() -> None:
    cluster = SmallCluster()
    pod = cluster.stateful("db-0")
    handover = cluster.ask(pod)
    cluster.end(pod)
    cluster.detach("pv-data-db-0")
    cluster.attach("pv-data-db-0", THERE)
    handover = cluster.look(handover, after=7)
    assert handover.stage is Stage.ATTACHED
    assert (handover.gone_at, handover.detached_at, handover.since) == (at(7), at(7), at(7))
