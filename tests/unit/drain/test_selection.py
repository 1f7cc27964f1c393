from __future__ import annotations

import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Pod, Taint, Toleration
from mcm.api.names import TAINT_PRESERVED
from mcm.drain.selection import (
    Arrangement,
    Comeback,
    Comebacks,
    RemarkKind,
    Stay,
    WaveSettings,
    arrange,
    must_go,
    remarks_on,
    with_eviction,
)
from mcm.drain.selection.remarks import to_mend
from mcm.drain.volumes import claim_keys_of
from tests.unit.drain.pods import NOW, pod

OURS, THEIRS = "machine.sapcloud.io/drain", "cluster.x-k8s.io/drain"
SURGE = "machine.sapcloud.io/drain-surge"
WAVE = "machine.sapcloud.io/drain-wave"
CRITICAL = 2_000_001_000
EVERYTHING = (Toleration(operator="Exists"),)
CORDON = (
    Toleration(key="node.kubernetes.io/unschedulable", operator="Exists", effect="NoSchedule"),
)


def in_wave(name: str, wave: str, *, priority: int = 0) -> Pod:
    return pod(name, annotations={WAVE: wave}, priority=priority)


def names_of(places: Arrangement) -> list[list[str]]:
    return [[p.metadata.name for p in wave] for wave in places.waves]


# Which ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subject", "why"),
    [
        (pod("plain"), None),
        (pod("unmanaged", owner=""), None),
        (pod("leaving", deleted=NOW), None),
        (pod("volume", claims=("data",)), None),
        (pod("scratch", ephemeral=("cache",)), None),
        (pod("job", claims=("data",), phase="Succeeded"), None),
        (pod("crashed", claims=("data",), phase="Failed"), None),
        (pod("critical", priority=CRITICAL), None),
        (pod("tolerant", tolerations=EVERYTHING), None),
        (pod("orphaned-agent", owner="", tolerations=EVERYTHING), None),
        (pod("late", created=NOW + timedelta(hours=1), tolerations=EVERYTHING), None),
        (pod("static", mirror=True), Stay.MIRROR),
        (pod("static-critical", mirror=True, priority=CRITICAL), Stay.MIRROR),
        (pod("agent", owner="DaemonSet"), Stay.DAEMON_SET),
        (pod("agent-done", owner="DaemonSet", phase="Succeeded"), Stay.DAEMON_SET),
        (pod("agent-leaving", owner="DaemonSet", deleted=NOW), Stay.DAEMON_SET),
        (pod("agent-volume", owner="DaemonSet", claims=("data",)), Stay.DAEMON_SET),
        (pod("spared", labels={OURS: "skip"}), Stay.SKIPPED),
        (pod("spared-theirs", labels={THEIRS: "skip"}), Stay.SKIPPED),
        (pod("spared-loudly", labels={OURS: "Skip"}), Stay.SKIPPED),
        (pod("spared-done", labels={OURS: "skip"}, phase="Failed"), Stay.SKIPPED),
        (pod("spared-leaving", labels={OURS: "skip"}, deleted=NOW), Stay.SKIPPED),
        (pod("ours-first", labels={OURS: "skip", THEIRS: "wait-completed"}), Stay.SKIPPED),
        (pod("ours-wrong", labels={OURS: "spik", THEIRS: "skip"}), Stay.SKIPPED),
        (pod("unknown", labels={OURS: "spik"}), None),
        (pod("empty", labels={OURS: ""}), None),
    ],
    ids=lambda value: value.metadata.name if isinstance(value, Pod) else str(value),
)
def test_each_kind_of_pod_is_left_or_taken_away(subject: Pod, why: Stay | None) -> None:
    places = arrange([subject], start=NOW)
    assert [left.why for left in places.left] == ([why] if why else [])
    assert list(places.due) == ([] if why else [subject])
    assert list(places.by_force) == ([] if why else [subject])
    assert must_go(subject) is (why is None)


def test_a_pod_may_ask_to_be_awaited_until_it_completes() -> None:
    labels = {OURS: "wait-completed"}
    job, other = pod("job", labels=labels), pod("a")
    places = arrange([job, other], start=NOW)
    assert places.awaited == (job,) and places.due == (other,)
    assert places.taken == places.by_force == (job, other)
    completed = pod("job", labels=labels, phase="Succeeded")
    assert arrange([completed, other], start=NOW).due == (completed, other)


def test_claims_count_those_that_ephemeral_volumes_make() -> None:
    claiming = pod("p", claims=("data",), ephemeral=("cache",))
    assert claim_keys_of(claiming) == ("default/data", "default/p-cache")


# In which order ---------------------------------------------------------------------------------


def test_pods_with_volumes_go_after_the_others_by_priority_highest_first_then_by_name() -> None:
    places = arrange(
        [
            pod("b", claims=("x",)),
            pod("low", claims=("x",), priority=-5),
            pod("a", claims=("x",)),
            pod("plain"),
            pod("job", claims=("x",), phase="Succeeded", priority=7),
            pod("scratch", ephemeral=("x",), priority=100),
        ],
        start=NOW,
    )
    assert names_of(places) == [["job", "plain", "scratch", "a", "b", "low"]]
    assert not places.later


def test_by_default_there_is_one_wave_and_what_the_node_lives_by_goes_last() -> None:
    places = arrange(
        [
            pod("csi", priority=CRITICAL),
            pod("kubelet-helper", priority=CRITICAL + 1000),
            pod("orphaned-agent", owner="", tolerations=EVERYTHING),
            pod("cluster-critical", priority=2_000_000_000),
            pod("dns", tolerations=EVERYTHING),
            pod("low", priority=-100),
        ],
        start=NOW,
    )
    assert names_of(places) == [
        ["cluster-critical", "dns", "low"],
        ["csi", "kubelet-helper", "orphaned-agent"],
    ]
    assert [p.metadata.name for p in places.later] == ["csi", "kubelet-helper", "orphaned-agent"]


def test_pods_name_their_wave() -> None:
    pods = [in_wave("c", "10"), pod("b"), in_wave("a", "-1"), in_wave("b2", "+0"), pod("b1")]
    assert names_of(arrange(pods, start=NOW)) == [["a"], ["b", "b1", "b2"], ["c"]]


@pytest.mark.parametrize(
    "text", ["", "one", "1.5", "2147483648", "-2147483649", "1" * 5000, "٣", "0x1", "\ud800"]
)
def test_a_wave_that_is_no_number_is_named_and_counts_as_zero(text: str) -> None:
    wrong = in_wave("wrong", text)
    places = arrange([wrong, pod("right"), in_wave("late", "2147483647")], start=NOW)
    assert names_of(places) == [["right", "wrong"], ["late"]]
    (remark,) = remarks_on(places)
    assert remark.pod is wrong and remark.kind is RemarkKind.MISREAD
    assert WAVE in remark.text and "counts as 0" in remark.text and len(remark.text) < 200


def test_priorities_make_waves_where_that_is_asked_for_the_least_important_first() -> None:
    pods = [
        pod("zero"),
        pod("thousand", priority=1000),
        pod("below", priority=-1),
        pod("above", priority=1001),
        pod("database", priority=1000, claims=("x",)),
        in_wave("first", "-1", priority=5000),
        pod("csi", priority=CRITICAL),
    ]
    places = arrange(pods, start=NOW, settings=WaveSettings((0, 1000)))
    assert names_of(places) == [
        ["first"],
        ["below"],
        ["zero"],
        ["above", "thousand", "database"],
        ["csi"],
    ]


def test_finished_pods_go_with_the_first_wave_whatever_theirs_is() -> None:
    done = pod("done", annotations={WAVE: "9"}, phase="Succeeded", priority=CRITICAL)
    places = arrange([in_wave("late", "3"), done, pod("early")], start=NOW)
    assert names_of(places) == [["done", "early"], ["late"]]


def test_what_the_node_lives_by_stays_while_pods_are_awaited() -> None:
    job = pod("job", labels={OURS: "wait-completed"})
    driver = pod("csi", priority=CRITICAL)
    done = pod("done", phase="Succeeded", priority=CRITICAL)
    assert arrange([job, driver], start=NOW).due == ()
    assert arrange([job, driver], start=NOW).later == (driver,)
    assert arrange([job, driver, done], start=NOW).due == (done,)
    assert arrange([driver], start=NOW).due == (driver,)


# What comes back --------------------------------------------------------------------------------


def returning(name: str, seconds: int, tolerations: tuple[Toleration, ...] = EVERYTHING) -> Pod:
    created = NOW + timedelta(seconds=seconds)
    return pod(name, created=created, tolerations=tolerations)


def evicted(comebacks: Comebacks, subject: Pod, seconds: float, *, barrier: Taint) -> Comebacks:
    now = NOW + timedelta(seconds=seconds)
    return with_eviction(comebacks, subject, start=NOW, now=now, barrier=barrier)


UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
PRESERVED = Taint(key=TAINT_PRESERVED, effect="NoSchedule")


@pytest.mark.parametrize(
    ("tolerations", "barrier", "left_from"),
    [
        (EVERYTHING, UNSCHEDULABLE, 3),
        (CORDON, UNSCHEDULABLE, 3),
        ((), UNSCHEDULABLE, None),
        (EVERYTHING, PRESERVED, 3),
        (CORDON, PRESERVED, None),
    ],
)
def test_an_owner_whose_pods_came_back_twice_keeps_the_next_one_there(
    tolerations: tuple[Toleration, ...], barrier: Taint, left_from: int | None
) -> None:
    comebacks: Comebacks = {}
    for time in range(8):
        subject = returning(f"p{time}", 40 * time if time else -60, tolerations)
        places = arrange([subject], start=NOW, comebacks=comebacks, barrier=barrier)
        if time != left_from:
            assert places.due == (subject,)
            comebacks = evicted(comebacks, subject, 40 * time + 20, barrier=barrier)
            continue
        assert [left.why for left in places.left] == [Stay.COMES_BACK]
        assert not places.taken and places.by_force == (subject,)
        (remark,) = remarks_on(places)
        assert remark.kind is RemarkKind.COMES_BACK
        assert "ReplicaSet default/owner" in str(remark)
        break


def test_pods_that_came_back_together_count_once_and_go_together() -> None:
    comebacks: Comebacks = {}
    for lot in (1, 2):
        pods = [returning(f"p{lot}{n}", 100 * lot + n) for n in range(5)]
        assert len(arrange(pods, start=NOW, comebacks=comebacks).due) == 5
        for subject in pods:
            comebacks = evicted(comebacks, subject, 100 * lot + 50, barrier=UNSCHEDULABLE)
        assert comebacks["owner-uid"].times == lot
    third = [returning(f"p3{n}", 300 + n) for n in range(5)]
    assert len(arrange(third, start=NOW, comebacks=comebacks).left) == 5


def test_what_never_came_back_is_not_remembered() -> None:
    nothing: Comebacks = {}
    for subject in (
        returning("before", -10),
        pod("ageless", tolerations=EVERYTHING),
        pod("unowned", owner="", created=NOW + timedelta(hours=1), tolerations=EVERYTHING),
        returning("only faster than the cordon", 1, ()),
    ):
        assert evicted(nothing, subject, 20, barrier=UNSCHEDULABLE) is nothing


def test_a_server_whose_clock_is_ahead_makes_no_comeback_two() -> None:
    ahead = [returning("a", 3600), returning("b", 3600)]
    comebacks: Comebacks = {}
    for subject in ahead:
        comebacks = evicted(comebacks, subject, 20, barrier=UNSCHEDULABLE)
    assert comebacks == {"owner-uid": Comeback(1, NOW + timedelta(hours=1))}


@given(st.lists(st.integers(-5, 60), min_size=1, max_size=40), st.integers(0, 2**32))
def test_no_owner_keeps_a_drain_busy_for_ever(born: list[int], seed: int) -> None:
    """Whatever there is when it is evicted, and whenever its like appear, it ends."""
    dice = random.Random(seed)
    comebacks: Comebacks = {}
    there = [returning(f"p{n}", seconds) for n, seconds in enumerate(born)]
    now, count = 60, len(born)
    for _ in range(2000):
        now += dice.randint(1, 5)
        due = arrange(there, start=NOW, comebacks=comebacks).due
        if not due:
            break
        gone = dice.choice(due)
        comebacks = evicted(comebacks, gone, now, barrier=UNSCHEDULABLE)
        count += 1
        there = [p for p in there if p is not gone]
        there.append(returning(f"p{count}", now + dice.randint(0, 3)))
    else:
        raise AssertionError("the drain goes on for ever")


# What is said -----------------------------------------------------------------------------------


def test_what_people_should_know_is_said_of_each_pod() -> None:
    pods = [
        pod("typo", labels={OURS: "spik"}),
        pod("their-typo", labels={THEIRS: "wait"}),
        pod("unmanaged", owner=""),
        pod("unmanaged-done", owner="", phase="Succeeded"),
        pod("scratch", empty_dir=True),
        pod("agent", owner="DaemonSet", labels={OURS: "what"}, empty_dir=True),
        pod("spared", owner="", labels={OURS: "skip"}, empty_dir=True),
        pod("fine"),
        pod("single", annotations={SURGE: "scale"}),
        pod("single-done", annotations={SURGE: "scale"}, phase="Failed"),
        pod("surge-typo", annotations={SURGE: "replace"}),
    ]
    said = {(r.pod.metadata.name, r.kind) for r in remarks_on(arrange(pods, start=NOW))}
    assert said == {
        ("typo", RemarkKind.MISREAD),
        ("their-typo", RemarkKind.MISREAD),
        ("unmanaged", RemarkKind.UNMANAGED),
        ("scratch", RemarkKind.LOCAL_STORAGE),
        ("single", RemarkKind.SUCCESSOR_FIRST),
        ("surge-typo", RemarkKind.MISREAD),
    }
    mend = {(r.pod.metadata.name, r.kind) for r in to_mend(arrange(pods, start=NOW))}
    assert mend == {remark for remark in said if remark[1] is RemarkKind.MISREAD}


def test_an_unknown_word_is_told_with_the_known_ones() -> None:
    (remark,) = remarks_on(arrange([pod("typo", labels={OURS: "spik"})], start=NOW))
    assert str(remark) == (
        "pod default/typo: its label machine.sapcloud.io/drain is 'spik', neither skip nor "
        "wait-completed: it counts as none"
    )


# Every pod --------------------------------------------------------------------------------------

some_pod = st.builds(
    pod,
    st.from_regex(r"[a-z]{1,5}", fullmatch=True),
    claims=st.sampled_from([(), ("c",)]),
    mirror=st.sampled_from([False, False, True]),
    owner=st.sampled_from(["", "ReplicaSet", "DaemonSet", "Job"]),
    phase=st.sampled_from(["Running", "Succeeded", "Pending", "Failed"]),
    priority=st.sampled_from([0, -7, 1000, CRITICAL]),
    labels=st.dictionaries(
        st.sampled_from([OURS, THEIRS]), st.sampled_from(["skip", "wait-completed", "x"])
    ),
    annotations=st.dictionaries(st.just(WAVE), st.sampled_from(["1", "-1", "x"])),
    tolerations=st.sampled_from([(), EVERYTHING, CORDON]),
    created=st.sampled_from([None, NOW, NOW + timedelta(minutes=1)]),
)


@given(
    st.lists(some_pod, max_size=12),
    st.sampled_from([(), (0,), (0, 1000)]),
    st.sampled_from([{}, {"owner-uid": Comeback(2, NOW)}, {"owner-uid": Comeback(1, NOW)}]),
)
def test_every_pod_is_in_exactly_one_place(
    pods: list[Pod], priorities: tuple[int, ...], comebacks: Comebacks
) -> None:
    settings = WaveSettings(priorities)
    places = arrange(pods, start=NOW, settings=settings, comebacks=comebacks)
    left = [left.pod for left in places.left]
    assert sorted(map(id, (*places.taken, *left))) == sorted(map(id, pods))
    everywhere = (*places.awaited, *places.due, *places.later, *left)
    assert sorted(map(id, everywhere)) == sorted(map(id, pods))
    assert all(places.waves), "a wave is empty"
    assert set(map(id, places.taken)) <= set(map(id, places.by_force))
    assert all(map(must_go, places.by_force))
    if places.taken and not places.awaited:
        assert places.due, "nothing would ever be asked"
