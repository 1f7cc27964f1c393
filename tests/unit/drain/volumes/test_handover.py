from __future__ import annotations

from datetime import timedelta

import pytest

from mcm.drain.request import Limits
from mcm.drain.volumes import Handover, Stage, opened
from tests.unit.drain.volumes.small_cluster import CSI, HERE, START, THERE, SmallCluster


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


# ---- limits --------------------------------------------------------------------------------------


def test_a_pod_that_does_not_end_is_waited_for_within_its_grace_and_the_detach_limit() -> None:
    cluster = SmallCluster()
    cluster.attach(cluster.claim("c"))
    handover = cluster.ask(cluster.pod("p", "c", grace=100))
    assert cluster.look(handover, after=219).stage is Stage.ASKED
    handover = cluster.look(handover, after=1)
    assert (handover.stage, handover.late, handover.blamed) == (Stage.SKIPPED, True, False)
    assert handover.reason == "waited too long for the pod to end"


def test_a_volume_that_is_not_detached_is_waited_for_no_longer_and_why_is_shown() -> None:
    cluster = SmallCluster()
    pod = cluster.stateful("db-0")
    handover = cluster.ask(pod)
    cluster.end(pod)
    cluster.attach("pv-data-db-0", error="volume is busy")
    handover = cluster.look(handover, after=149)
    assert handover.stage is Stage.GONE
    assert handover.reason == (
        "awaiting volume pv-data-db-0 to be detached from node node-a; the attacher says: "
        "volume is busy"
    )
    handover = cluster.look(handover, after=1)
    assert (handover.stage, handover.late, handover.blamed) == (Stage.SKIPPED, True, True)
    assert handover.reason == (
        "waited too long for volume pv-data-db-0 to be detached from node node-a; "
        "the attacher says: volume is busy"
    )


def test_a_reattachment_is_waited_for_within_its_limit_from_the_detachment() -> None:
    cluster = SmallCluster()
    handover = detached(cluster)
    cluster.pod("db-0", "data-db-0", uid="next", node=THERE, phase="Pending")
    cluster.attach("pv-data-db-0", THERE, attached=False, error="quota")
    handover = cluster.look(handover, after=89)
    assert handover.stage is Stage.DETACHED
    assert handover.error == "quota"
    handover = cluster.look(handover, after=1)
    assert (handover.stage, handover.late, handover.blamed) == (Stage.SKIPPED, True, True)
    assert "the attacher says: quota" in handover.reason


def test_a_limit_of_zero_means_that_nothing_is_waited_for() -> None:
    cluster = SmallCluster()
    cluster.limits = Limits(reattach=timedelta())
    handover = detached(cluster)
    assert (handover.stage, handover.late) == (Stage.SKIPPED, False)
    assert handover.reason == "attachments elsewhere are not waited for"


def test_a_changed_limit_acts_on_what_is_under_way() -> None:
    cluster = SmallCluster()
    handover = cluster.ask(cluster.stateful("db-0"))
    cluster.limits = Limits(detach=timedelta(seconds=1))
    assert cluster.look(handover, after=31).stage is Stage.SKIPPED


@pytest.mark.parametrize("stage", [Stage.ASKED, Stage.GONE, Stage.DETACHED])
def test_of_what_cannot_be_observed_nothing_is_concluded_but_that_time_is_up(stage: Stage) -> None:
    cluster = SmallCluster()
    pod = cluster.stateful("db-0")
    handover = cluster.ask(pod)
    if stage is not Stage.ASKED:
        cluster.end(pod)
        handover = cluster.look(handover)
    if stage is Stage.DETACHED:
        cluster.detach("pv-data-db-0")
        handover = cluster.look(handover)
    assert handover.stage is stage
    cluster.pods, cluster.attachments = {}, {}
    cluster.attach("pv-data-db-0", THERE)
    cluster.stale = "attachments were not heard of for 2m0s"
    limit = 90 if stage is Stage.DETACHED else 150
    blind = cluster.look(handover, after=limit - 1)
    assert blind.stage is stage
    assert "attachments were not heard of for 2m0s" in blind.reason
    assert cluster.look(handover, after=1).stage is Stage.SKIPPED


def test_a_clock_that_is_set_back_makes_no_limit_longer() -> None:
    cluster = SmallCluster()
    pod = cluster.stateful("db-0")
    handover = cluster.ask(pod)
    handover = cluster.look(handover, after=-3600)
    assert handover.until == cluster.now + timedelta(seconds=150)


def test_a_pod_that_somebody_else_asked_has_what_is_left_of_its_time() -> None:
    cluster = SmallCluster()
    cluster.attach(cluster.claim("c"))
    ends = START + timedelta(seconds=10)
    handover = cluster.ask(cluster.pod("p", "c", grace=30, ends=ends))
    assert handover.asked_at == at(-20)
    assert handover.until == at(10 + 120)


# ---- volumes shared on the node ------------------------------------------------------------------


def test_a_volume_that_two_pods_share_has_left_when_both_are_gone() -> None:
    cluster = SmallCluster()
    cluster.attach(cluster.claim("c"))
    first, second = (cluster.pod(name, "c", owner="ReplicaSet") for name in ("a", "b"))
    handover = cluster.ask(first)
    cluster.end(first)
    handover = cluster.look(handover, after=1)
    assert handover.stage is Stage.GONE
    assert handover.reason == "awaiting volume pv-c, which pod default/b uses too"
    cluster.end(second)
    cluster.detach("pv-c")
    assert cluster.look(handover, after=1).stage is Stage.DETACHED


def test_a_pod_that_finishes_has_left_its_volumes() -> None:
    cluster = SmallCluster()
    pod = cluster.stateful("db-0")
    handover = cluster.ask(pod)
    cluster.pod("db-0", "data-db-0", phase="Succeeded")
    assert cluster.look(handover, after=1).stage is Stage.GONE


def test_pods_without_exclusive_volumes_open_no_handover() -> None:
    cluster = SmallCluster()
    cluster.attach(cluster.claim("c", modes=("ReadWriteMany",)))
    assert opened(cluster.pod("p", "c"), cluster.view(), cluster.now) is None
    finished = cluster.stateful("db-0")
    finished = cluster.pod("db-0", "data-db-0", phase="Failed")
    assert opened(finished, cluster.view(), cluster.now) is None


# ---- who comes next ------------------------------------------------------------------------------


def test_a_successor_that_does_not_appear_is_waited_for_fifteen_seconds() -> None:
    cluster = SmallCluster()
    handover = detached(cluster)
    assert handover.stage is Stage.DETACHED
    assert handover.until == at(1 + 15), "the next look, though nothing happens"
    handover = cluster.look(handover, after=15)
    assert (handover.stage, handover.late) == (Stage.SKIPPED, False)
    assert handover.reason == "no other pod uses claim default/data-db-0"


@pytest.mark.parametrize(("owner", "reason"), [("", "nothing"), ("Job", "nothing")])
def test_bare_pods_and_pods_of_jobs_have_no_successor(owner: str, reason: str) -> None:
    cluster = SmallCluster()
    cluster.attach(cluster.claim("c"))
    pod = cluster.pod("p", "c", owner=owner)
    handover = cluster.ask(pod)
    cluster.end(pod)
    cluster.detach("pv-c")
    handover = cluster.look(handover, after=1)
    assert (handover.stage, handover.reason) == (Stage.SKIPPED, f"{reason} replaces the pod")


@pytest.mark.parametrize(
    ("successor", "stage", "reason"),
    [
        ({}, Stage.DETACHED, "for default/db-0, which has no Node yet"),
        ({"node": THERE}, Stage.DETACHED, "for default/db-0 on node node-b"),
        ({"node": THERE, "phase": "Running"}, Stage.ATTACHED, "attached to node-b"),
        (
            {"unscheduled": "Unschedulable"},
            Stage.SKIPPED,
            "its successor default/db-0 finds no Node",
        ),
        ({"unscheduled": "SchedulingGated"}, Stage.SKIPPED, "finds no Node"),
        ({"unscheduled": "Other"}, Stage.DETACHED, "which has no Node yet"),
        ({"node": THERE, "ends": START}, Stage.SKIPPED, "its successor default/db-0 is ending"),
        ({"node": THERE, "phase": "Succeeded"}, Stage.DETACHED, "a pod that uses claim"),
    ],
)
def test_what_is_expected_of_a_successor(
    successor: dict[str, str], stage: Stage, reason: str
) -> None:
    cluster = SmallCluster()
    pod = cluster.stateful("db-0")
    handover = cluster.ask(pod)
    cluster.end(pod)
    cluster.detach("pv-data-db-0")
    cluster.successor(pod, **successor)
    handover = cluster.look(handover, after=1)
    assert handover.stage is stage
    assert reason in handover.reason


def test_one_successor_that_can_attach_it_is_enough() -> None:
    cluster = SmallCluster()
    cluster.attach(cluster.claim("c"))
    pod = cluster.pod("p", "c", owner="ReplicaSet")
    handover = cluster.ask(pod)
    cluster.end(pod)
    cluster.detach("pv-c")
    cluster.pod("a", "c", node="", phase="Pending", unscheduled="Unschedulable")
    cluster.pod("b", "c", node=THERE, phase="Pending")
    assert "default/b on node node-b" in cluster.look(handover).reason


def test_a_successor_on_the_same_node_keeps_the_volume_there_until_the_limit() -> None:
    cluster = SmallCluster()
    pod = cluster.stateful("db-0")
    handover = cluster.ask(pod)
    cluster.end(pod)
    cluster.successor(pod, node=HERE)
    handover = cluster.look(handover, after=1)
    assert handover.stage is Stage.GONE
    assert "which pod default/db-0 uses too" in handover.reason
    handover = cluster.look(handover, after=149)
    assert (handover.late, handover.blamed) == (True, False)


@pytest.mark.parametrize("what", ["claim", "volume"])
def test_what_is_deleted_is_attached_nowhere(what: str) -> None:
    cluster = SmallCluster()
    handover = detached(cluster)
    if what == "claim":
        cluster.claims.clear()
    else:
        cluster.volumes.clear()
    handover = cluster.look(handover, after=1)
    assert handover.stage is Stage.SKIPPED
    assert handover.reason.endswith("is deleted")


def test_an_ephemeral_claim_goes_with_its_pod() -> None:
    cluster = SmallCluster()
    cluster.attach(cluster.claim("p-cache", owner_uid="uid-p"))
    pod = cluster.pod("p", ephemeral=("cache",))
    handover = cluster.ask(pod)
    cluster.end(pod)
    cluster.detach("pv-p-cache")
    handover = cluster.look(handover, after=1)
    assert handover.reason == "claim default/p-cache went with its pod"


def test_a_volume_that_has_a_future_is_waited_for_beside_one_that_has_none() -> None:
    cluster = SmallCluster()
    cluster.attach(cluster.claim("p-cache", owner_uid="uid-p"))
    cluster.attach(cluster.claim("c"))
    pod = cluster.pod("p", "c", ephemeral=("cache",))
    handover = cluster.ask(pod)
    cluster.end(pod)
    cluster.attachments.clear()
    cluster.successor(pod, node=THERE)
    handover = cluster.look(handover, after=1)
    assert handover.stage is Stage.DETACHED
    assert handover.reason == "awaiting volume pv-c to be attached for default/p on node node-b"
    cluster.attach("pv-c", THERE)
    assert cluster.look(handover, after=1).stage is Stage.ATTACHED


def test_an_attachment_elsewhere_that_is_ending_is_none() -> None:
    cluster = SmallCluster()
    handover = detached(cluster)
    cluster.attach("pv-data-db-0", THERE, leaving=True)
    assert cluster.look(handover, after=1).stage is Stage.DETACHED
    cluster.attach("pv-data-db-0", THERE)
    assert cluster.look(handover).stage is Stage.ATTACHED
