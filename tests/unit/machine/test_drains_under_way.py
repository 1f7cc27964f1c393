"""What each drain watches is found without asking each, and says what asking each would say."""

from __future__ import annotations

import random
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from mcm.controllers.machine.drains_under_way import Drain, DrainsUnderWay
from mcm.drain.memory import DrainMemory, Watched
from mcm.drain.request import Purpose
from mcm.drain.watch import DrainWatch

_UIDS = ("a", "b", "c")
_KEYS = ("one/x", "one/y", "onetwo/x", "two/x")
_some = st.frozensets(st.sampled_from(_KEYS))
_watched = st.builds(Watched, budgets=_some, claims=_some, volumes=_some)
_steps = st.lists(
    st.tuples(st.sampled_from(("begin", "watch", "end")), st.sampled_from(_UIDS), _watched),
    max_size=30,
)


_NOTHING = Watched()


def _drain(name: str, watched: Watched = _NOTHING) -> Drain:
    memory = DrainMemory(random.Random(1))
    memory.watched = watched
    return Drain(f"ns/{name}", memory, DrainWatch(Purpose.DELETION))


@given(_steps)
def test_they_are_found_as_if_each_were_asked(steps: list[tuple[str, str, Watched]]) -> None:
    under_way = DrainsUnderWay()
    for what, uid, watched in steps:
        match what:
            case "begin":
                under_way[uid] = _drain(uid, watched)
            case "watch" if uid in under_way:
                under_way[uid].memory.watched = watched
            case "end":
                under_way.pop(uid, None)
        _agrees(under_way)


def _agrees(under_way: DrainsUnderWay) -> None:
    def asked(field: str, key: str) -> set[str]:
        found = under_way.items()
        return {uid for uid, d in found if key in getattr(d.memory.watched, field)}

    for key in _KEYS:
        assert _uids(under_way, under_way.held_by(key)) == asked("budgets", key)
        assert _uids(under_way, under_way.awaiting_claim(key)) == asked("claims", key)
        assert _uids(under_way, under_way.awaiting_volume(key)) == asked("volumes", key)
    for namespace in ("one", "two", "onetwo", "o"):
        of_namespace = [key for key in _KEYS if key.startswith(f"{namespace}/")]
        expected = {uid for key in of_namespace for uid in asked("budgets", key)}
        assert _uids(under_way, under_way.held_in(namespace)) == expected


def _uids(under_way: DrainsUnderWay, found: Iterable[Drain]) -> set[str]:
    drains = list(found)
    assert len({id(drain) for drain in drains}) == len(drains), "one is found twice"
    return {uid for uid, drain in under_way.items() if any(drain is d for d in drains)}


def test_a_drain_that_ended_is_filed_no_more_whatever_its_last_pass_says() -> None:
    under_way = DrainsUnderWay()
    drain = _drain("a")
    under_way["a"] = drain
    del under_way["a"]
    drain.memory.watched = Watched(budgets=frozenset({"one/x"}))
    assert not list(under_way.held_by("one/x"))


def test_a_drain_may_end_while_those_that_a_budget_holds_are_gone_through() -> None:
    under_way = DrainsUnderWay()
    for name in ("a", "b"):
        under_way[name] = _drain(name, Watched(budgets=frozenset({"one/x"})))
    seen = []
    for drain in under_way.held_by("one/x"):
        seen.append(drain.machine_key)
        drain.memory.watched = Watched()
    assert seen == ["ns/a", "ns/b"]
