from __future__ import annotations

import random
from collections import Counter
from contextlib import ExitStack
from typing import Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.controllers.provider import Places, Purpose

CREATION, DELETION = Purpose.CREATION, Purpose.DELETION


def test_a_full_house_turns_away_and_calls_when_there_is_room() -> None:
    woken: list[str] = []
    places = Places(width=1, wake=woken.append)
    with places.place(CREATION, "a", class_key="c") as a:
        assert a
        with places.place(CREATION, "b", class_key="c") as b:
            assert not b
        with places.place(DELETION, "c", class_key="c") as c:
            assert c
        assert woken == []
    assert woken == ["b"]


def test_who_was_called_and_does_not_come_in_passes_the_call_on() -> None:
    woken: list[str] = []
    places = Places(width=1, wake=woken.append)
    with places.place(CREATION, "a", class_key="c"):
        for key in ("b", "c"):
            with places.place(CREATION, key, class_key="c") as placed:
                assert not placed
    with places.attending("b"):
        pass
    assert woken == ["b", "c"]


def test_a_place_is_free_again_after_an_error() -> None:
    places = Places(width=1, wake=lambda _: None)
    with pytest.raises(RuntimeError), places.place(CREATION, "a", class_key="c"):
        raise RuntimeError
    with places.place(CREATION, "b", class_key="c") as placed:
        assert placed


def test_a_place_is_kept_for_whom_it_was_offered_to() -> None:
    woken: list[str] = []
    places = Places(width=1, wake=woken.append)
    with places.place(CREATION, "a", class_key="c"):
        _ask(places, "b")
    assert woken == ["b"]
    assert not _ask(places, "late")
    assert _ask(places, "b")
    assert woken == ["b", "late"]


def test_a_pass_that_fails_before_it_asks_gives_its_place_to_the_next() -> None:
    woken: list[str] = []
    places = Places(width=1, wake=woken.append)
    with places.place(CREATION, "a", class_key="c"):
        for key in ("b", "c"):
            _ask(places, key)
    with pytest.raises(RuntimeError), places.attending("b"):
        raise RuntimeError
    assert woken == ["b", "c"]


def test_a_place_offered_to_a_pass_that_still_runs_is_kept_for_the_next_one() -> None:
    woken: list[str] = []
    places = Places(width=1, wake=woken.append)
    with ExitStack() as other:
        other.enter_context(places.place(CREATION, "a", class_key="c"))
        with places.attending("b"):
            _ask(places, "b")
            other.close()
            assert woken == ["b"]
    assert not _ask(places, "late")
    with places.attending("b"):
        assert _ask(places, "b")


def test_a_key_whose_class_was_changed_waits_in_its_new_line() -> None:
    woken: list[str] = []
    places = Places(width=1, wake=woken.append)
    with ExitStack() as all_, ExitStack() as first:
        first.enter_context(places.place(CREATION, "a", class_key="x"))
        all_.enter_context(places.place(CREATION, "r", class_key="reserve"))
        _ask(places, "b", "x")
        _ask(places, "c", "y")
        _ask(places, "b", "z")
        first.close()
        assert woken == ["c"]
        assert not _ask(places, "b", "z")


def test_no_places_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match="0 places"):
        Places(width=0, wake=lambda _: None)


def _ask(places: Places, key: str, class_key: str = "c") -> bool:
    with places.place(CREATION, key, class_key=class_key) as placed:
        return placed


# ---- a model: workers take ready keys in any order, calls end in any order ----------------------


class House:
    """Keys that each want one call; the first letter is its class. Checks each place given."""

    def __init__(self, width: int) -> None:
        self.places = Places(width=width, wake=self._wake)
        self.width = width
        self.ready: list[str] = []
        self.inside: dict[str, ExitStack] = {}
        self.kept: set[str] = set()
        self.asked: list[str] = []
        self.called: list[str] = []
        self.served: list[str] = []
        self.passes: Counter[str] = Counter()
        self.gone: set[str] = set()
        self._over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        for stack in self.inside.values():
            stack.close()

    def _wake(self, key: str) -> None:
        if self._over:
            return
        assert key not in self.kept, "woken twice for one place"
        self._given(key)
        self.kept.add(key)
        self.called.append(key)
        self.ready.append(key)

    def _given(self, key: str) -> None:
        """``key`` is about to have a place: nobody may have a better claim to it."""
        waiting, held = self.waiting(), self.held()
        assert next(k for k in waiting if k[0] == key[0]) == key, "overtaken in the own class"
        assert all(held[key[0]] <= held[other[0]] for other in waiting), "a class has fewer"

    def waiting(self) -> list[str]:
        busy = {*self.inside, *self.served, *self.gone, *self.kept}
        return [key for key in self.asked if key not in busy]

    def held(self) -> Counter[str]:
        return Counter(key[0] for key in (*self.inside, *self.kept))

    def visit(self, key: str, *, fails: bool = False) -> None:
        """One pass over ``key``."""
        self.passes[key] += 1
        before = set(self.kept)
        with self.places.attending(key):
            if key in self.gone or fails:
                self.kept.discard(key)
                if key in self.asked:
                    self.asked.remove(key)  # gave up its turn
                return
            if key in self.inside or key in self.served:
                return
            if key not in self.asked:
                self.asked.append(key)
            stack = ExitStack()
            if stack.enter_context(self.places.place(CREATION, key, class_key=key[0])):
                if key not in self.kept:
                    self._given(key)
                self.kept.discard(key)
                self.inside[key] = stack
            else:
                stack.close()
                assert key not in before, "a place was kept for it, and it was turned away"

    def leave(self, key: str) -> None:
        self.served.append(key)
        self.inside.pop(key).close()

    def drain(self, choose: random.Random) -> None:
        while self.ready or self.inside:
            if self.ready:
                self.visit(self.ready.pop(choose.randrange(len(self.ready))))
            else:
                self.leave(choose.choice(sorted(self.inside)))


def test_a_class_gets_its_places_in_order_of_arrival_and_no_key_is_woken_in_vain() -> None:
    with House(2) as house:
        keys = [f"c{n:02}" for n in range(12)]
        for key in keys:
            house.visit(key)
        house.drain(random.Random(7))
        assert sorted(house.served) == keys
        assert house.called == keys[2:]
        assert [house.passes[key] for key in keys] == [1, 1] + [2] * 10  # to ask, and to be served


def test_one_class_that_fills_the_house_leaves_room_for_others() -> None:
    with House(50) as house:
        for n in range(200):
            house.visit(f"a{n:03}")
        assert house.held() == {"a": 50}
        for name in "bcdef":
            for n in range(20):
                house.visit(f"{name}{n:03}")
        assert house.held() == {"a": 50, "b": 5, "c": 3, "d": 1, "e": 1}
        for n in range(11):
            house.leave(f"a{n:03}")
            while house.ready:
                house.visit(house.ready.pop())
        # What ends first fills the reserve, by one for who has none; then they share.
        assert house.held()["f"] >= 1
        assert len(house.inside) >= 50
        house.drain(random.Random(1))
        assert len(house.served) == 300


def test_even_where_there_is_one_place_a_second_class_does_not_wait_for_the_first() -> None:
    with House(1) as house:
        for key in ("a1", "a2", "b1", "b2"):
            house.visit(key)
        assert house.held() == {"a": 1, "b": 1}


@given(
    width=st.integers(1, 12),
    steps=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 10_000)), max_size=150),
    seed=st.integers(0, 1000),
)
@settings(max_examples=300, deadline=None)
def test_whatever_comes_and_goes_places_are_full_and_fair(
    width: int, steps: list[tuple[int, int]], seed: int
) -> None:
    with House(width) as house:
        made = 0
        for kind, pick in steps:
            match kind:
                case 0 | 1 | 2 | 3:
                    made += 1
                    house.visit(f"{'abcd'[pick % 4]}{made:04}")
                case 4 | 5 if house.ready:
                    house.visit(house.ready.pop(pick % len(house.ready)))
                case 6 | 7 if house.inside:
                    house.leave(sorted(house.inside)[pick % len(house.inside)])
                case 8 if house.waiting():
                    key = house.waiting()[pick % len(house.waiting())]
                    house.gone.add(key)  # deleted: its own pass finds that out
                    house.visit(key)
                case 9 if house.ready:
                    house.visit(house.ready.pop(pick % len(house.ready)), fails=True)
                case _:
                    continue
            _check(house)
        house.drain(random.Random(seed))
        assert not house.waiting(), "nobody who waits is forgotten"
        assert not house.kept
        for n in range(width):  # nothing leaked: one class may have them all
            house.visit(f"z{n}")
        assert len(house.inside) == width


def _check(house: House) -> None:
    taken, waiting, held = len(house.inside) + len(house.kept), house.waiting(), house.held()
    most = house.width + max(1, house.width // 5)
    assert taken <= most
    assert not waiting or taken >= house.width, "somebody waits beside a free place"
    if taken < most:
        assert all(held[key[0]] for key in waiting), "a class with none waits beside a reserve"


@given(
    width=st.integers(1, 10),
    crowds=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    chance=st.randoms(use_true_random=False),
)
@settings(deadline=None)
def test_before_a_class_with_none_gets_its_first_place_no_other_gets_two(
    width: int, crowds: list[int], chance: random.Random
) -> None:
    with House(width) as house:
        for name, crowd in zip("abcdef", crowds, strict=False):
            for n in range(crowd):
                house.visit(f"{name}{n:03}")
        for _ in range(chance.randrange(20)):
            if house.inside:
                house.leave(chance.choice(sorted(house.inside)))
            while house.ready:
                house.visit(house.ready.pop())
        house.visit("z000")
        got: Counter[str] = Counter()
        while "z000" not in house.inside:
            before = set(house.inside)
            house.leave(chance.choice(sorted(house.inside)))
            while house.ready:
                house.visit(house.ready.pop(chance.randrange(len(house.ready))))
            got.update(key[0] for key in house.inside if key not in before and key != "z000")
        assert not got or max(got.values()) <= 1


# ---- updates ------------------------------------------------------------------------------------


def test_updates_have_a_fifth_of_the_places_and_no_more_of_a_class_than_it_may_have() -> None:
    woken, most = list[str](), {"c": 1.0, "d": 9.0}
    places = Places(width=20, wake=woken.append, updating=most.__getitem__)
    assert places.most == 2 * (20 + 4) + (4 + 1)
    with ExitStack() as stack:

        def update(key: str) -> bool:
            return stack.enter_context(places.place(Purpose.UPDATE, key, class_key=key[0]))

        assert [update(key) for key in ("c1", "c2", "c3")] == [True, False, False]
        assert [update("d1"), update("d2")] == [True, True]
        most["c"] = 9.0
        assert woken == []
        places.reconsider(Purpose.UPDATE)
        assert woken == ["c2"], "all places but the reserve are taken now"
        assert update("c2")


def test_a_class_that_may_have_none_holds_up_no_other() -> None:
    woken, most = list[str](), {"c": 0.0, "d": 1.0}
    places = Places(width=5, wake=woken.append, updating=most.__getitem__)

    def update(key: str) -> bool:
        with places.place(Purpose.UPDATE, key, class_key=key[0]) as placed:
            return placed

    assert [update("c1"), update("d1"), update("c2")] == [False, True, False]
    most["c"] = 1.0
    places.reconsider(Purpose.UPDATE)
    assert woken == ["c1"], "in order of arrival, and one"
    assert update("c1")
    assert woken == ["c1", "c2"]
