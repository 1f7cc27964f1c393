from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.machine import Machine
from mcm.api.meta import JSONObject
from mcm.controllers.machine.hot_update.record import (
    LONGEST,
    WantedSpec,
    brought_to,
    in_flight,
    is_applied,
    is_in_flight,
    last_applied,
    made_with,
    nothing_in_flight,
    trying,
)
from tests.unit.machine.objects import machine

LAST, FLYING = "last-applied-providerspec", "inflight-providerspecs"

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
specs = st.dictionaries(st.text(max_size=4), values, max_size=4)


def with_(**annotations: str) -> Machine:
    named = {"last": LAST, "flying": FLYING}
    return machine(annotations={named[name]: text for name, text in annotations.items()})


def after(before: Machine, changes: object) -> Machine:
    assert isinstance(changes, dict)
    merged = {**before.metadata.annotations, **changes}
    return machine(annotations={key: text for key, text in merged.items() if text is not None})


def shuffled(document: object) -> object:
    """The same document, its keys the other way round."""
    match document:
        case dict():
            return {key: shuffled(document[key]) for key in reversed(document)}
        case list():
            return [shuffled(item) for item in document]
    return document


@given(spec=specs, earlier=specs)
def test_what_is_recorded_reads_back_however_the_json_is_written(
    spec: JSONObject, earlier: JSONObject
) -> None:
    wanted = WantedSpec.of(spec)
    tried = after(with_(last=WantedSpec.of(earlier).recorded), trying(machine(), wanted))
    assert in_flight(tried) == [spec]
    done = after(tried, brought_to(tried, wanted))
    assert is_applied(done, wanted)
    assert not is_in_flight(done)
    assert last_applied(done) == spec
    assert is_applied(done, WantedSpec.of(shuffled(spec)))  # type: ignore[arg-type]
    by_hand = with_(last=json.dumps(shuffled(spec), indent=2))
    assert is_applied(by_hand, wanted)
    assert brought_to(done, wanted) == {}


def test_what_differs_is_not_applied() -> None:
    wanted = WantedSpec.of({"tags": {"a": "1"}})
    for text in ("{}", '{"tags":{"a":"2"}}', "", "nonsense", "[]", "sha256:0", '"x"', "[" * 9999):
        assert not is_applied(with_(last=text), wanted)
    assert not is_applied(machine(), wanted)
    assert not is_applied(with_(last='{"joins":1}'), WantedSpec.of({"joins": True}))


@pytest.mark.parametrize("text", ["", "nonsense", "{}", "[1]", "7", "[" * 9999])
def test_what_cannot_be_read_is_in_flight_all_the_same(text: str) -> None:
    broken = with_(last="nonsense", flying=text)
    assert is_in_flight(broken)
    assert list(in_flight(broken)) == []
    assert last_applied(broken) is None
    assert trying(broken, WantedSpec.of({})) == {FLYING: "[{}]"}


def test_each_that_is_tried_is_recorded_once_and_in_order() -> None:
    subject = machine()
    for number in (1, 2, 1, 3):
        subject = after(subject, trying(subject, WantedSpec.of({"n": number})))
    assert list(in_flight(subject)) == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert nothing_in_flight(subject) == {FLYING: None}
    assert nothing_in_flight(machine()) == {}


@given(st.lists(st.integers(min_value=0, max_value=LONGEST + 100), max_size=6))
def test_neither_annotation_is_ever_too_long(sizes: list[int]) -> None:
    subject = machine()
    for number, size in enumerate(sizes):
        wanted = WantedSpec.of({"n": number, "é": "é" * (size // 2)})
        subject = after(subject, trying(subject, wanted))
        assert len(subject.metadata.annotations[FLYING].encode()) <= LONGEST
        assert is_in_flight(subject)
        assert trying(subject, wanted) == {}
        done = after(subject, brought_to(subject, wanted))
        assert len(done.metadata.annotations[LAST].encode()) <= LONGEST
        assert is_applied(done, wanted)


def test_of_a_spec_too_long_only_equality_is_known() -> None:
    long = WantedSpec.of({"script": "x" * LONGEST})
    done = after(machine(), made_with(machine(), long.spec))
    assert is_applied(done, long)
    assert last_applied(done) is None
    assert not is_applied(done, WantedSpec.of({"script": "y" * LONGEST}))


def test_a_new_vm_forgets_what_was_recorded_of_the_one_before() -> None:
    before = with_(last='{"a":1}', flying='[{"a":2}]')
    assert made_with(before, {"b": 3}) == {LAST: '{"b":3}', FLYING: None}
