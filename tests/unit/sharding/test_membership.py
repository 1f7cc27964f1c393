"""Whether a shard takes, keeps or hands over an object."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcm.manager import LEASE_NAMES
from mcm.sharding.membership import Decision, HandOver, Leave, Standing, Take, decide, wanted_by
from mcm.sharding.shard import SHARED_DUTIES, Shard, is_shard_name

A, B, C = Shard("a", "s=a"), Shard("b", "s in (b,both)"), Shard("c", "s in (c,both)")
SHARDS = (A, B, C)


@pytest.mark.parametrize(
    ("holder", "label", "certain", "deleting", "expected"),
    [
        ("", "a", True, False, Take()),
        ("", "a", False, True, Take()),
        ("", "b", True, False, Leave.OTHERS),
        ("b", "a", True, False, Leave.OTHERS),
        ("gone", "a", True, False, Leave.OTHERS),
        ("a", "a", True, False, Leave.KEEP),
        ("a", "b", True, False, HandOver("b")),
        ("a", "b", True, True, Leave.KEEP),
        ("a", "b", False, False, Leave.KEEP),
        ("a", "both", True, False, Leave.KEEP),
        ("a", "nobody", True, False, Leave.KEEP),
    ],
)
def test_an_object_is_decided_about(
    holder: str, label: str, certain: bool, deleting: bool, expected: Decision
) -> None:
    standing = Standing({"s": label}, certain)
    assert decide(A, holder, standing, deleting=deleting, alive=(B, C)) == expected


def test_nothing_is_given_to_a_shard_that_is_not_alive() -> None:
    assert decide(A, "a", Standing({"s": "b"}), deleting=False, alive=(C,)) is Leave.KEEP


@given(
    labels=st.dictionaries(st.just("s"), st.sampled_from(["a", "b", "c", "both", "none"])),
    holder=st.sampled_from(["", "a", "b", "c", "gone"]),
    certain=st.booleans(),
    deleting=st.booleans(),
    alive=st.sets(st.sampled_from(SHARDS)),
)
def test_of_all_shards_only_the_holder_writes_and_nothing_loses_its_holder(
    labels: dict[str, str], holder: str, certain: bool, deleting: bool, alive: set[Shard]
) -> None:
    standing = Standing(labels, certain)
    for us in SHARDS:
        others = alive - {us}
        decided = decide(us, holder, standing, deleting=deleting, alive=others)
        if isinstance(decided, HandOver):
            assert holder == us.name and decided.to in {shard.name for shard in others}
            assert decided.to in wanted_by(others, standing)
        elif isinstance(decided, Take):
            assert holder == "" and us.selects(labels)


def test_names_become_parts_of_leases() -> None:
    assert A.lease("machine-controller") == "machine-controller-a"
    assert all(map(is_shard_name, ("a", "a-1", "0" * 30)))
    assert not any(map(is_shard_name, ("", "A", "-a", "a-", "a.b", "0" * 31, "a\n")))


@given(names=st.lists(st.from_regex(r"(manager|shared-duties|-|[a-z0-9]){1,4}", fullmatch=True)))
@example(names=["shared-duties"])
@example(names=["manager"])
@example(names=["a", "manager-a"])
def test_no_two_leases_bear_one_name(names: list[str]) -> None:
    shards = [Shard(name, "s=a") for name in {*names} if is_shard_name(name)]
    own = [shard.lease(base) for shard in shards for base in LEASE_NAMES]
    leases = [*own, *LEASE_NAMES, SHARED_DUTIES]
    assert len(leases) == len({*leases})
