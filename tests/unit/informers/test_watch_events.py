from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.machine import MACHINE_CLASSES, MACHINES, Machine
from mcm.api.meta import Resource
from mcm.client.errors import Gone, TooLargeResourceVersion
from mcm.informers.watch_events import (
    Bookmark,
    Event,
    EventType,
    Frame,
    FrameDecoder,
    GarbledFrame,
    Unreadable,
    WatchError,
)
from tests.unit.informers.apiserver import WHOLE_MACHINES, status

META = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "12"}


def decode(
    kind: object, obj: object, *, resource: Resource[Machine] = WHOLE_MACHINES
) -> Frame[Any]:
    return FrameDecoder(resource).decode(json.dumps({"type": kind, "object": obj}).encode())


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
def test_an_object_comes_typed(kind: str) -> None:
    frame = decode(kind, {"metadata": META, "status": {"currentStatus": {"phase": "Running"}}})
    assert isinstance(frame, Event)
    assert frame.type is EventType(kind)
    assert (frame.object.metadata.key, frame.object.phase) == ("n/a", "Running")


def test_nulls_that_mean_absent_are_no_hindrance() -> None:
    frame = decode("ADDED", {"metadata": {**META, "finalizers": None}, "status": None})
    assert isinstance(frame, Event) and frame.object.metadata.finalizers == ()


@pytest.mark.parametrize("extra", [{}, {"spec": None, "status": {"conditions": None}}])
def test_a_bookmark_is_a_version(extra: dict[str, object]) -> None:
    meta = {"resourceVersion": "77", "creationTimestamp": None}
    assert decode("BOOKMARK", {"kind": "Machine", "metadata": meta, **extra}) == Bookmark("77")


def test_the_bookmark_that_ends_a_streamed_list_says_so() -> None:
    meta = {"resourceVersion": "77", "annotations": {"k8s.io/initial-events-end": "true"}}
    assert decode("BOOKMARK", {"metadata": meta}) == Bookmark("77", ends_list=True)


def test_an_error_is_typed_by_its_status() -> None:
    gone = decode("ERROR", status(410, "Expired"))
    assert isinstance(gone, WatchError) and isinstance(gone.error, Gone)
    late = decode("ERROR", status(504, "Timeout", causes=["ResourceVersionTooLarge"]))
    assert isinstance(late, WatchError) and isinstance(late.error, TooLargeResourceVersion)
    assert isinstance(decode("ERROR", {}), WatchError)


@pytest.mark.parametrize(
    ("kind", "obj", "reason"),
    [
        ("MODIFIED", {"metadata": META, "spec": 7}, "spec"),
        ("DELETED", {"metadata": META, "status": {"conditions": [{}]}}, "conditions"),
        ("POLISHED", {"metadata": META}, "unknown type of event 'POLISHED'"),
        ("ADDED", {"metadata": {**META, "name": ""}}, "without a name"),
    ],
)
def test_an_unreadable_object_is_named_as_far_as_possible(
    kind: str, obj: dict[str, Any], reason: str
) -> None:
    frame = decode(kind, obj)
    assert isinstance(frame, Unreadable)
    assert frame.type == kind
    assert (frame.uid, frame.version) == ("u", "12")
    assert reason in frame.reason
    assert frame.key == ("n/a" if obj["metadata"]["name"] else "")


def test_an_object_whose_metadata_is_broken_is_unreadable_too() -> None:
    frame = decode("ADDED", {"metadata": {"name": "a", "namespace": "n", "labels": 3}})
    assert isinstance(frame, Unreadable)
    assert frame.key == "n/a"
    nameless = decode("ADDED", {"metadata": 3})
    assert isinstance(nameless, Unreadable)
    assert (nameless.key, nameless.uid, nameless.version) == ("", "", "")


@pytest.mark.parametrize(
    "line",
    [b"<html>", b"{}", b'{"type":"ADDED"}', b'{"type":"ADDED","object":{"met', b"[]", b"\xff\xfe"],
)
def test_what_is_no_frame_is_garbled(line: bytes) -> None:
    with pytest.raises(GarbledFrame):
        FrameDecoder(MACHINES).decode(line)


@given(st.binary(max_size=60))
def test_no_bytes_do_worse_than_garble(line: bytes) -> None:
    with pytest.raises(GarbledFrame):
        FrameDecoder(MACHINES).decode(line)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "name", "spec", "status", "labels", "conditions", "class"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from([*EventType, "OTHER"]), JSON)
def test_no_object_does_worse_than_to_be_unreadable(kind: str, obj: object) -> None:
    frame = decode(kind, obj)
    assert isinstance(frame, Event | Bookmark | WatchError | Unreadable)


def test_a_machine_is_read_as_far_as_it_can_be() -> None:
    obj = {"metadata": META, "spec": {"providerID": 7, "class": {"name": "c"}}, "status": "good"}
    frame = decode("MODIFIED", obj, resource=MACHINES)
    assert isinstance(frame, Event)
    assert frame.object.spec.class_.name == "c"
    assert [str(fault) for fault in frame.object.metadata.faults] == [
        "spec.providerID: Expected `str`, got `int`",
        "status: Expected `object`, got `str`",
    ]


def test_a_payload_deeper_than_any_parser_goes_costs_the_stream_nothing() -> None:
    spec = '{"a":' * 5000 + "1" + "}" * 5000
    line = f'{{"type":"ADDED","object":{{"metadata":{json.dumps(META)},"providerSpec":{spec}}}}}'
    frame = FrameDecoder(MACHINE_CLASSES).decode(line.encode())
    assert isinstance(frame, Event)
    assert frame.object.metadata.key == "n/a"
    assert str(frame.object.metadata.faults[0]) == "providerSpec.a: Nested too deep to be read"
