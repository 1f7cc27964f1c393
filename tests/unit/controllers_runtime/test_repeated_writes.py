"""Which patches are held back: those that somebody reverts, or that come far too often."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.client.requests import Patch
from mcm.controllers.repeated_writes import (
    HOLD,
    OFTEN,
    QUIET,
    REVERTS,
    RepeatedWrites,
    Repetition,
    Target,
)

NODE = Target("machine ns/a", "nodes", "", "node-1", "")
UID = "u1"
CLAIM = {"metadata": {"labels": {"machine": "a"}}}


def wrote(writes: RepeatedWrites, patch: Patch, *, times: int, every: float = 0.01) -> float:
    """Make ``patch`` so often, wherever it may be made; return when the last was made."""
    now = 0.0
    for number in range(times):
        now = number * every
        assert writes.held(NODE, patch, now) is None, f"held back after {number} writes"
        writes.wrote(NODE, UID, patch, now)
    return now


def fought(patch: Patch, seconds: float, *, step: float = 0.1) -> list[float]:
    """When ``patch`` was made, of a writer that finds it undone whenever it looks."""
    writes, made = RepeatedWrites(), []
    for tick in range(int(seconds / step)):
        now = tick * step
        if writes.held(NODE, patch, now) is None:
            writes.wrote(NODE, UID, patch, now)
            made.append(now)
    return made


def test_what_somebody_reverts_is_held_back_longer_and_longer() -> None:
    made = fought(CLAIM, 3600)
    pauses = [round(b - a) for a, b in itertools.pairwise(made)]
    assert pauses[: REVERTS + 1] == [0] * (REVERTS + 1)
    assert pauses[REVERTS + 1 :][:10] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert len(made) < 35


def test_why_a_patch_is_held_back_is_said_when_it_is_made_and_when_it_is_wanted() -> None:
    writes = RepeatedWrites()
    for number in range(REVERTS + 1):
        assert writes.wrote(NODE, UID, CLAIM, 2.0 * number) is None
    now = 2.0 * (REVERTS + 1)
    made = writes.wrote(NODE, UID, CLAIM, now)
    assert made == Repetition(
        fields=("metadata.labels.machine",),
        times=REVERTS + 2,
        during=now,
        wait=HOLD.length(0),
        reverted=True,
    )
    assert writes.held(NODE, CLAIM, now + 0.25) == made._replace(
        during=now + 0.25, wait=HOLD.length(0) - 0.25
    )


def test_another_patch_of_the_same_object_is_not_held_back() -> None:
    writes = RepeatedWrites()
    now = wrote(writes, CLAIM, times=REVERTS + 2)
    assert writes.held(NODE, CLAIM, now) is not None
    assert writes.held(NODE, {"metadata": {"labels": {"machine": "b"}}}, now) is None
    assert writes.held(NODE._replace(name="node-2"), CLAIM, now) is None
    assert writes.held(NODE._replace(subresource="status"), CLAIM, now) is None
    assert writes.held(NODE._replace(writer="machine ns/b"), CLAIM, now) is None


def test_a_patch_that_was_not_wanted_for_a_while_begins_anew() -> None:
    writes = RepeatedWrites()
    now = wrote(writes, CLAIM, times=REVERTS + 2)
    late = now + HOLD.length(0) + QUIET + 1
    for number in range(REVERTS + 1):
        assert writes.held(NODE, CLAIM, late + number) is None
        writes.wrote(NODE, UID, CLAIM, late + number)


def test_an_object_made_anew_is_another_object() -> None:
    writes = RepeatedWrites()
    for number in range(10 * REVERTS):
        assert writes.held(NODE, CLAIM, number) is None
        writes.wrote(NODE, f"u{number}", CLAIM, number)


def test_an_object_made_anew_under_the_name_does_not_wait_for_the_old_ones_fight() -> None:
    """Who deletes what is stuck and makes it anew must not find it held back once more."""
    writes = RepeatedWrites()
    bound = {"metadata": {"labels": {"machine": "a"}, "uid": UID}}
    now = wrote(writes, bound, times=REVERTS + 2)
    assert writes.held(NODE, bound, now) is not None
    assert writes.held(NODE, {"metadata": {"labels": {"machine": "a"}, "uid": "u2"}}, now) is None


def test_a_fight_about_every_node_of_a_large_fleet_is_noticed() -> None:
    """Another program reverts each of 10,000 Nodes, and each machine has another target as well."""
    writes, fleet, now, held = RepeatedWrites(), range(10_000), 0.0, 0
    for number in range(REVERTS + 2):
        for machine in fleet:
            now += 0.00001
            target = Target(f"machine ns/m{machine}", "nodes", "", f"n{machine}", "")
            writes.wrote(target._replace(resource="machines"), UID, {"n": number}, now)
            held += writes.wrote(target, UID, CLAIM, now) is not None
    assert held == len(fleet)


def test_what_rests_is_forgotten() -> None:
    writes = RepeatedWrites()
    for number in range(5000):
        writes.wrote(NODE._replace(name=f"n{number}"), UID, CLAIM, 0.0)
    writes.wrote(NODE, UID, CLAIM, QUIET + HOLD.longest + 1)
    assert len(writes) == 1


@pytest.mark.parametrize(
    "variant",
    [
        lambda n: {"metadata": {"labels": {"machine": "a"}, "uid": UID}},
        lambda n: {"metadata": {"resourceVersion": str(n), "labels": {"machine": "a"}}},
        lambda n: [
            {"op": "test", "path": "/metadata/resourceVersion", "value": str(n)},
            {"op": "replace", "path": "/metadata/labels/machine", "value": "a"},
        ],
    ],
)
def test_a_precondition_makes_no_difference(variant: object) -> None:
    assert callable(variant)
    writes = RepeatedWrites()
    for number in range(REVERTS + 2):
        writes.wrote(NODE, UID, variant(number), number * 0.1)
    held = writes.held(NODE, variant(99), 1.0)
    assert held is not None
    assert all("esourceVersion" not in f and "uid" not in f for f in held.fields)


def test_patches_between_that_concern_other_fields_hide_no_fight() -> None:
    writes = RepeatedWrites()
    for number in range(REVERTS + 2):
        writes.wrote(NODE, UID, CLAIM, number)
        writes.wrote(NODE, UID, {"metadata": {"annotations": {"count": str(number)}}}, number)
    assert writes.held(NODE, CLAIM, REVERTS + 1) is not None


def test_a_count_that_goes_to_and_fro_is_progress() -> None:
    """Rolled one by one, a set of 1000 has 999 available, 1000, 999, 1000, …"""
    writes = RepeatedWrites()
    for number in range(2000):
        patch = {"status": {"availableReplicas": 1000 - number % 2}}
        assert writes.held(NODE, patch, number * 10.0) is None
        writes.wrote(NODE, UID, patch, number * 10.0)


@pytest.mark.parametrize(
    "variant",
    [
        lambda n: {"status": {"phase": ("Running", "Pending")[n % 2]}},
        lambda n: {"status": {"phase": "Running", "updated": f"2026-01-01T00:00:{n % 60:02}Z"}},
        lambda n: {"metadata": {"annotations": {"at": f"2026-01-01T00:00:{n % 60:02}.5+02:00"}}},
    ],
)
def test_what_a_key_writes_again_and_again_by_itself_is_held_back_where_it_is_fast(
    variant: object,
) -> None:
    assert callable(variant)
    writes, made, seconds = RepeatedWrites(), 0, 600
    for tick in range(seconds * 100):
        if writes.held(NODE, variant(made), tick / 100) is None:
            writes.wrote(NODE, UID, variant(made), tick / 100)
            made += 1
    assert OFTEN <= made <= 2 * (OFTEN + 0.2 * seconds) + 20, "of 60 000"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=3)),
            st.floats(0, 100),
        ),
        max_size=60,
    )
)
def test_who_is_never_reverted_is_never_held_back(steps: list[tuple[str, object, float]]) -> None:
    """A key that writes only what differs from what it wrote before, as long as nobody else
    writes, may write whatever it likes."""
    writes, now = RepeatedWrites(), 0.0
    stored: dict[str, object] = {}
    for name, value, pause in steps:
        now += pause
        if name in stored and stored[name] == value and type(stored[name]) is type(value):
            continue
        patch: Mapping[str, object] = {"metadata": {"annotations": {name: value}}}
        assert writes.held(NODE, patch, now) is None
        writes.wrote(NODE, UID, patch, now)
        stored[name] = value


def test_memory_is_bounded() -> None:
    writes = RepeatedWrites()
    for number in range(10_000):
        writes.wrote(NODE._replace(name=f"n{number}"), UID, CLAIM, number)
    assert len(writes) <= 4096
    for number in range(10_000):
        writes.wrote(NODE, UID, {"status": {"n": number}}, number)
    assert len(writes) <= 4096


def test_a_user_who_undoes_the_same_ten_times_is_answered_each_time() -> None:
    """A request in a field that the answer clears, say: it looks like a fight, but a slow one."""
    wrote(RepeatedWrites(), {"spec": {"rollbackTo": None}}, times=10, every=60.0)
    wrote(RepeatedWrites(), {"spec": {"rollbackTo": None}}, times=10, every=15.0)


def test_a_node_that_flaps_for_an_hour_is_followed() -> None:
    """Ready, unknown, ready: what the world changes, the status may say."""
    writes = RepeatedWrites()
    for number in range(120):
        phase = ("Unknown", "Running")[number % 2]
        since = f"2026-01-01T00:{number // 2:02}:{number % 2 * 30:02}Z"
        condition = {"type": "Ready", "status": phase, "lastTransitionTime": since}
        patch = {"status": {"phase": phase, "since": since, "conditions": [condition]}}
        assert writes.held(NODE, patch, number * 30.0) is None
        assert writes.wrote(NODE, UID, patch, number * 30.0) is None


_VALUES: st.SearchStrategy[object] = st.sampled_from(
    [1, 1.0, True, None, "", "2026-01-01T00:00:00Z", [1], [True], {}]
)
_PATCHES: st.SearchStrategy[Patch] = st.one_of(
    st.dictionaries(
        st.sampled_from(["spec", "status", "kind", "metadata"]),
        st.dictionaries(st.sampled_from(["a", "b", "uid", "resourceVersion"]), _VALUES),
    ),
    st.lists(
        st.fixed_dictionaries(
            {
                "op": st.sampled_from(["add", "test"]),
                "path": st.sampled_from(["/spec/a", "/spec/b"]),
                "value": _VALUES,
            }
        ),
        max_size=3,
    ),
)


@given(st.lists(st.tuples(_PATCHES, st.sampled_from([0.0, 0.5, 1000.0])), max_size=60))
def test_what_is_taken_apart_late_says_the_same(steps: list[tuple[Patch, float]]) -> None:
    """A patch that came once is not looked into before it comes again."""
    late, at_once, now = RepeatedWrites(), RepeatedWrites(most_unread=0), 0.0
    for patch, pause in [step for step in steps for _ in range(3)]:
        now += pause
        assert late.held(NODE, patch, now) == at_once.held(NODE, patch, now)
        assert late.wrote(NODE, UID, patch, now) == at_once.wrote(NODE, UID, patch, now)


def test_a_patch_that_was_made_once_is_kept_in_no_more_room_than_it_needs() -> None:
    writes, times = RepeatedWrites(), 500
    targets = [NODE._replace(name=f"node-{number}") for number in range(times)]
    tracemalloc.start()
    try:
        for now, target in enumerate(targets):
            writes.wrote(target, UID, CLAIM, float(now))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept / times < 1500  # an encoded patch alone took 4 KiB
