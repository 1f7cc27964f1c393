"""Whatever happens to pods, attachments and mirrors: handovers go forward and end, lanes hold."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mcm.api.core import Pod
from mcm.drain.volumes import Handover, Lanes, Stage, handover_json, opened, read_handover
from tests.thoroughness import THOROUGH
from tests.unit.drain.volumes.small_cluster import HERE, THERE, SmallCluster

ORDER = [Stage.ASKED, Stage.GONE, Stage.DETACHED, Stage.ATTACHED]
ATTACHERS = ("x", "y", "z")
WIDTH = 2
CLAIMS = st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True)


def rank(handover: Handover) -> int:
    return len(ORDER) if handover.stage is Stage.SKIPPED else ORDER.index(handover.stage)


class DrainOfVolumes(RuleBasedStateMachine):
    """A drain asks whom its lanes admit; the cluster does what it likes, and mirrors lag."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = SmallCluster()
        self.pods: list[Pod] = []
        self.handovers: dict[str, Handover] = {}

    @initialize(claims=st.lists(CLAIMS, min_size=1, max_size=6))
    def fill(self, claims: list[list[int]]) -> None:
        for number in range(6):
            volume = self.cluster.claim(f"c{number}")
            self.cluster.attach(volume, attacher=ATTACHERS[number % len(ATTACHERS)])
        for number, used in enumerate(claims):
            pod = self.cluster.pod(f"p{number}", *(f"c{claim}" for claim in used))
            self.pods.append(pod)

    @rule()
    def one_pass(self) -> None:
        view = self.cluster.view()
        before = dict(self.handovers)
        for uid, handover in before.items():
            after = self.cluster.look(handover)
            assert rank(after) >= rank(handover)
            assert after.over or after.until is not None
            assert after.reason
            self.handovers[uid] = after
        lanes = Lanes(self.handovers.values(), view, lambda _: WIDTH)
        for pod in self.pods:
            uid, holdings = pod.metadata.uid, view.exclusive_of(pod)
            if uid in self.handovers or uid not in self.cluster.pods or not lanes.admits(holdings):
                continue
            lanes.take(holdings)
            if begun := opened(pod, view, self.cluster.now):
                self.handovers[uid] = begun
        assert all(lanes.held(attacher) <= WIDTH for attacher in ATTACHERS)

    @rule(number=st.integers(0, 5), successor=st.sampled_from(["", HERE, THERE]))
    def a_pod_ends(self, number: int, successor: str) -> None:
        if number < len(self.pods) and (pod := self.pods[number]).metadata.uid in self.handovers:
            self.cluster.pods.pop(pod.metadata.uid, None)
            self.cluster.successor(pod, node=successor)

    @rule(number=st.integers(0, 5))
    def a_volume_is_detached(self, number: int) -> None:
        self.cluster.attachments.pop((f"pv-c{number}", HERE), None)

    @rule(number=st.integers(0, 5), attached=st.booleans())
    def a_volume_is_attached_elsewhere(self, number: int, attached: bool) -> None:
        self.cluster.attach(f"pv-c{number}", THERE, attached=attached)

    @rule(number=st.integers(0, 5))
    def a_claim_is_deleted(self, number: int) -> None:
        self.cluster.claims.pop(f"c{number}", None)

    @rule(stale=st.booleans())
    def mirrors_lag_or_do_not(self, stale: bool) -> None:
        self.cluster.stale = "not heard from" if stale else ""

    @rule(seconds=st.sampled_from([1, 14, 16, 60, 89, 150]))
    def time_passes(self, seconds: int) -> None:
        self.cluster.now += timedelta(seconds=seconds)

    @rule()
    def the_process_ends(self) -> None:
        """What is recorded is all that the next one has: nothing of it goes back."""
        for uid, handover in self.handovers.items():
            read = read_handover(handover_json(handover))
            assert replace(
                handover, until=None, reason="", late=False, blamed=False, error=""
            ) == replace(read, until=None, reason="", late=False, blamed=False, error="")
            self.handovers[uid] = read

    @invariant()
    def the_reason_says_what_is_awaited_or_why_it_is_over(self) -> None:
        for handover in self.handovers.values():
            assert handover.over == (handover.stage in (Stage.ATTACHED, Stage.SKIPPED))

    def teardown(self) -> None:
        """Left alone, with nobody doing anything, every pod is asked and every handover ends."""
        longest = timedelta(seconds=30) + self.cluster.limits.detach + self.cluster.limits.reattach
        for _ in range(len(self.pods) + 1):
            self.one_pass()
            asked = dict(self.handovers)
            for _ in range(2):
                self.cluster.now += longest
                self.one_pass()
            assert all(self.handovers[uid].over for uid in asked)
        left = [pod for pod in self.pods if pod.metadata.uid in self.cluster.pods]
        view = self.cluster.view()
        assert all(p.metadata.uid in self.handovers for p in left if view.exclusive_of(p))


TestDrainOfVolumes = DrainOfVolumes.TestCase
TestDrainOfVolumes.settings = settings(
    max_examples=300 if THOROUGH else 40, stateful_step_count=40, deadline=None
)
