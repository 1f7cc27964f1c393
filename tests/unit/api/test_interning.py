from __future__ import annotations

from mcm.api import interning
from mcm.api.core import NodeCondition


def _condition(number: int, message: str = "") -> NodeCondition:
    """With texts that are no constants of the interpreter."""
    message = message or f"message {number}"
    return NodeCondition(type="Ready", status="True", reason=f"reason-{number}", message=message)


def test_equal_texts_become_the_same_one() -> None:
    first, second = _condition(1), _condition(1)
    assert first.reason is not second.reason
    interning.share_condition_texts((first, second))
    assert first == second == _condition(1)
    assert first.reason is second.reason and first.message is second.message


def test_long_messages_are_left_alone() -> None:
    first, second = _condition(2, "x" * 200 + str(2)), _condition(2, "x" * 200 + str(2))
    interning.share_condition_texts((first, second))
    assert first == second and first.message is not second.message


def test_the_memory_of_texts_is_bounded() -> None:
    for number in range(10_000):
        interning.share_condition_texts((_condition(number),))
    assert len(interning._texts) <= interning._LIMIT + 4
