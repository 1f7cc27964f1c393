"""The guard itself: it catches what became a fifth dearer, and nothing that did not change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.controllers.machine.reconciler import MachineReconciler
from mcm.informers import Informer
from mcm.workqueue.state import QueueState
from tests.guard.cost import (
    BYTES,
    INSTRUCTIONS,
    Budget,
    Cost,
    complaint,
    renewed,
    this_python,
    written,
)
from tests.guard.meter import Meter, counted, room_of
from tests.guard.paths import PATHS

_EVENT, _OPERATION = "Machine event, from chunk to queue", "work queue: operation"
_IDLE, _WEIGHT = "reconcile of a machine that changes nothing", "Machine in memory"


def _burn(instructions: int) -> None:
    for _ in range(instructions // 3):  # a turn of a loop takes that many, or four
        pass


def _budget(found: Cost) -> Budget:
    return Budget(found.unit, found.amount, found.codec_calls, found.rooms)


@pytest.mark.parametrize(
    ("path", "owner", "name", "share"),
    [
        (_OPERATION, QueueState, "add", 3.0),  # one of its three operations
        (_EVENT, QueueState, "add", 1.0),
        (_IDLE, MachineReconciler, "reconcile", 1.0),
    ],
)
def test_a_function_that_became_dearer_is_caught(
    path: str, owner: Any, name: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = PATHS[path]()
    assert not complaint(path, PATHS[path](), _budget(before))
    original: Callable[..., object] = getattr(owner, name)
    more = round(0.2 * before.amount * share)

    def dearer(*arguments: Any, **named: Any) -> object:
        _burn(more)
        return original(*arguments, **named)

    monkeypatch.setattr(owner, name, dearer)
    said = complaint(path, PATHS[path](), _budget(before))
    assert said.startswith(f"{path}: dearer by ")
    assert f"instead of {before.amount:,}" in said
    assert "make budgets" in said


def test_what_is_decoded_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    before = PATHS[_EVENT]()
    assert before.codec_calls >= 1
    original = QueueState.add

    def decoding(*arguments: Any, **named: Any) -> int:
        for _ in range(2):
            orjson.loads(b"{}")
        return original(*arguments, **named)

    monkeypatch.setattr(QueueState, "add", decoding)
    said = complaint(_EVENT, PATHS[_EVENT](), _budget(before))
    assert f"calls of codecs instead of {before.codec_calls}" in said


def test_objects_that_became_larger_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    before = PATHS[_WEIGHT]()
    assert before.unit == BYTES
    kept: list[bytes] = []
    original = Informer.deliver

    def keeping(informer: Any, changes: Any) -> None:
        kept.extend(b"x" * round(0.2 * before.amount) for change in changes if change.old)
        original(informer, changes)

    monkeypatch.setattr(Informer, "deliver", keeping)
    assert ": dearer by " in complaint(_WEIGHT, PATHS[_WEIGHT](), _budget(before))


@given(budget=st.integers(1000, 10**7), part=st.floats(0.5, 1.5))
def test_whatever_passes_does_not_pass_when_it_becomes_a_fifth_dearer(
    budget: int, part: float
) -> None:
    held = Budget(INSTRUCTIONS, budget)
    now = round(budget * part)
    if not complaint("p", Cost(INSTRUCTIONS, now), held):
        assert complaint("p", Cost(INSTRUCTIONS, round(now * 1.2)), held)
    assert not complaint("p", Cost(INSTRUCTIONS, round(budget * 1.05)), held)


def test_a_complaint_names_the_rooms_and_what_to_do() -> None:
    dearer = Cost(INSTRUCTIONS, 1300, 0, {"informers": 700, "workqueue": 600})
    held = Budget(INSTRUCTIONS, 1000, 0, {"informers": 400, "workqueue": 600})
    said = complaint("p", dearer, held)
    assert said.splitlines()[:2] == [
        "p: dearer by 30% (1,300 instructions instead of 1,000)",
        "  informers: 700 instead of 400",
    ]
    assert "workqueue" not in said
    assert "--explain 'p'" in said
    cheaper = complaint("p", Cost(INSTRUCTIONS, 800), Budget(INSTRUCTIONS, 1000))
    assert cheaper.startswith("p: cheaper by 20% ")
    assert "has no budget" in complaint("p", dearer, None)


def test_renewed_budgets_of_other_pythons_move_along() -> None:
    here = this_python()
    old = {here: {"p": Budget(INSTRUCTIONS, 100), "q": Budget(INSTRUCTIONS, 10)}}
    old["2.7"] = {"p": Budget(INSTRUCTIONS, 90), "q": Budget(INSTRUCTIONS, 11)}
    found = renewed(old, {"p": Cost(INSTRUCTIONS, 200), "new": Cost(BYTES, 5)})
    assert found[here] == {"p": Budget(INSTRUCTIONS, 200), "new": Budget(BYTES, 5)}
    guesses = {"p": Budget(INSTRUCTIONS, 180), "new": Budget(BYTES, 5)}
    assert found["2.7"] == {path: replace(b, guessed=True) for path, b in guesses.items()}
    assert renewed({"2.7": found["2.7"]}, {"p": Cost(BYTES, 1)})["2.7"] == {"p": found["2.7"]["p"]}
    # Measured in the other's turn, a guess is replaced, and moves nothing back.
    back = renewed({here: found["2.7"], "2.7": found[here]}, {"p": Cost(INSTRUCTIONS, 190)})
    assert back == {here: {"p": Budget(INSTRUCTIONS, 190)}, "2.7": {"p": found[here]["p"]}}
    assert renewed(found, {"p": Cost(INSTRUCTIONS, 200), "new": Cost(BYTES, 5)}) == found
    assert written(found).endswith(b"}\n")


# ---- the meter ---------------------------------------------------------------------------------


def test_counts_are_the_same_each_time_and_grow_with_the_work() -> None:
    _queue_work(1)  # Python 3.13 tells nothing of a function's first call ever
    few, many = _queue_work(10), _queue_work(20)
    assert few.instructions == _queue_work(10).instructions > 0
    assert 1.8 < many.instructions / few.instructions < 2.2
    assert few.by_room().keys() == {"workqueue"}
    assert sum(few.by_function().values()) == few.instructions


def _queue_work(keys: int) -> Meter:
    state: QueueState[int] = QueueState()
    return counted(lambda: [state.add(key, priority=0, now=0.0) for key in range(keys)])


def test_rooms_are_named_as_people_speak_of_them() -> None:
    assert room_of(Informer.deliver.__code__.co_filename) == "informers"
    assert room_of(MachineReconciler.reconcile.__code__.co_filename) == "controllers/machine"
    assert room_of(__file__) == "libraries"
