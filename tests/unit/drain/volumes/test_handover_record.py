from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.meta import JSONObject
from mcm.drain.volumes import UnreadableHandoverError, handover_json, read_handover
from tests.unit.drain.volumes.small_cluster import SmallCluster


def written() -> JSONObject:
    cluster = SmallCluster()
    pod = cluster.stateful("db-0")
    handover = cluster.ask(pod)
    cluster.end(pod)
    return handover_json(cluster.look(handover, after=3))


def test_a_handover_is_the_same_when_it_is_read_and_looked_at_again() -> None:
    cluster = SmallCluster()
    pod = cluster.stateful("db-0")
    handover = cluster.ask(pod)
    cluster.end(pod)
    handover = cluster.look(handover, after=3)
    text = json.dumps(handover_json(handover))
    assert cluster.look(read_handover(json.loads(text))) == handover
    assert len(text) < 500


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"uid": ""}, "uid is empty"),
        ({"uid": 7}, "uid is missing or of a wrong type"),
        ({"stage": "lost"}, "stage 'lost' is unknown"),
        ({"askedAt": "yesterday"}, "askedAt is no timestamp"),
        ({"goneAt": None}, "goneAt is missing or of a wrong type"),
        ({"graceSeconds": True}, "graceSeconds is missing or of a wrong type"),
        ({"graceSeconds": -1}, "graceSeconds is out of range"),
        ({"graceSeconds": 10**30}, "graceSeconds is out of range"),
        ({"volumes": []}, "volumes is empty"),
        ({"volumes": ["pv"]}, "volumes holds something that is no JSON object"),
        ({"volumes": [{"claim": "c", "volume": "v", "attacher": "a", "names": [1]}]}, "no text"),
    ],
)
def test_what_is_no_handover_is_refused_with_the_member_named(
    change: JSONObject, says: str
) -> None:
    with pytest.raises(UnreadableHandoverError, match=says):
        read_handover({**written(), **change})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)


@given(member=st.sampled_from(sorted(written())), value=JSON)
def test_whatever_stands_in_a_member_is_read_or_refused(member: str, value: object) -> None:
    try:
        handover = read_handover({**written(), member: value})
    except UnreadableHandoverError:
        return
    cluster = SmallCluster()
    ended = cluster.look(handover)
    cluster.now = max(cluster.now, ended.until or cluster.now) + timedelta(days=1)
    assert cluster.look(ended) is not None


@pytest.mark.parametrize("raw", [None, [], "x", 1])
def test_what_is_no_object_is_refused(raw: object) -> None:
    with pytest.raises(UnreadableHandoverError):
        read_handover(raw)
