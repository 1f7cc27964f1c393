from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Pod, PodCondition, PodSpec, PodStatus
from mcm.api.meta import ObjectMeta
from mcm.api.workloads import Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdate
from mcm.drain.selection import SurgeKind
from mcm.drain.surge.decision import (
    LONGEST,
    SLACK,
    Awaited,
    Begin,
    Go,
    Settlement,
    decide,
    follow,
    settle,
    why_not,
)
from mcm.drain.surge.marker import Marker, begin_patch, end_patch, is_marked, marker_of
from tests.unit.drain.pods import NOW, pod

DEADLINE = NOW + timedelta(hours=2)
OLD = pod("old")
SCALE, RESTART = SurgeKind.SCALE, SurgeKind.RESTART


def deployment(
    *,
    replicas: int = 1,
    marker: Marker | None = None,
    annotations: dict[str, str] | None = None,
    surge: int | str | None = None,
    unavailable: int | str | None = None,
    strategy: str = "RollingUpdate",
    paused: bool = False,
    deleted: bool = False,
) -> Deployment:
    meta = ObjectMeta(
        name="web",
        namespace="default",
        uid="u",
        resource_version="7",
        annotations=annotations or {},
        deletion_timestamp=NOW if deleted else None,
    )
    rolling = RollingUpdate(max_surge=surge, max_unavailable=unavailable)
    spec = DeploymentSpec(
        replicas=replicas,
        paused=paused,
        strategy=DeploymentStrategy(type=strategy, rolling_update=rolling),
    )
    found = Deployment(metadata=meta, spec=spec)
    if marker is None:
        return found
    metadata = begin_patch(found, marker)["metadata"]
    assert isinstance(metadata, dict)
    return Deployment(
        metadata=ObjectMeta(
            name="web",
            namespace="default",
            uid="u",
            resource_version="8",
            labels=metadata["labels"],
            annotations=metadata["annotations"],
        ),
        spec=spec,
    )


def marker(
    kind: SurgeKind = SCALE, *, uid: str = "uid-old", replicas: int = 1, minutes: float = 10
) -> Marker:
    return Marker(uid, "old", kind, NOW, NOW + timedelta(minutes=minutes), replicas)


def other(
    name: str = "new", *, node: str = "elsewhere", ready: bool = True, deleted: bool = False
) -> Pod:
    conditions = (PodCondition(type="Ready", status="True" if ready else "False"),)
    return Pod(
        metadata=ObjectMeta(
            name=name, namespace="default", uid=name, deletion_timestamp=NOW if deleted else None
        ),
        spec=PodSpec(node_name=node),
        status=PodStatus(phase="Running", conditions=conditions),
    )


@pytest.mark.parametrize(
    ("subject", "kind", "autoscaled", "word"),
    [
        (deployment(), SCALE, False, ""),
        (deployment(), RESTART, False, ""),
        (deployment(surge=1, unavailable=0), RESTART, False, ""),
        (deployment(surge="1%", unavailable="99%"), RESTART, False, ""),
        (deployment(surge=1, unavailable=1), SCALE, False, ""),
        (deployment(), RESTART, True, ""),
        (deployment(), SCALE, True, "autoscaler"),
        (deployment(replicas=0), SCALE, False, "0 replicas"),
        (deployment(replicas=3), RESTART, False, "3 replicas"),
        (deployment(paused=True), RESTART, False, "paused"),
        (deployment(paused=True), SCALE, False, "paused"),
        (deployment(strategy="Recreate"), SCALE, False, "Recreate"),
        (deployment(strategy="Recreate"), RESTART, False, "Recreate"),
        (deployment(surge=1, unavailable=1), RESTART, False, "maxUnavailable"),
        (deployment(surge="25%", unavailable="100%"), RESTART, False, "maxUnavailable"),
        (deployment(surge=0, unavailable=1), RESTART, False, "maxUnavailable"),
        (deployment(surge=0, unavailable=0), RESTART, False, "maxUnavailable"),
        (deployment(surge="many"), RESTART, False, "maxUnavailable"),
        (deployment(deleted=True), SCALE, False, "being deleted"),
    ],
)
def test_only_single_pods_that_can_have_a_successor_beside_them_get_one(
    subject: Deployment, kind: SurgeKind, *, autoscaled: bool, word: str
) -> None:
    why = why_not(subject, kind, autoscaled=autoscaled)
    assert word in why and bool(word) == bool(why)
    if why:
        assert "Deployment default/web" in why


@pytest.mark.parametrize(
    ("found", "minutes", "expected"),
    [
        (deployment(), 0, "begin"),
        (deployment(replicas=2), 0, "go: 2 replicas"),
        (deployment(replicas=2, marker=marker(uid="x")), 1, "await: goes first"),
        (deployment(marker=marker(RESTART, uid="x")), 9, "await: goes first"),
        (deployment(replicas=2, marker=marker(uid="x")), 10, "go: 2 replicas"),
        (deployment(marker=marker(RESTART, uid="x")), 10, "begin"),
        # What nobody can read is nothing.
        (deployment(annotations={"machine.sapcloud.io/drain-surge": "{"}), 0, "begin"),
    ],
)
def test_one_successor_of_a_deployment_is_made_at_a_time(
    found: Deployment, minutes: float, expected: str
) -> None:
    now = NOW + timedelta(minutes=minutes)
    decision = decide(OLD, SCALE, found, autoscaled=False, now=now, deadline=DEADLINE)
    verdict, _, words = expected.partition(": ")
    match decision:
        case Begin(begun):
            assert verdict == "begin"
            assert begun == Marker("uid-old", "old", SCALE, now, now + LONGEST, 1)
        case Awaited():
            assert verdict == "await" and words in decision.detail
            assert decision.until == NOW + timedelta(minutes=10)
        case Go(why):
            assert verdict == "go" and words in why


@pytest.mark.parametrize(
    ("kind", "others", "minutes", "expected"),
    [
        (SCALE, (), 1, "await"),
        (SCALE, (other(ready=False),), 1, "await"),
        (SCALE, (other(node="node"),), 1, "await"),
        (SCALE, (other(node=""),), 1, "await"),
        (SCALE, (other(deleted=True),), 1, "await"),
        (SCALE, (other(),), 1, "go"),
        (SCALE, (other(),), 11, "go"),
        (SCALE, (), 10, "go: in time"),
        # A restarted Deployment takes the old pod away by itself.
        (RESTART, (other(),), 1, "await"),
        (RESTART, (), 10, "go: in time"),
    ],
)
def test_a_pod_waits_for_its_successor_and_not_for_ever(
    kind: SurgeKind, others: tuple[Pod, ...], minutes: float, expected: str
) -> None:
    answer = follow(OLD, marker(kind), others=others, now=NOW + timedelta(minutes=minutes))
    verdict, _, words = expected.partition(": ")
    match answer:
        case Awaited():
            assert verdict == "await" and kind.value in answer.detail
            assert (answer.since, answer.until) == (NOW, NOW + timedelta(minutes=10))
        case Go(why):
            assert verdict == "go" and words in why and bool(words) == bool(why)


def test_nobody_waits_longer_than_until_the_deadline() -> None:
    soon = NOW + timedelta(minutes=3)
    begun = decided(until=soon)
    assert isinstance(begun, Begin) and begun.marker.until == soon
    assert decided(until=NOW) == Go("there is no time left for a successor")


def decided(*, until: datetime) -> Begin | Awaited | Go:
    return decide(OLD, SCALE, deployment(), autoscaled=False, now=NOW, deadline=until)


@pytest.mark.parametrize(
    ("kind", "there", "others", "minutes", "ends"),
    [
        (SCALE, OLD, (), 1, False),
        (SCALE, OLD, (other(),), 1, False),
        (SCALE, OLD, (other(),), 10.9, False),
        (SCALE, OLD, (other(),), 11, True),
        # It is on its way out: has the ReplicaSet noticed?
        (SCALE, pod("old", deleted=NOW), (other(),), 1, False),
        (SCALE, pod("old", deleted=NOW), (other(), other("b", deleted=True)), 1, False),
        (SCALE, pod("old", deleted=NOW), (other(), other("b", node="", ready=False)), 1, True),
        (SCALE, pod("old", phase="Failed"), (other(), other("b")), 1, True),
        (SCALE, None, (), 0, True),
        (RESTART, OLD, (other(),), 1, False),
        (RESTART, pod("old", deleted=NOW), (other(),), 1, True),
        (RESTART, None, (), 0, True),
        (RESTART, OLD, (), 11, True),
    ],
)
def test_a_deployment_is_put_back_when_its_old_pod_counts_no_more_or_time_is_over(
    kind: SurgeKind, there: Pod | None, others: tuple[Pod, ...], minutes: float, *, ends: bool
) -> None:
    now = NOW + timedelta(minutes=minutes)
    verdict = settle(marker(kind), there, others, now, blind=False)
    assert (verdict is Settlement.END) is ends
    blindly = settle(marker(kind), there, others, now, blind=True)
    assert (blindly is Settlement.END) is (now >= NOW + LONGEST + SLACK)


def test_what_is_begun_is_written_for_the_version_that_was_read() -> None:
    scaled = begin_patch(deployment(), marker())
    assert scaled["spec"] == {"replicas": 2}
    restarted = begin_patch(deployment(), marker(RESTART))
    assert restarted["spec"] == {
        "template": {
            "metadata": {
                "annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T12:00:00Z"}
            }
        }
    }
    for patch in (scaled, restarted, end_patch(deployment(), None)):
        meta = patch["metadata"]
        assert isinstance(meta, dict)
        assert (meta["uid"], meta["resourceVersion"]) == ("u", "7")


@pytest.mark.parametrize(
    ("kind", "replicas", "back"),
    [(SCALE, 2, {"replicas": 1}), (SCALE, 5, None), (SCALE, 1, None), (RESTART, 2, None)],
)
def test_a_number_that_somebody_has_changed_since_stays(
    kind: SurgeKind, replicas: int, back: dict[str, int] | None
) -> None:
    marked = deployment(replicas=replicas, marker=marker(kind))
    assert is_marked(marked)
    patch = end_patch(marked, marker_of(marked))
    assert patch.get("spec") == back
    meta = patch["metadata"]
    assert isinstance(meta, dict)
    assert set(meta["labels"].values()) == set(meta["annotations"].values()) == {None}


@given(
    st.text(max_size=20),
    st.sampled_from(SurgeKind),
    st.integers(0, 10**6),
    st.integers(0, 2**31),
)
def test_markers_are_read_as_they_were_written(
    uid: str, kind: SurgeKind, seconds: int, replicas: int
) -> None:
    written = Marker(uid, "old", kind, NOW, NOW + timedelta(seconds=seconds), replicas)
    assert marker_of(deployment(marker=written)) == written


READABLE = {
    "pod": "p",
    "name": "n",
    "kind": "scale",
    "since": "2026-01-01T12:00:00Z",
    "until": "2026-01-01T12:10:00Z",
    "replicas": 1,
}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"pod":"p"}',
        "[" * 900,
        '{"pod":"p","name":"n","kind":"what","since":"x","until":"x","replicas":1}',
        json.dumps({**READABLE, "replicas": True}),
        json.dumps({**READABLE, "replicas": -1}),
        json.dumps({**READABLE, "kind": "grow"}),
        json.dumps({**READABLE, "since": 7}),
        json.dumps({**READABLE, "more": "x" * 2000}),
    ],
)
def test_a_marker_that_is_none_of_ours_is_none(text: str) -> None:
    marked = deployment(annotations={"machine.sapcloud.io/drain-surge": text})
    assert marker_of(marked) is None and is_marked(marked)


def test_a_marker_may_say_more_than_is_known_here() -> None:
    text = json.dumps({**READABLE, "more": "x"})
    marked = deployment(annotations={"machine.sapcloud.io/drain-surge": text})
    found = marker_of(marked)
    assert found is not None and (found.pod, found.replicas) == ("p", 1)
