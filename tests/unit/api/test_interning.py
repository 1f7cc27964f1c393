from __future__ import annotations

from mcm.api import interning
from mcm.api.codec import decode_object
from mcm.api.core import PODS, NodeCondition, Pod, PodSpec, Toleration
from mcm.api.meta import ObjectMeta


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


def _pod(key: str) -> Pod:
    tolerations = (Toleration(key=key, operator="Exists"),)
    return Pod(metadata=ObjectMeta(name="p"), spec=PodSpec(tolerations=tolerations))


def test_equal_tolerations_of_decoded_pods_become_the_same_ones() -> None:
    body = b'{"metadata":{"name":"p"},"spec":{"tolerations":[{"key":"k","operator":"Exists"}]}}'
    first, second = decode_object(PODS, body), decode_object(PODS, body)
    assert first == second == _pod("k")
    assert first.spec.tolerations is second.spec.tolerations


def test_the_memory_of_tolerations_is_bounded() -> None:
    for number in range(10_000):
        interning.share_tolerations(_pod(f"key-{number}"))
    assert len(interning._tolerations) <= interning._LIMIT + 1
