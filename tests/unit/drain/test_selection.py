from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Pod
from mcm.drain.selection import Arrangement, Stay, arrange, claims_of, must_go
from tests.unit.drain.pods import NOW, pod


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
        (pod("static", mirror=True), Stay.MIRROR),
        (pod("agent", owner="DaemonSet"), Stay.DAEMON_SET),
        (pod("agent-done", owner="DaemonSet", phase="Succeeded"), Stay.DAEMON_SET),
        (pod("agent-leaving", owner="DaemonSet", deleted=NOW), Stay.DAEMON_SET),
        (pod("agent-volume", owner="DaemonSet", claims=("data",)), Stay.DAEMON_SET),
    ],
    ids=lambda value: value.metadata.name if isinstance(value, Pod) else str(value),
)
def test_each_kind_of_pod_is_left_or_taken_away(subject: Pod, why: Stay | None) -> None:
    places = arrange([subject], start=NOW)
    assert [left.why for left in places.left] == ([why] if why else [])
    assert list(places.taken) == ([] if why else [subject])
    assert must_go(subject) is (why is None)


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
    names = [p.metadata.name for p in places.due]
    assert names == ["job", "plain", "scratch", "a", "b", "low"]
    assert not places.later


def test_claims_count_those_that_ephemeral_volumes_make() -> None:
    assert claims_of(pod("p", claims=("data",), ephemeral=("cache",))) == ("data", "p-cache")


@given(
    st.lists(
        st.builds(
            pod,
            st.from_regex(r"[a-z]{1,5}", fullmatch=True),
            claims=st.sampled_from([(), ("c",)]),
            mirror=st.booleans(),
            owner=st.sampled_from(["", "ReplicaSet", "DaemonSet"]),
            phase=st.sampled_from(["Running", "Succeeded", "Pending"]),
        ),
        max_size=12,
    )
)
def test_every_pod_is_in_exactly_one_place(pods: list[Pod]) -> None:
    assert_each_in_one_place(arrange(pods, start=NOW), pods)


def assert_each_in_one_place(places: Arrangement, pods: list[Pod]) -> None:
    left = [left.pod for left in places.left]
    assert sorted(map(id, (*places.taken, *left))) == sorted(map(id, pods))
    assert all(places.waves), "a wave is empty"
