from __future__ import annotations

from mcm.controllers.owning.unconfirmed import UnconfirmedCreations


def test_names_wait_in_the_order_of_asking_until_they_are_seen() -> None:
    names = UnconfirmedCreations()
    for name in ("b", "a", "c"):
        names.add("ns/set", name)
    assert names.pending("ns/set", exists=lambda _: False) == ("b", "a", "c")
    assert names.pending("ns/set", exists=lambda name: name == "a") == ("b", "c")
    assert names.pending("ns/other", exists=lambda _: False) == ()


def test_nothing_is_remembered_of_an_owner_without_names() -> None:
    names = UnconfirmedCreations()
    names.add("ns/set", "a")
    names.add("ns/set", "b")
    names.settle("ns/set", "a")
    assert names.pending("ns/set", exists=lambda _: False) == ("b",)
    names.settle("ns/set", "b")
    names.settle("ns/set", "never asked for")
    names.add("ns/gone", "a")
    names.forget("ns/gone")
    names.forget("ns/unknown")
    assert len(names) == 0
    assert names._names == {}
