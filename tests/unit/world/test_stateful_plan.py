"""Which pods of a StatefulSet come and go next."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.api.meta import JSONObject
from mcm.sandbox.world.kinds import Pod
from mcm.sandbox.world.stateful_sets.identity import (
    by_ordinal,
    claim_manifests,
    owner_of,
    pod_manifest,
    revision_of,
)
from mcm.sandbox.world.stateful_sets.kinds import StatefulSet
from mcm.sandbox.world.stateful_sets.plan import PodPlan, Revisions, plan
from mcm.sandbox.world.stateful_sets.progress import status_of
from tests.unit.world.manifests import claim, workload

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SAME = Revisions("old", "old")
ROLLING = Revisions("old", "new")


def a_set(size: int = 3, **spec: object) -> StatefulSet:
    raw = workload("StatefulSet", replicas=size)
    members = raw["spec"]
    assert isinstance(members, dict)
    return msgspec.convert({**raw, "spec": {**members, **spec}}, StatefulSet)


def a_pod(ordinal: int, state: str = "ready", revision: str = "old", since: int = 60) -> Pod:
    """``state`` is ready, pending, leaving (and still ready) or failed."""
    meta: JSONObject = {
        "name": f"web-{ordinal}",
        "namespace": "default",
        "labels": {"controller-revision-hash": revision},
    }
    stamp = (NOW - timedelta(seconds=since)).isoformat()
    if state == "leaving":
        meta["deletionTimestamp"] = stamp
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": stamp}
    status = {
        "phase": {"pending": "Pending", "failed": "Failed"}.get(state, "Running"),
        "conditions": [condition] if state in ("ready", "leaving") else [],
    }
    return msgspec.convert({"metadata": meta, "status": status}, Pod)


def steps(found: PodPlan) -> tuple[list[str], list[str]]:
    """What is made, with its revision, and what is ended."""
    made = [f"{ordinal}:{revision}" for ordinal, revision in found.make]
    return made, [pod.metadata.name.removeprefix("web-") for pod in found.end]


PARALLEL = {"podManagementPolicy": "Parallel"}
ON_DELETE = {"updateStrategy": {"type": "OnDelete"}}
PARTITION = {"updateStrategy": {"rollingUpdate": {"partition": 2}}}


@pytest.mark.parametrize(
    ("spec", "pods", "revisions", "made", "ended"),
    [
        pytest.param({}, [], SAME, ["0:old"], [], id="the first one first"),
        pytest.param({}, [a_pod(0, "pending")], SAME, [], [], id="the next waits for the first"),
        pytest.param({}, [a_pod(0)], SAME, ["1:old"], [], id="the next when the first serves"),
        pytest.param({}, [a_pod(0), a_pod(2)], SAME, ["1:old"], [], id="a gap is filled"),
        pytest.param({}, [a_pod(0, "leaving"), a_pod(1)], SAME, [], [], id="a name is not free"),
        pytest.param({}, [a_pod(0, "failed")], SAME, [], ["0"], id="what failed makes room"),
        pytest.param({}, [a_pod(n) for n in range(5)], SAME, [], ["4"], id="the highest goes"),
        pytest.param(
            {},
            [*(a_pod(n) for n in range(4)), a_pod(4, "leaving")],
            SAME,
            [],
            [],
            id="the next goes when the highest is gone",
        ),
        pytest.param(
            {},
            [a_pod(0), a_pod(1, "pending"), a_pod(2), a_pod(3)],
            SAME,
            [],
            [],
            id="none goes while one that stays does not serve",
        ),
        pytest.param(
            {}, [a_pod(n) for n in range(3)], ROLLING, [], ["2"], id="an update begins at the top"
        ),
        pytest.param(
            {},
            [a_pod(0), a_pod(1), a_pod(2, "pending", "new")],
            ROLLING,
            [],
            [],
            id="an update waits for each",
        ),
        pytest.param(
            {}, [a_pod(0), a_pod(1), a_pod(2, revision="new")], ROLLING, [], ["1"], id="goes down"
        ),
        pytest.param(
            PARTITION,
            [a_pod(0), a_pod(1), a_pod(2, revision="new")],
            ROLLING,
            [],
            [],
            id="and stops at the partition",
        ),
        pytest.param(PARTITION, [a_pod(0)], ROLLING, ["1:old"], [], id="below it all stays old"),
        pytest.param(
            PARTITION, [a_pod(0), a_pod(1)], ROLLING, ["2:new"], [], id="above it all is new"
        ),
        pytest.param(ON_DELETE, [a_pod(n) for n in range(3)], ROLLING, [], [], id="by hand alone"),
        pytest.param(ON_DELETE, [a_pod(0)], ROLLING, ["1:new"], [], id="by hand, then new"),
        pytest.param(
            PARALLEL, [a_pod(1, "pending")], SAME, ["0:old", "2:old"], [], id="all at once"
        ),
        pytest.param(
            PARALLEL, [a_pod(n) for n in range(5)], SAME, [], ["4", "3"], id="down all at once"
        ),
        pytest.param(
            PARALLEL,
            [a_pod(0), a_pod(1, "pending"), a_pod(2)],
            ROLLING,
            [],
            ["2"],
            id="updates one by one all the same",
        ),
        pytest.param(
            {"ordinals": {"start": 5}}, [a_pod(5)], SAME, ["6:old"], [], id="from another number"
        ),
        pytest.param(
            {"ordinals": {"start": 1}},
            [a_pod(0), a_pod(1), a_pod(2), a_pod(3)],
            SAME,
            [],
            ["0"],
            id="below the first number, too",
        ),
    ],
)
def test_the_next_step(
    spec: dict[str, object],
    pods: list[Pod],
    revisions: Revisions,
    made: list[str],
    ended: list[str],
) -> None:
    stateful_set = a_set(3, **spec)
    found = plan(stateful_set, by_ordinal(stateful_set, pods), revisions, NOW)
    assert steps(found) == (made, ended)


def test_one_that_has_not_served_for_long_enough_is_waited_for() -> None:
    stateful_set = a_set(2, minReadySeconds=10)
    found = plan(stateful_set, {0: a_pod(0, since=4)}, SAME, NOW)
    assert (found.make, found.wait) == ((), 6.0)
    assert plan(stateful_set, {0: a_pod(0, since=10)}, SAME, NOW).make == ((1, "old"),)


@given(seed=st.integers(0, 2**32), parallel=st.booleans(), partition=st.integers(0, 4))
@settings(max_examples=60, deadline=None)
def test_every_history_ends_with_all_pods_wanted(seed: int, parallel: bool, partition: int) -> None:
    """Whatever pods there are and whatever befalls them: in order only one is ever on its way, no
    name is taken twice, and in the end all are there, new from the partition on."""
    chance = random.Random(seed)
    policy = "Parallel" if parallel else "OrderedReady"
    strategy = {"rollingUpdate": {"partition": partition}}
    stateful_set = a_set(chance.randrange(5), podManagementPolicy=policy, updateStrategy=strategy)
    states = ("ready", "pending", "leaving", "failed")
    pods = {
        n: a_pod(n, chance.choice(states), chance.choice(("old", "new")))
        for n in range(6)
        if chance.random() < 0.6
    }
    kept = {n: p.metadata.labels for n, p in pods.items() if p.active}
    for _ in range(100):
        found = plan(stateful_set, pods, ROLLING, NOW)
        assert parallel or len(found.make) + len(found.end) <= 1
        for ordinal, revision in found.make:
            assert ordinal not in pods
            pods[ordinal] = a_pod(ordinal, "pending", revision)
        for pod in found.end:
            ordinal = int(pod.metadata.name.removeprefix("web-"))
            assert pods[ordinal] == pod and not pod.terminating
            pods[ordinal] = a_pod(
                ordinal, "leaving", pod.metadata.labels["controller-revision-hash"]
            )
            kept.pop(ordinal, None)
        if not (found.make or found.end) and all(p.active and p.ready for p in pods.values()):
            break
        pods = _some_time_later(pods, chance)
    wanted = range(stateful_set.spec.replicas)
    assert sorted(pods) == list(wanted)
    for ordinal, pod in pods.items():
        revision = revision_of(pod)
        fresh = ordinal not in kept
        assert revision == "new" if ordinal >= partition else not fresh or revision == "old"


def _some_time_later(pods: dict[int, Pod], chance: random.Random) -> dict[int, Pod]:
    later: dict[int, Pod] = {}
    for ordinal, pod in pods.items():
        moves = chance.random() < 0.7
        if moves and pod.terminating:
            continue
        revision = revision_of(pod)
        starts = moves and not pod.finished and not pod.ready
        later[ordinal] = a_pod(ordinal, "ready", revision) if starts else pod
    return later


# What a number stands for -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("web-0", "web"),
        ("a-b-12", "a-b"),
        ("web-1-0", "web-1"),
        ("web", ""),
        ("web-", ""),
        ("web-01", ""),
        ("web-٣", ""),
        ("-1", ""),
        ("web-12345678901", ""),
    ],
)
def test_a_name_says_whose_pod_it_is(name: str, owner: str) -> None:
    assert owner_of(name) == owner


def test_a_pod_has_its_number_and_its_claims() -> None:
    templates = [claim("data"), claim("logs")]
    spec = {"volumes": [{"name": "logs", "emptyDir": {}}, {"name": "own", "emptyDir": {}}]}
    stateful_set = a_set(serviceName="peers", volumeClaimTemplates=templates)
    template = {**stateful_set.spec.template, "spec": spec}
    made = pod_manifest(stateful_set, 2, revision="web-abc", template=template)
    meta, made_spec = made["metadata"], made["spec"]
    assert isinstance(meta, dict) and isinstance(made_spec, dict)
    assert meta["name"] == "web-2"
    assert meta["labels"] == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "web-2",
        "apps.kubernetes.io/pod-index": "2",
        "controller-revision-hash": "web-abc",
    }
    assert (made_spec["hostname"], made_spec["subdomain"]) == ("web-2", "peers")
    assert made_spec["volumes"] == [
        {"name": "own", "emptyDir": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-2"}},
        {"name": "logs", "persistentVolumeClaim": {"claimName": "logs-web-2"}},
    ]
    claims = claim_manifests(stateful_set, 2)
    assert list(claims) == ["data-web-2", "logs-web-2"]
    labelled = claims["data-web-2"]["metadata"]
    assert isinstance(labelled, dict) and labelled["labels"] == {"app": "web"}


# What the set says of itself --------------------------------------------------------------------


def test_the_new_revision_is_the_current_one_when_all_pods_have_it_and_serve() -> None:
    stateful_set = a_set(2)
    half = status_of(stateful_set, [a_pod(0), a_pod(1, revision="new")], ROLLING, NOW)
    assert (half.current_revision, half.current_replicas, half.updated_replicas) == ("old", 1, 1)
    not_yet = [a_pod(0, "pending", "new"), a_pod(1, revision="new")]
    assert status_of(stateful_set, not_yet, ROLLING, NOW).current_revision == "old"
    done = [a_pod(0, revision="new"), a_pod(1, revision="new")]
    found = status_of(stateful_set, done, ROLLING, NOW)
    assert (found.current_revision, found.current_replicas) == ("new", 2)
    assert (found.replicas, found.ready_replicas, found.available_replicas) == (2, 2, 2)


def test_a_pod_on_its_way_out_is_there_but_does_not_count() -> None:
    found = status_of(a_set(2), [a_pod(0), a_pod(1, "leaving")], SAME, NOW)
    assert (found.replicas, found.ready_replicas, found.current_replicas) == (2, 1, 1)
