"""Lists reach a store in parts: the first one shows as it comes, later ones only when they are
whole; and neither takes the memory of a second fleet, nor leaves the work to the last moment."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterable, Sequence

import pytest

from bench.recorded_objects import KINDS
from mcm.api import codec
from mcm.api.core import PersistentVolume
from mcm.api.machine import Machine
from mcm.api.meta import KubeObject, ObjectMeta
from mcm.informers import Change, Store
from mcm.informers.listing import Listing
from mcm.informers.sharing import share_parts
from tests.unit.informers.test_store import A5, machine

COUNT = 500
PART = 10


def pages(kind: str, turn: int) -> Sequence[bytes]:
    """Return the ``turn``-th state of everything, as pages bring it."""
    starts = range(0, COUNT, PART)
    return [KINDS[kind].page(range(n, n + PART), COUNT, turn=turn) for n in starts]


def taken(
    store: Store[KubeObject], kind: str, turn: int, made: Sequence[bytes] = ()
) -> Listing[KubeObject]:
    """Let a store take all of a list but its end."""
    listing = store.begin_list()
    for page in made or pages(kind, turn):
        for obj in codec.decode_list(KINDS[kind].resource, page).items:
            store.take_listed(listing, obj)
    return listing


def version_of(turn: int) -> str:
    return codec.decode_list(
        KINDS["pods"].resource, KINDS["pods"].page(range(0), 0, turn=turn)
    ).metadata.resource_version


def test_the_first_list_shows_as_it_comes() -> None:
    store: Store[Machine] = Store()
    listing = store.begin_list()
    assert store.take_listed(listing, A5) == (Change(None, A5),)
    assert store.get("n/a") is A5
    assert store.resource_version == ""
    assert store.finish_list(listing, "10") == ()
    assert store.resource_version == "10"


def test_a_later_list_is_not_seen_before_it_is_whole() -> None:
    store: Store[Machine] = Store()
    store.replace([A5, machine("b", 6)], "10")
    listing = store.begin_list()
    now = machine("a", 15, "Failed")
    assert store.take_listed(listing, now) == ()
    assert store.take_listed(listing, machine("c", 16)) == ()
    assert [m.metadata.name for m in store.list()] == ["a", "b"]
    assert store.get("n/a") is A5
    changes = store.finish_list(listing, "20")
    assert [(c.object.metadata.name, c.new is None) for c in changes] == [
        ("b", True),
        ("c", False),
        ("a", False),
    ]
    assert store.get("n/a") is now


def test_a_list_that_broke_off_leaves_nothing_behind() -> None:
    store: Store[Machine] = Store()
    store.replace([A5], "10")
    store.take_listed(store.begin_list(), machine("a", 15, "Failed"))
    assert store.replace([A5], "12") == ()
    assert store.list() == (A5,)


def test_what_a_first_list_showed_before_it_broke_off_is_taken_back_if_it_is_gone() -> None:
    store: Store[Machine] = Store()
    b = machine("b", 6)
    store.take_listed(store.begin_list(), b)
    assert store.replace([A5], "12") == (Change(b, None, tombstone=True), Change(None, A5))


def test_an_own_write_between_two_parts_wins_over_the_list() -> None:
    store: Store[Machine] = Store()
    store.replace([A5], "10")
    listing = store.begin_list()
    store.take_listed(listing, machine("a", 15, "Failed"))
    own = machine("a", 25, "Terminating")
    store.observe(own)
    assert store.finish_list(listing, "20") == ()
    assert store.get("n/a") is own


def test_an_own_write_the_list_has_seen_is_succeeded_by_it() -> None:
    store: Store[Machine] = Store()
    store.replace([A5], "10")
    listing = store.begin_list()
    now = machine("a", 18, "Failed")
    store.take_listed(listing, now)
    own = machine("a", 15, "Terminating")
    store.observe(own)
    assert store.finish_list(listing, "20") == (Change(own, now),)


def test_an_own_deletion_during_the_first_list_is_not_undone_by_it() -> None:
    store: Store[Machine] = Store()
    listing = store.begin_list()
    store.take_listed(listing, A5)
    store.observe_deleted(A5)
    assert store.finish_list(listing, "10") == ()
    assert len(store) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_an_unchanged_object_stays_the_very_same(kind: str) -> None:
    store: Store[KubeObject] = Store()
    store.finish_list(taken(store, kind, 1), version_of(1))
    before = store.list()
    assert store.finish_list(taken(store, kind, 1), version_of(2)) == ()
    assert all(one is other for one, other in zip(before, store.list(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_sharing_parts_changes_no_object(kind: str) -> None:
    made = KINDS[kind]
    for before, after in ((1, 2), (2, 1), (1, 1)):
        known, obj, again = (
            codec.decode_list(made.resource, made.listed(3, turn=turn)).items
            for turn in (before, after, after)
        )
        for n in range(3):
            for other in range(3):  # what equals nothing but itself is shared with nothing
                share_parts(obj[n], known[other])
            assert obj[n] == again[n]
            share_parts(obj[n], known[n])
            assert obj[n].metadata.labels is known[n].metadata.labels
            assert obj[n].metadata.name is known[n].metadata.name


def test_json_of_whatever_form_is_shared_only_where_it_is_the_same() -> None:
    def volume(value: object) -> PersistentVolume:
        return PersistentVolume(metadata=ObjectMeta(name="v"), spec={"csi": {"fast": value}})

    for one, other in ((1, True), (1.0, 1), (0, False)):
        obj = volume(one)
        share_parts(obj, volume(other))
        assert repr(obj.spec) == repr({"csi": {"fast": one}})


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_that_brings_all_anew_takes_little_more_at_its_peak_than_what_is_kept(
    kind: str,
) -> None:
    store: Store[KubeObject] = Store()
    for label in KINDS[kind].indexed:
        store.add_index(label, _by_label(label))
    bodies = {turn: pages(kind, turn) for turn in (1, 2, 3)}
    tracemalloc.start()
    try:
        for turn, made in bodies.items():
            tracemalloc.reset_peak()
            store.finish_list(taken(store, kind, turn, made), version_of(turn))
            _, peak = tracemalloc.get_traced_memory()
            gc.collect()
            level, _ = tracemalloc.get_traced_memory()
            assert len(store) == COUNT
            # Pods share so much that the new state's own structs and keys weigh more than that.
            assert peak <= max(1.4 * level, level + 750 * COUNT), (turn, peak, level)
    finally:
        tracemalloc.stop()


def test_no_index_is_asked_when_a_list_ends_that_moves_nothing() -> None:
    """What is left to the end keeps the loop to itself: it may not grow with the indexes."""
    calls = 0

    def count_calls(obj: KubeObject) -> Iterable[str]:
        nonlocal calls
        calls += 1
        return (obj.metadata.name,)

    store: Store[KubeObject] = Store()
    store.add_index("name", count_calls)
    for turn in (1, 2, 3):
        listing = taken(store, "machines", turn)
        assert calls == COUNT, "each object is filed or compared once"
        assert len(store.finish_list(listing, version_of(turn))) == (0 if turn == 1 else COUNT)
        assert calls == COUNT
        calls = 0


def test_an_index_that_fails_costs_one_report_for_each_state(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(obj: Machine) -> Iterable[str]:
        raise LookupError(obj.metadata.name)

    store: Store[Machine] = Store()
    store.add_index("broken", broken)
    store.replace([A5], "10")
    store.replace([machine("a", 15, "Failed")], "20")
    assert store.index_errors == 2
    assert len(caplog.records) == 2


def _by_label(label: str) -> Callable[[KubeObject], Iterable[str]]:
    def values(obj: KubeObject) -> Iterable[str]:
        value = obj.metadata.labels.get(label)
        return (value,) if value else ()

    return values
