"""Volumes attached though no pod uses them: their pods were gone before anybody saw."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mcm.drain.plan import carried_on
from mcm.drain.volumes import Handover, Stage, handover_json, read_handover
from tests.unit.drain.volumes.small_cluster import CSI, THERE, SmallCluster


def look(
    cluster: SmallCluster, *before: Handover, later: float = 0.0, let_go: tuple[str, ...] = ()
) -> list[Handover]:
    cluster.now += timedelta(seconds=later)
    here = [pod for pod in cluster.pods.values() if pod.spec.node_name != THERE]
    found = carried_on(before, here, cluster.view(), cluster.limits, cluster.now, let_go=let_go)
    return list(found)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("", [f"default/data-p {CSI}"]),
        ("a pod uses it", []),
        ("a finished pod used it", [f"default/data-p {CSI}"]),
        ("it is attached elsewhere", []),
        ("it is shared", []),
        ("it leaves", [f"default/data-p {CSI}"]),
        ("no claim", []),
        ("no volume", []),
        ("waited for", []),
    ],
)
def test_what_is_attached_without_a_pod_is_on_its_way(change: str, expected: list[str]) -> None:
    cluster = SmallCluster()
    modes = ("ReadWriteMany",) if change == "it is shared" else ("ReadWriteOnce",)
    volume = cluster.claim("data-p", modes=modes)
    node = THERE if change == "it is attached elsewhere" else "node-a"
    cluster.attach(volume, node, leaving=change == "it leaves")
    match change:
        case "a pod uses it":
            cluster.pod("p", "data-p")
        case "a finished pod used it":
            cluster.pod("p", "data-p", phase="Succeeded")
        case "no claim":
            del cluster.volumes[volume].spec["claimRef"]
        case "no volume":
            del cluster.volumes[volume]
    found = look(cluster, let_go=(volume,) if change == "waited for" else ())
    assert [f"{h.pod_key} {h.volumes[0].attacher}" for h in found] == expected
    assert {h.stage for h in found} <= {Stage.GONE}


def test_it_is_waited_for_to_be_attached_elsewhere() -> None:
    cluster = SmallCluster()
    volume = cluster.stateful_left("p")
    (found,) = look(cluster)
    cluster.detach(volume)
    cluster.pod("p", "data-p", node=THERE, phase="Pending")
    (found,) = look(cluster, read_handover(handover_json(found)), later=3)
    assert found.stage is Stage.DETACHED
    cluster.attach(volume, THERE)
    (found,) = look(cluster, found, later=3)
    assert found.stage is Stage.ATTACHED


def test_it_ends_with_the_limit_of_detaching() -> None:
    cluster = SmallCluster()
    cluster.stateful_left("p")
    (found,) = look(cluster)
    assert found.until == cluster.now + cluster.limits.detach
    (found,) = look(cluster, found, later=cluster.limits.detach.total_seconds())
    assert found.stage is Stage.SKIPPED and found.late


def test_a_pod_that_shows_late_is_no_handover() -> None:
    cluster = SmallCluster()
    cluster.stateful_left("p")
    (found,) = look(cluster)
    cluster.pod("p", "data-p")
    assert look(cluster, found, later=1) == []
