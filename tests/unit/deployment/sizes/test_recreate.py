from __future__ import annotations

import pytest

from mcm.controllers.deployment.fleet import Fleet
from mcm.controllers.deployment.sizes.bounds import Bounds
from mcm.controllers.deployment.sizes.recreate import RecreateStep, recreate_step
from tests.unit.deployment.states import fleet, state


@pytest.mark.parametrize(
    ("whole", "step"),
    [
        pytest.param(fleet(None), RecreateStep(create=3), id="the first set"),
        pytest.param(
            fleet(None, state("a", 2), state("b", 1)),
            RecreateStep({"a": 0, "b": 0}),
            id="empty all",
        ),
        pytest.param(
            fleet(state("new", 0, ""), state("a", 0, "RR")), RecreateStep(), id="not deleted yet"
        ),
        pytest.param(
            fleet(None, state("a", 0, "", terminating=1)), RecreateStep(), id="still leaving"
        ),
        pytest.param(
            fleet(None, state("a", 0, "", reported=1)), RecreateStep(), id="still told of"
        ),
        pytest.param(
            fleet(None, deleted=(state("a", 1, deleted=True),)), RecreateStep(), id="a deleted set"
        ),
        pytest.param(fleet(None, state("a", 0, "")), RecreateStep(create=3), id="all are gone"),
        pytest.param(
            fleet(state("new", 0, ""), state("a", 0, "")),
            RecreateStep({"new": 3}),
            id="a known set",
        ),
        pytest.param(fleet(state("new", 5)), RecreateStep({"new": 3}), id="scaled down"),
        pytest.param(fleet(state("new", 3), state("a", 0, "")), RecreateStep(), id="done"),
    ],
)
def test_nothing_new_is_made_before_all_old_is_gone(whole: Fleet, step: RecreateStep) -> None:
    assert recreate_step(whole, Bounds(3)) == step


def test_replicas_that_change_in_the_middle_do_not_hold_it_up() -> None:
    whole = fleet(state("new", 1, desired=4), state("old", 3, desired=4))
    assert recreate_step(whole, Bounds(6)) == RecreateStep({"old": 0})
