"""Updates in place, whatever the order of events: the limits hold, nobody is lost, and it ends."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.api.machine import DeploymentStrategy
from mcm.controllers.in_place_marks import Stage, marks_of
from tests.thoroughness import THOROUGH
from tests.unit.deployment.fleet_model import Number, rolling
from tests.unit.deployment.in_place_update.in_place_model import InPlaceModel, in_place

NUMBERS: st.SearchStrategy[Number] = st.one_of(
    st.integers(0, 4), st.sampled_from(["0%", "25%", "50%", "100%"])
)
AUTO = st.builds(in_place, NUMBERS, NUMBERS)
MANUAL = st.builds(in_place, NUMBERS, NUMBERS, st.just("Manual"))
REPLICAS = st.integers(1, 7)
MOVES = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=60, max_size=250)
EXAMPLES = 250 if THOROUGH else 60


def _move(model: InPlaceModel, kind: int, number: int, *, failing: bool = False) -> None:
    """Controllers, machines and agents: nothing that a user does."""
    names, uids = list(model.machines), list(model.sets)
    if kind < 15:
        model.passes()
    elif kind < 30:
        model.passes(number % 8)
    elif kind < 42:
        model.set_acts(uids[number % len(uids)])
    elif kind < 48:
        model.set_reports(uids[number % len(uids)])
    elif kind < 80 and names:
        model.machine_moves(names[number % len(names)])
    elif names:
        result = "failed" if failing and kind > 94 else "successful"
        model.agent_answers(names[number % len(names)], result)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(REPLICAS, AUTO, MOVES)
def test_an_undisturbed_update_keeps_machines_and_both_limits(
    replicas: int, strategy: DeploymentStrategy, moves: list[tuple[int, int]]
) -> None:
    model = InPlaceModel(replicas, strategy)
    model.end()
    before, bounds = set(model.machines), model.bounds
    model.user_updates(1)
    for kind, number in moves:
        _move(model, kind, number)
        assert model.serving >= bounds.least
        assert len(model.machines) <= bounds.most
        asked = [n for n, node in model.nodes.items() if _is_asked(node_stage(model, n))]
        assert set(asked) <= model.machines.keys(), "replaced while its agent worked"
    model.end()
    assert model.sizes() == (0, replicas)
    assert model.serving == len(model.machines) == replicas
    assert len(before - model.machines.keys()) == min(bounds.surge, replicas)
    assert model.transfers == replicas - min(bounds.surge, replicas), "none updated for nothing"
    assert model.leftovers() == []


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(REPLICAS, st.one_of(AUTO, MANUAL), MOVES, st.integers(0, 2**32))
def test_every_history_ends_as_it_should(
    replicas: int, strategy: DeploymentStrategy, moves: list[tuple[int, int]], seed: int
) -> None:
    model = InPlaceModel(replicas, strategy)
    model.end()
    wanted = 0
    for index, (kind, number) in enumerate(moves):
        _move(model, kind, number, failing=True)
        if (seed + index * 7919) % 17 == 0:
            wanted = _interfere(model, number, wanted, strategy)
        # Nobody is in two sets or in none: each machine names the one it is counted in.
        owned = [m.metadata.name for uid in model.sets for m in model.machines_of(uid)]
        assert sorted(owned) == sorted(model.machines)
    model.user_pauses(paused=False)
    model.user_updates(wanted)
    model.user_changes_strategy(in_place(1, 1))
    model.end()
    assert model.sizes() == (0, model.deployment.spec.replicas)
    assert model.serving == len(model.machines) == model.deployment.spec.replicas
    assert model.leftovers() == []


def _interfere(model: InPlaceModel, number: int, wanted: int, strategy: DeploymentStrategy) -> int:
    """A user changes their mind; return the template that is wanted then."""
    names = list(model.machines)
    match number % 9:
        case 0:
            model.user_scales(number % 8)
        case 1 | 2 | 3:
            wanted = number % 3
            model.user_updates(wanted)
        case 4:
            model.user_pauses(paused=bool(number % 2))
        case 5:
            model.user_changes_strategy(rolling(1, 1))
        case 6:
            model.user_changes_strategy(strategy)
        case 7 if names:
            model.machine_dies(names[number % len(names)])
        case _ if names:
            model.person_selects(names[number % len(names)])
    return wanted


def node_stage(model: InPlaceModel, name: str) -> Stage | None:
    return marks_of(model.nodes[name]).stage


def _is_asked(stage: Stage | None) -> bool:
    return stage is Stage.READY
