from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.controllers.provider import Places, Purpose


def test_a_full_house_turns_away_and_calls_when_there_is_room() -> None:
    woken: list[str] = []
    places = Places(width=1, wake=woken.append)
    with places.place(Purpose.CREATION, "a", class_key="c") as a:
        assert a
        with places.place(Purpose.CREATION, "b", class_key="c") as b:
            assert not b
        with places.place(Purpose.DELETION, "c", class_key="c") as c:
            assert c
        assert woken == []
    assert woken == ["b"]


def test_who_was_called_and_does_not_come_in_passes_the_call_on() -> None:
    woken: list[str] = []
    places = Places(width=1, wake=woken.append)
    with places.place(Purpose.CREATION, "a", class_key="c"):
        for key in ("b", "c"):
            with places.place(Purpose.CREATION, key, class_key="c") as placed:
                assert not placed
    with places.attending("b"):
        pass
    assert woken == ["b", "c"]


def test_a_place_is_free_again_after_an_error() -> None:
    places = Places(width=1, wake=lambda _: None)
    with pytest.raises(RuntimeError), places.place(Purpose.CREATION, "a", class_key="c"):
        raise RuntimeError
    with places.place(Purpose.CREATION, "b", class_key="c") as placed:
        assert placed


@given(
    width=st.integers(1, 3),
    needs=st.lists(st.booleans(), min_size=1, max_size=10),
    chance=st.randoms(use_true_random=False),
)
def test_nobody_who_waits_is_forgotten(
    width: int, needs: list[bool], chance: random.Random
) -> None:
    """Workers take ready keys in any order; each key that needs a place gets one in the end."""
    ready = [f"k{n}" for n in range(len(needs))]
    wanting = {f"k{n}" for n, need in enumerate(needs) if need}
    places = Places(width=width, wake=lambda key: ready.append(key))
    inside: list[tuple[str, object]] = []
    served: set[str] = set()
    while ready or inside:
        if inside and (not ready or chance.random() < 0.4):
            key, context = inside.pop(chance.randrange(len(inside)))
            context.__exit__(None, None, None)  # type: ignore[attr-defined]
            continue
        key = ready.pop(chance.randrange(len(ready)))
        with places.attending(key):
            pass
        if key not in wanting or key in served:
            continue
        context = places.place(Purpose.CREATION, key, class_key="c")
        if context.__enter__():
            served.add(key)
            inside.append((key, context))
        else:
            context.__exit__(None, None, None)
        assert len(inside) <= width
    assert served == wanting
