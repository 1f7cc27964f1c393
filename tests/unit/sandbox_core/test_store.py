from __future__ import annotations

import random

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.store import Change, ChangeType, Compacted, Store, Stored


def body(value: int = 0) -> JSONObject:
    return {"metadata": {"name": "x"}, "value": value}


def test_each_write_moves_one_revision_shared_by_all_collections() -> None:
    store = Store()
    first = store.create("pods", "ns", "a", body())
    second = store.create("nodes", "", "n", body())
    third = store.replace("pods", first, body(1))
    assert [s.revision for s in (first, second, third)] == [2, 3, 4]
    assert store.revision == 4
    assert third.created == first.created == 2
    assert store.collection("pods").get("ns/a") is third
    assert store.collection("nodes").get("n") is second


def test_an_object_is_encoded_once_with_its_revision() -> None:
    stored = Store().create("pods", "ns", "a", body(7))
    assert orjson.loads(stored.encoded) == stored.body
    assert stored.body["metadata"] == {"name": "x", "resourceVersion": "2"}
    assert stored.encoded is stored.encoded


def test_only_the_current_state_can_be_replaced_or_deleted() -> None:
    store = Store()
    first = store.create("pods", "ns", "a", body())
    store.replace("pods", first, body(1))
    with pytest.raises(KeyError):
        store.replace("pods", first, body(2))
    with pytest.raises(KeyError):
        store.delete("pods", first)
    with pytest.raises(KeyError):
        store.create("pods", "ns", "a", body())
    assert store.revision == 3


def _kept(name: str, revision: int) -> Stored:
    encoded = orjson.dumps({"metadata": {"name": name, "resourceVersion": str(revision)}})
    return Stored.restored("ns", name, encoded, api_version="v1", revision=revision)


def test_restored_objects_are_there_and_can_be_changed_as_any_other() -> None:
    store = Store()
    store.restore("pods", [_kept("b", 11), _kept("a", 10)])
    pods = store.collection("pods")
    assert [stored.key for stored in pods.ordered()] == ["ns/a", "ns/b"]
    assert store.revision == 11
    first = pods.ordered()[0]
    assert first.body == {"metadata": {"name": "a", "resourceVersion": "10"}}
    assert first.metadata is first.body["metadata"]
    changed = store.replace("pods", first, body(1))
    assert (changed.revision, changed.created) == (12, 10)
    assert store.delete("pods", pods.ordered()[1]).revision == 13
    with pytest.raises(KeyError):
        store.create("pods", "ns", "a", body())


def test_nobody_hears_of_restored_objects_and_no_watch_begins_before_them() -> None:
    store = Store()
    heard: list[Change] = []
    store.subscribe(heard.append)
    store.restore("pods", [_kept("a", 10)])
    assert heard == []
    with pytest.raises(Compacted):
        store.collection("pods").since(9)
    store.replace("pods", store.collection("pods").ordered()[0], body(1))
    assert [change.revision for change in store.collection("pods").since(10)] == [11]
    store.restore("nodes", [])
    assert store.revision == 11


def test_a_restored_object_has_no_attributes_but_its_own() -> None:
    with pytest.raises(AttributeError, match="no attribute 'spec'"):
        getattr(_kept("a", 10), "spec")  # noqa: B009 - mypy knows better


def test_objects_are_listed_by_key_and_namespace() -> None:
    store = Store()
    for key in ("b/z", "a/y", "a-b/x", "a/x", "a0/w"):
        namespace, _, name = key.partition("/")
        store.create("pods", namespace, name, body())
    pods = store.collection("pods")
    assert [s.key for s in pods.ordered()] == ["a-b/x", "a/x", "a/y", "a0/w", "b/z"]
    assert [s.key for s in pods.ordered("a")] == ["a/x", "a/y"]
    assert pods.ordered("c") == []


def test_subscribers_hear_of_each_change_in_order_until_they_leave() -> None:
    store = Store()
    heard: list[tuple[str, int]] = []
    leave = store.subscribe(lambda change: heard.append(("pods", change.revision)), "pods")
    store.subscribe(lambda change: heard.append(("all", change.revision)))
    pod = store.create("pods", "", "a", body())
    store.create("nodes", "", "n", body())
    leave()
    leave()
    store.delete("pods", pod)
    assert heard == [("pods", 2), ("all", 2), ("all", 3), ("all", 4)]


def test_a_subscriber_may_write_and_all_hear_in_order() -> None:
    store = Store()
    heard: list[tuple[int, str]] = []

    def echo(change: Change) -> None:
        if change.stored.name == "a" and change.type is ChangeType.ADDED:
            store.replace("pods", change.stored, body(1))
            store.create("pods", "", "b", body())

    store.subscribe(echo)
    store.subscribe(lambda change: heard.append((change.revision, change.stored.name)))
    store.create("pods", "", "a", body())
    assert heard == [(2, "a"), (3, "a"), (4, "b")]


def test_a_subscriber_that_fails_does_not_silence_the_store() -> None:
    store = Store()
    heard: list[int] = []

    def fail(change: Change) -> None:
        if change.revision == 2:
            raise ZeroDivisionError

    store.subscribe(lambda change: heard.append(change.revision))
    store.subscribe(fail)
    with pytest.raises(ZeroDivisionError):
        store.create("pods", "", "a", body())
    store.create("pods", "", "b", body())
    assert heard == [2, 3]


def test_a_window_bounds_the_log() -> None:
    store = Store(window=3)
    stored = store.create("pods", "", "a", body())
    for value in range(5):
        stored = store.replace("pods", stored, body(value))
    pods = store.collection("pods")
    assert [c.revision for c in pods.log] == [5, 6, 7]
    assert [c.revision for c in pods.since(4)] == [5, 6, 7]
    with pytest.raises(Compacted) as error:
        pods.since(3)
    assert (error.value.revision, error.value.oldest) == (3, 4)
    store.set_window(1)
    assert [c.revision for c in pods.log] == [7]
    store.create("nodes", "", "a", body())
    store.create("nodes", "", "b", body())
    assert len(store.collection("nodes").log) == 1


def test_compaction_can_be_of_one_collection() -> None:
    store = Store()
    store.create("pods", "", "a", body())
    store.create("nodes", "", "a", body())
    store.compact("pods")
    with pytest.raises(Compacted):
        store.collection("pods").since(1)
    assert len(store.collection("nodes").since(1)) == 1
    store.compact()
    with pytest.raises(Compacted):
        store.collection("nodes").at(1)


def test_a_departed_object_is_its_former_self_at_the_new_revision() -> None:
    store = Store()
    changes: list[Change] = []
    store.subscribe(changes.append)
    first = store.create("pods", "", "a", body(1))
    second = store.replace("pods", first, body(2))
    store.delete("pods", second)
    assert changes[1].departed.body["value"] == 1
    assert changes[1].departed.revision == 3
    assert changes[1].departed is changes[1].departed
    assert changes[2].departed is changes[2].stored
    assert changes[2].stored.body == {
        "metadata": {"name": "x", "resourceVersion": "4"},
        "value": 2,
    }
    assert second.revision == 3  # the former state itself stays as it was


def test_kept_snapshots_are_few() -> None:
    store = Store(window=1)
    pods = store.collection("pods")
    for index in range(20):
        store.create("pods", "", f"p{index}", body())
        pods.keep(store.revision, pods.at(store.revision))
    assert len(pods.at(21)) == 20
    assert len(pods.at(6)) == 5
    with pytest.raises(Compacted):
        pods.at(5)


Snapshot = dict[str, tuple[int, object]]


def snapshot_of(objects: list[Stored] | tuple[Stored, ...]) -> Snapshot:
    return {s.key: (s.revision, s.body["value"]) for s in objects}


class StoreAgainstSnapshots(RuleBasedStateMachine):
    """The store against the plainest model: a full copy of the state at every revision."""

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(window=6)
        self.pods = self.store.collection("pods")
        self.history: dict[int, Snapshot] = {1: {}}
        self.random = random.Random(0)
        self.replayed: Snapshot = {}
        self.heard: list[int] = []
        self.store.subscribe(self.follow, "pods")

    def follow(self, change: Change) -> None:
        """A mirror by changes alone."""
        self.heard.append(change.revision)
        if change.type is ChangeType.DELETED:
            del self.replayed[change.stored.key]
        else:
            assert (change.stored.key in self.replayed) == (change.type is ChangeType.MODIFIED)
            self.replayed[change.stored.key] = (change.revision, change.stored.body["value"])

    def remember(self) -> None:
        self.history[self.store.revision] = dict(self.replayed)

    @rule(name=st.sampled_from("abcd"), value=st.integers(0, 9))
    def create_or_replace(self, name: str, value: int) -> None:
        live = self.pods.get(f"ns/{name}")
        if live is None:
            self.store.create("pods", "ns", name, body(value))
        else:
            self.store.replace("pods", live, body(value))
        self.remember()

    @precondition(lambda self: len(self.pods) > 0)
    @rule(index=st.integers(min_value=0))
    def delete(self, index: int) -> None:
        objects = self.pods.ordered()
        self.store.delete("pods", objects[index % len(objects)])
        self.remember()

    @rule()
    def write_elsewhere(self) -> None:
        self.store.create("others", "", str(self.store.revision), body())
        self.remember()

    @rule()
    def compact(self) -> None:
        self.store.compact("pods")

    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        revision = data.draw(st.integers(min_value=1, max_value=self.store.revision))
        try:
            objects = self.pods.at(revision)
            changes = self.pods.since(revision)
        except Compacted:
            assert revision < self.pods.floor
            return
        assert snapshot_of(objects) == self.history[revision]
        assert [o.key for o in objects] == sorted(self.history[revision])
        mirror = dict(self.history[revision])
        for change in changes:
            if change.type is ChangeType.DELETED:
                del mirror[change.stored.key]
            else:
                mirror[change.stored.key] = (change.revision, change.stored.body["value"])
        assert mirror == self.replayed

    @invariant()
    def current_state_is_the_mirror(self) -> None:
        assert snapshot_of(self.pods.ordered()) == self.replayed
        assert self.heard == sorted(set(self.heard))
        assert len(self.pods.log) <= 6


TestStoreAgainstSnapshots = StoreAgainstSnapshots.TestCase
TestStoreAgainstSnapshots.settings = settings(max_examples=40, stateful_step_count=40)


@given(st.sets(st.text("ab-0.", min_size=1, max_size=5), max_size=12))
def test_a_namespace_is_never_mistaken_for_its_neighbours(keys: set[str]) -> None:
    store = Store()
    for key in keys:
        store.create("pods", key, "x", body())
    for stored in store.collection("pods").ordered():
        assert store.collection("pods").ordered(stored.namespace) == [stored]
