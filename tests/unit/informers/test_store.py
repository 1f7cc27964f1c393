from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from mcm.api.machine import CurrentStatus, Machine, MachineStatus
from mcm.api.meta import ObjectMeta
from mcm.informers import Change, Store


def machine(
    name: str, version: int, phase: str = "", *, uid: str = "", space: str = "n"
) -> Machine:
    meta = ObjectMeta(
        name=name, namespace=space, uid=uid or f"uid-{name}", resource_version=str(version)
    )
    return Machine(metadata=meta, status=MachineStatus(current_status=CurrentStatus(phase=phase)))


def by_phase(obj: Machine) -> Iterable[str]:
    return (obj.phase,) if obj.phase else ()


def filled(*machines: Machine, version: int = 10) -> Store[Machine]:
    store: Store[Machine] = Store()
    store.replace(machines, str(version))
    return store


def told(store: Store[Machine]) -> list[Change[Machine]]:
    changes: list[Change[Machine]] = []
    store.subscribe(changes.extend)
    return changes


A5 = machine("a", 5, "Running")
OPAQUE = ObjectMeta(name="a", namespace="n", uid="uid-a", resource_version="v-a")


# ---- reading


def test_objects_are_found_by_key_and_listed_by_namespace() -> None:
    other = machine("a", 6, space="m")
    store = filled(A5, other)
    assert store.get("n/a") is A5
    assert store.get("n/b") is None
    assert store.list() == (A5, other)
    assert store.list("m") == (other,)
    assert store.list("x") == ()
    assert "n/a" in store and "a" not in store
    assert list(store.keys()) == ["n/a", "m/a"]
    store.put(machine("b", 11, space="m"))
    assert [m.metadata.name for m in store.list("m")] == ["a", "b"]


def test_an_index_that_comes_late_knows_what_is_here_already() -> None:
    store = filled(A5, machine("b", 6, "Failed"))
    store.add_index("phase", by_phase)
    assert store.by_index("phase", "Running") == (A5,)
    assert store.by_index("phase", "Pending") == ()


def test_an_index_name_is_given_once_and_must_exist() -> None:
    store = filled()
    store.add_index("phase", by_phase)
    with pytest.raises(ValueError, match="phase"):
        store.add_index("phase", by_phase)
    with pytest.raises(KeyError):
        store.by_index("zone", "a")


def test_a_value_that_no_object_has_any_more_is_not_kept() -> None:
    store = filled(A5)
    store.add_index("phase", by_phase)
    store.put(machine("a", 11, "Failed"))
    assert store.index_values("phase") == ("Failed",)
    store.remove("n/a", uid="uid-a", version="12")
    assert store.index_values("phase") == ()


def test_an_index_function_that_raises_costs_one_entry(caplog: pytest.LogCaptureFixture) -> None:
    def choosy(obj: Machine) -> Iterable[str]:
        yield "early"
        if obj.phase == "Failed":
            raise LookupError("no")

    store = filled(A5)
    store.add_index("choosy", choosy)
    assert store.by_index("choosy", "early") == (A5,)
    changes = store.put(machine("a", 11, "Failed"))
    assert len(changes) == 1 and store.by_index("choosy", "early") == ()
    assert store.index_errors == 1
    assert caplog.records[0].__dict__["key"] == "n/a"
    back = machine("a", 12, "Running")
    store.put(back)
    assert store.by_index("choosy", "early") == (back,)


def test_an_object_can_be_under_many_values_and_counts_once_for_each() -> None:
    store = filled(A5)
    store.add_index("letters", lambda obj: obj.phase)
    assert store.by_index("letters", "n") == (A5,)
    store.put(machine("a", 11, "Rung"))
    assert sorted(store.index_values("letters")) == ["R", "g", "n", "u"]


# ---- what is told


def test_a_new_version_with_nothing_new_for_us_is_stored_but_not_told() -> None:
    store = filled(A5)
    assert store.put(machine("a", 11, "Running")) == ()
    known = store.get("n/a")
    assert known is not None and known.metadata.resource_version == "11"


def test_a_successor_under_the_same_name_is_told_as_end_and_beginning() -> None:
    store = filled(A5)
    successor = machine("a", 11, uid="other")
    assert store.put(successor) == (
        Change(A5, None, tombstone=True),
        Change(None, successor),
    )


def test_a_relist_tells_the_difference_deletions_first() -> None:
    same, changed = machine("same", 6), machine("changed", 7)
    store = filled(A5, same, changed)
    now, new = machine("changed", 15, "Failed"), machine("new", 14)
    changes = store.replace([new, now, same], "20")
    assert changes == (
        Change(A5, None, tombstone=True),
        Change(None, new),
        Change(changed, now),
    )
    assert store.resource_version == "20"


def test_an_object_that_ends_leaves_every_index() -> None:
    store = filled(A5)
    store.add_index("phase", by_phase)
    assert store.list("n") == (A5,)
    store.remove("n/a", uid="uid-a", version="12")
    assert store.list("n") == ()
    assert store.by_index("phase", "Running") == ()


def test_the_end_of_an_unknown_object_is_no_news() -> None:
    assert filled().remove("n/a", uid="uid-a", version="11") == ()


# ---- own writes


def test_an_event_that_comes_a_second_time_does_not_bring_a_deleted_object_back() -> None:
    store = filled(A5, version=10)
    store.put(machine("b", 11))
    store.advance("11")
    store.remove("n/b", uid="uid-b", version="12")
    store.advance("12")
    assert store.put(machine("b", 11)) == ()
    assert store.put(A5) == ()
    assert "n/b" not in store
    assert len(store.put(machine("b", 13, uid="uid-b2"))) == 1


def test_versions_that_do_not_compare_keep_no_event_out() -> None:
    store: Store[Machine] = Store()
    store.replace((), "v-b")
    assert len(store.put(msgspec.structs.replace(A5, metadata=OPAQUE))) == 1


def test_the_answer_to_an_own_write_is_in_the_store_at_once_and_its_echo_is_no_news() -> None:
    store = filled(A5)
    changes = told(store)
    answer = machine("a", 12, "Failed")
    store.observe(answer)
    assert store.get("n/a") is answer
    assert changes == [Change(A5, answer)]
    assert store.resource_version == "10", "news of others may still be on their way"
    assert store.put(machine("a", 11, "Pending")) == (), "older than what we know"
    assert store.put(machine("a", 12, "Failed")) == ()
    assert store.get("n/a") is answer


def test_an_answer_that_comes_after_newer_news_is_ignored() -> None:
    store = filled(A5)
    store.put(machine("a", 13, "Running"))
    store.observe(machine("a", 12, "Failed"))
    known = store.get("n/a")
    assert known is not None and known.metadata.resource_version == "13"


def test_an_answer_that_comes_after_the_end_does_not_bring_the_object_back() -> None:
    store = filled(A5)
    store.remove("n/a", uid="uid-a", version="13")
    store.advance("13")
    store.observe(machine("a", 12, "Failed"))
    assert "n/a" not in store


def test_an_answer_without_a_comparable_version_waits_for_the_watch() -> None:
    store = filled(A5)
    store.observe(Machine(metadata=ObjectMeta(name="a", namespace="n", resource_version="x")))
    assert store.get("n/a") is A5


def test_an_own_creation_is_here_before_its_event_and_even_before_the_first_list() -> None:
    store: Store[Machine] = Store()
    changes = told(store)
    store.observe(A5)
    assert store.get("n/a") is A5
    assert changes == [Change(None, A5)]
    assert store.replace([A5], "7") == ()


def test_a_relist_does_not_take_back_an_own_write_that_is_newer() -> None:
    store = filled(A5)
    patched, made = machine("a", 21, "Failed"), machine("b", 22)
    store.observe(patched)
    store.observe(made)
    assert store.replace([machine("a", 15, "Pending")], "20") == ()
    assert store.list() == (patched, made)


def test_a_relist_that_is_newer_wins_over_an_own_write() -> None:
    store = filled(A5)
    store.observe(machine("a", 21, "Failed"))
    store.observe(machine("b", 22))
    last = machine("a", 23, "Running")
    store.replace([last], "30")
    assert store.list() == (last,)


def test_a_list_from_before_what_was_known_means_that_history_was_reset() -> None:
    store = filled(A5, version=100)
    store.observe(machine("a", 101, "Failed"))
    store.observe_deleted(machine("z", 99))
    restored = machine("a", 4, "Pending")
    store.replace([restored, machine("z", 3)], "50")
    assert store.get("n/a") is restored
    assert "n/z" in store
    assert store.resource_version == "50"


def test_an_own_deletion_is_done_at_once_and_late_news_cannot_undo_it() -> None:
    store = filled(A5)
    changes = told(store)
    store.observe_deleted(A5)
    assert changes == [Change(A5, None)]
    assert store.put(machine("a", 11, "Failed")) == ()
    store.observe(machine("a", 12))
    assert "n/a" not in store
    assert store.remove("n/a", uid="uid-a", version="13") == ()
    assert store.remembered_deletions == 0


def test_a_successor_of_a_deleted_object_is_not_mistaken_for_it() -> None:
    store = filled(A5)
    store.observe_deleted(A5)
    successor = machine("a", 14, uid="other")
    assert store.put(successor) == (Change(None, successor),)
    assert store.remove("n/a", uid="uid-a", version="13") == ()
    store.observe_deleted(A5)
    assert store.get("n/a") is successor


def test_a_successor_we_made_buries_its_predecessor() -> None:
    store = filled()
    predecessor, successor = machine("a", 11), machine("a", 13, uid="uid-later")
    store.observe(predecessor)
    store.observe(successor)
    store.observe_deleted(successor)
    assert store.put(predecessor) == ()
    assert "n/a" not in store


def test_the_late_end_of_a_predecessor_spares_the_successor_we_made() -> None:
    store = filled(A5)
    successor = machine("a", 14, uid="other")
    store.observe(successor)
    assert store.remove("n/a", uid="uid-a", version="13") == ()
    assert store.get("n/a") is successor


def test_the_end_of_a_successor_never_seen_ends_what_was_known() -> None:
    store = filled(A5)
    assert store.remove("n/a", uid="other", version="13") == (Change(A5, None),)


def test_a_list_from_before_an_own_deletion_does_not_bring_the_object_back() -> None:
    store = filled(A5)
    store.observe_deleted(A5)
    assert store.replace([A5], "10") == ()
    assert store.replace([], "30") == ()
    assert store.remembered_deletions == 0


def test_two_lists_overrule_a_remembered_deletion() -> None:
    store = filled(A5)
    store.observe_deleted(A5)
    store.replace([A5], "20")
    assert store.replace([A5], "30") == (Change(None, A5),)


def test_an_end_the_watch_has_told_already_is_not_remembered() -> None:
    store = filled(A5)
    store.remove("n/a", uid="uid-a", version="13")
    store.advance("13")
    store.observe_deleted(A5)
    assert store.remembered_deletions == 0


def test_remembered_deletions_are_bounded() -> None:
    store = filled()
    for n in range(10_000):
        store.observe_deleted(machine(f"m{n}", 100 + n))
    assert store.remembered_deletions == 4096
    assert store.put(machine("m9999", 99_999)) == ()
    assert len(store.put(machine("m0", 99_999))) == 1


# ---- objects that cannot be read


def test_what_is_known_of_an_unreadable_object_outlives_a_relist() -> None:
    store = filled(A5, machine("b", 6))
    assert store.replace([], "20", unreadable={"n/a": "spec: not an object"}) == (
        Change(machine("b", 6), None, tombstone=True),
    )
    assert store.get("n/a") is A5
    assert store.unreadable == {"n/a": "spec: not an object"}
    store.put(machine("a", 21))
    assert not store.unreadable


def test_an_unreadable_object_without_a_name_could_be_any() -> None:
    store = filled(A5, machine("b", 6))
    assert store.replace([], "20", unreadable={"": "metadata: not an object"}) == ()
    assert len(store) == 2


def test_what_can_be_read_is_news_whatever_cannot() -> None:
    store = filled(A5, machine("b", 6))
    changed = machine("a", 15, "Failed")
    assert store.replace([changed], "20", unreadable={"": "nameless"}) == (Change(A5, changed),)
    assert store.get("n/a") is changed and "n/b" in store
    again = machine("a", 25, "Running")
    assert store.replace([again], "30", unreadable={"n/a": "twice"}) != ()
    assert store.get("n/a") is again


def test_an_unreadable_object_that_ends_is_no_longer_unreadable() -> None:
    store = filled(A5)
    store.mark_unreadable("n/a", "why")
    store.mark_unreadable("n/b", "why")
    store.remove("n/a", uid="uid-a", version="11")
    store.remove("n/b", uid="uid-b", version="12")
    assert not store.unreadable and len(store) == 0


def test_a_store_has_one_listener() -> None:
    store = filled()
    told(store)
    with pytest.raises(RuntimeError):
        told(store)


def test_the_version_never_falls_between_two_lists() -> None:
    store = filled()
    store.advance("12")
    store.advance("11")
    store.advance("")
    assert store.resource_version == "12"
