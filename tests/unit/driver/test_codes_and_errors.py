from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.driver import Code, DriverError, as_driver_error, decode

WIRE = {
    0: "OK",
    1: "Canceled",
    2: "Unknown",
    3: "InvalidArgument",
    4: "DeadlineExceeded",
    5: "NotFound",
    6: "AlreadyExists",
    7: "PermissionDenied",
    8: "ResourceExhausted",
    9: "FailedPrecondition",
    10: "Aborted",
    11: "OutOfRange",
    12: "Unimplemented",
    13: "Internal",
    14: "Unavailable",
    15: "DataLoss",
    16: "Unauthenticated",
    17: "Uninitialized",
}

balanced = st.recursive(
    st.text(st.characters(blacklist_characters="[]"), max_size=8),
    lambda inner: st.lists(inner.map(lambda text: f"[{text}]"), max_size=3).map("-".join),
    max_leaves=8,
)


def test_the_codes_have_their_wire_numbers_and_names() -> None:
    assert {int(code): code.text for code in Code} == WIRE


@pytest.mark.parametrize("code", list(Code))
def test_a_code_survives_its_text(code: Code) -> None:
    assert Code.from_text(code.text) is code


def test_a_name_nobody_knows_is_the_unknown_code() -> None:
    assert Code.from_text("NoQuota") is Code.UNKNOWN
    assert Code.from_text("") is Code.UNKNOWN


def test_only_four_codes_are_transient() -> None:
    assert {code for code in Code if code.transient} == {
        Code.UNKNOWN,
        Code.DEADLINE_EXCEEDED,
        Code.ABORTED,
        Code.UNAVAILABLE,
    }


def test_the_text_form_is_the_one_other_programs_read() -> None:
    error = DriverError(Code.RESOURCE_EXHAUSTED, "no quota left")
    assert str(error) == (
        "machine codes error: code = [ResourceExhausted] message = [no quota left]"
    )


@given(code=st.sampled_from(Code), message=balanced)
def test_an_error_with_balanced_brackets_survives_its_text(code: Code, message: str) -> None:
    decoded = decode(str(DriverError(code, message)))
    assert decoded is not None
    assert (decoded.code, decoded.message) == (code, message)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "connection refused",
        "one [group]",
        "[three] [groups] [here]",
        "code = [NotFound] message = [unbalanced [inner]",
    ],
)
def test_a_text_without_exactly_two_groups_is_not_decodable(text: str) -> None:
    assert decode(text) is None


def test_a_closing_bracket_that_closes_nothing_is_ignored() -> None:
    decoded = decode("a] code = [NotFound] b] message = [gone] c]")
    assert decoded is not None
    assert (decoded.code, decoded.message) == (Code.NOT_FOUND, "gone")


def test_nested_brackets_stay_in_their_group() -> None:
    decoded = decode("machine codes error: code = [Internal] message = [ids: [a], [b [c]]]")
    assert decoded is not None
    assert decoded.message == "ids: [a], [b [c]]"


@given(st.text())
def test_decoding_never_fails(text: str) -> None:
    decode(text)


def test_a_typed_error_needs_no_decoding_even_if_its_text_could_not_be() -> None:
    error = DriverError(Code.INTERNAL, "half a [bracket")
    assert decode(str(error)) is None
    assert as_driver_error(error) is error


def test_a_timeout_is_a_deadline_and_a_foreign_error_is_nothing_known() -> None:
    timeout = as_driver_error(TimeoutError())
    assert timeout is not None and timeout.code is Code.DEADLINE_EXCEEDED
    assert as_driver_error(RuntimeError("boom")) is None


def test_a_foreign_error_with_the_text_form_is_understood() -> None:
    error = as_driver_error(RuntimeError("machine codes error: code = [Aborted] message = [busy]"))
    assert error is not None and error.code is Code.ABORTED


def test_an_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(DriverError(Code.ABORTED, "busy", last_known_state="s")))
    assert (error.code, error.message, error.last_known_state) == (Code.ABORTED, "busy", "s")
