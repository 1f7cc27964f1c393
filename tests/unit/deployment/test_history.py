from __future__ import annotations

import pytest

from mcm.api.machine import MachineSetStatus
from mcm.controllers.deployment.history import expendable
from tests.unit.deployment.objects import owned_set

SEEN = MachineSetStatus(observed_generation=1)
SETS = [owned_set(f"s{n}", 0, age=100 - n, status=SEEN) for n in range(4)]


@pytest.mark.parametrize(
    ("limit", "gone"),
    [
        (None, []),
        (4, []),
        (9, []),
        (3, ["s0"]),
        (1, ["s0", "s1", "s2"]),
        (0, ["s0", "s1", "s2", "s3"]),
    ],
)
def test_the_oldest_beyond_the_limit_go(limit: int | None, gone: list[str]) -> None:
    shuffled = [SETS[2], SETS[0], SETS[3], SETS[1]]
    assert [s.metadata.name for s in expendable(shuffled, limit)] == gone


@pytest.mark.parametrize(
    "busy",
    [
        owned_set("s0", 1, age=100, status=SEEN),
        owned_set("s0", 0, age=100, status=MachineSetStatus(replicas=1, observed_generation=1)),
        owned_set("s0", 0, age=100, status=SEEN, generation=2),
    ],
    ids=["wants machines", "has machines", "has not seen its spec"],
)
def test_one_that_is_not_empty_is_skipped_and_none_goes_instead(busy: object) -> None:
    assert expendable([busy, *SETS[1:]], 3) == ()  # type: ignore[list-item]


def test_one_that_is_being_deleted_does_not_count() -> None:
    assert expendable([owned_set("s0", 0, deleted=True), *SETS[1:]], 3) == ()
