"""Which controllers a list of words selects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.controllers.selection import CONTROLLERS, Group, groups_of, problems_of, selected

EVERY = frozenset(CONTROLLERS)
OF_SETS = frozenset({"machinedeployment", "machineset", "overshooting"})
OF_MACHINES = EVERY - OF_SETS


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["*"], EVERY),
        (["set-controllers"], OF_SETS),
        (["machine-controllers"], OF_MACHINES),
        (["*", "-set-controllers"], OF_MACHINES),
        (["*", "-node", "-orphan-vms"], EVERY - {"node", "orphan-vms"}),
        (["-node", "*"], EVERY - {"node"}),
        (["machine-controllers", "-machine"], OF_MACHINES - {"machine"}),
        (["*", "-set-controllers", "overshooting"], OF_MACHINES | {"overshooting"}),
        (["node"], {"node"}),
        ([], frozenset()),
    ],
)
def test_words_select(words: list[str], expected: frozenset[str]) -> None:
    assert selected(words) == expected


def test_groups_are_those_of_what_runs() -> None:
    assert groups_of(EVERY) == (Group.SETS, Group.MACHINES)
    assert groups_of({"node"}) == (Group.MACHINES,)
    assert groups_of(OF_SETS) == (Group.SETS,)


def test_what_is_wrong_is_named_each_by_itself() -> None:
    first, second = problems_of(["*", "machines", "-Node"])
    assert "'machines' is no controller" in first and "'-Node' is no controller" in second
    assert all(name in first for name in (*CONTROLLERS, *Group))
    assert problems_of(["-*"]) != [] and problems_of([""]) != []


@pytest.mark.parametrize("words", [[], ["-node"], ["node", "-node", "-machine"]])
def test_nothing_at_all_is_a_mistake_unless_something_is_selected(words: list[str]) -> None:
    assert bool(problems_of(words)) == (not selected(words))


WORDS = st.sampled_from(["*", *CONTROLLERS, *Group, *(f"-{n}" for n in (*CONTROLLERS, *Group))])


@given(st.lists(WORDS, max_size=8), st.randoms(use_true_random=False))
def test_the_order_does_not_matter_and_one_name_concerns_one_controller(words, random) -> None:  # type: ignore[no-untyped-def]
    shuffled = random.sample(words, len(words))
    assert selected(shuffled) == selected(words)
    assert EVERY - {"node"} >= selected([*(w for w in words if w != "node"), "-node"])
