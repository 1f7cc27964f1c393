"""What sets and deployments do goes on where the manager ended, at whichever of its writes.

As in ``test_end_at_every_write.py`` the write is lost, or only its answer. In each flow the
promises hold at every committed change, no machine is made or replaced that need not be, nothing is
left behind, and all goes quiet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import final

import pytest

from mcm.api.meta import JSONObject
from mcm.simulation.virtualtime import run_virtual
from tests.simulation.ends_of_the_manager import ending
from tests.simulation.machine_ledger import leftovers
from tests.simulation.rollout_flows import (
    Act,
    adopt,
    break_large,
    break_large_and_ask,
    freeze,
    grow,
    keep_one,
    kept,
    make_by_hand,
    make_pool,
    nothing,
    one_fails,
    orphan_deployment,
    orphan_set,
    revert,
    roll,
    roll_back,
    roll_both,
    roll_twice,
    rolled_back,
    scale_down_meanwhile,
    switched,
)
from tests.simulation.rollout_stage import (
    RECREATE,
    Stage,
    in_place,
    rolling,
    staged,
    writes,
)
from tests.thoroughness import THOROUGH, part_of

EVERY = 90
"""Of so many writes the manager ends at one. With 1 nothing is left out, for half an hour."""


@final
@dataclass(frozen=True, kw_only=True)
class Case:
    """``made`` and ``gone``: so many machines are made and go in one round; ``least`` so many
    writes it takes at least. ``most`` and ``fewest`` bound machines, and those which serve;
    ``rule`` says what else may never be."""

    flow: Act
    strategy: JSONObject
    most: int
    fewest: int
    made: Iterable[int]
    gone: Iterable[int]
    least: int
    replicas: int = 3
    before: Act = nothing
    prepare: Act = nothing
    rule: Callable[[Stage], str] = lambda _: ""


def versions_mixed(stage: Stage) -> str:
    return "old machines beside new ones" if len(stage.versions()) > 1 else ""


def two_kept(stage: Stage) -> str:
    return "more are kept than may be" if len(kept(stage)) > 1 else ""


TO_ROLLING = switched(in_place(0, 1), rolling(1, 0))
TO_RECREATE = switched(rolling(1, 0), RECREATE)
TO_IN_PLACE = switched(rolling(1, 0), in_place(0, 1))

CASES: dict[str, Case] = {
    "rolling 1-0": Case(
        flow=roll, strategy=rolling(1, 0), most=4, fewest=3, made=[3], gone=[3], least=40
    ),
    "rolling 0-1": Case(
        flow=roll, strategy=rolling(0, 1), most=3, fewest=2, made=[3], gone=[3], least=40
    ),
    "recreate": Case(
        flow=roll,
        strategy=RECREATE,
        most=3,
        fewest=0,
        made=[3],
        gone=[3],
        least=30,
        rule=versions_mixed,
    ),
    "in place 0-1": Case(
        flow=roll, strategy=in_place(0, 1), most=3, fewest=2, made=[0], gone=[0], least=30
    ),
    "in place 1-0": Case(
        flow=roll, strategy=in_place(1, 0), most=4, fewest=3, made=[1], gone=[1], least=30
    ),
    "in place, an agent fails": Case(
        flow=one_fails, strategy=in_place(0, 1), most=3, fewest=2, made=[1], gone=[1], least=30
    ),
    "revert 1-0": Case(
        flow=revert,
        strategy=rolling(1, 0),
        prepare=break_large,
        most=4,
        fewest=3,
        made=[1],
        gone=[1],
        least=10,
    ),
    "revert 0-1": Case(
        flow=revert,
        strategy=rolling(0, 1),
        prepare=break_large,
        most=3,
        fewest=2,
        made=[2],
        gone=[2],
        least=20,
    ),
    "automatic rollback": Case(
        flow=rolled_back,
        strategy=rolling(0, 1),
        prepare=break_large_and_ask,
        most=3,
        fewest=2,
        made=[2],
        gone=[2],
        least=20,
    ),
    "rollbackTo": Case(
        flow=roll_back,
        before=roll_twice,
        strategy=rolling(1, 1),
        most=4,
        fewest=2,
        made=[3],
        gone=[3],
        least=40,
    ),
    "freeze": Case(
        flow=freeze,
        strategy=rolling(1, 0),
        most=6,
        fewest=0,
        made=[3, 4, 5, 6],
        gone=[3, 4, 5, 6],
        least=15,
    ),
    "orphaned set": Case(
        flow=orphan_set, strategy=rolling(1, 0), most=3, fewest=3, made=[0], gone=[0], least=5
    ),
    "orphaned deployment": Case(
        flow=orphan_deployment,
        strategy=rolling(1, 0),
        most=3,
        fewest=3,
        made=[0],
        gone=[0],
        least=3,
    ),
    "failed machines kept": Case(
        flow=keep_one,
        rule=two_kept,
        strategy=rolling(1, 0),
        most=4,
        fewest=1,
        made=[2],
        gone=[2],
        least=30,
    ),
    "scaled down meanwhile": Case(
        flow=scale_down_meanwhile,
        before=grow,
        replicas=3,
        strategy=rolling(1, 0),
        most=5,
        fewest=4,
        made=[3],
        gone=[4],
        least=40,
    ),
    "surge pool": Case(
        flow=roll_both,
        prepare=make_pool,
        replicas=2,
        strategy=rolling(1, 0),
        most=5,
        fewest=4,
        made=[4],
        gone=[4],
        least=50,
    ),
    "adoption of a set without hash": Case(
        flow=adopt,
        before=make_by_hand,
        strategy=rolling(1, 0),
        most=3,
        fewest=3,
        made=[0],
        gone=[0],
        least=8,
    ),
    "in place, then rolling": Case(
        flow=TO_ROLLING[1],
        before=TO_ROLLING[0],
        strategy=in_place(0, 1),
        most=4,
        fewest=2,
        made=[1, 2],
        gone=[1, 2],
        least=30,
    ),
    "rolling, then recreate": Case(
        flow=TO_RECREATE[1],
        before=TO_RECREATE[0],
        strategy=rolling(1, 0),
        most=4,
        fewest=0,
        made=[3],
        gone=[3],
        least=30,
    ),
    "rolling, then in place": Case(
        flow=TO_IN_PLACE[1],
        before=TO_IN_PLACE[0],
        strategy=rolling(1, 0),
        most=4,
        fewest=2,
        made=[1, 2],
        gone=[1, 2],
        least=30,
    ),
}


@pytest.mark.parametrize(
    "arrived",
    part_of([True, False], one_in=2, in_ci=2),
    ids=lambda arrived: "answer lost" if arrived else "lost",
)
@pytest.mark.parametrize("name", part_of(list(CASES), one_in=5))
def test_the_manager_may_end_at_any_write(name: str, *, arrived: bool) -> None:
    case = CASES[name]
    first = (7 * list(CASES).index(name) + 1) % EVERY + 1
    numbers = count(first, EVERY) if arrived else range(1 + first // 2, case.least, EVERY)
    play(case, numbers if THOROUGH else [case.least // 2], arrived=arrived)


@pytest.mark.parametrize("name", part_of(list(CASES)[::3], one_in=7))
def test_one_manager_after_the_other_may_end_soon(name: str) -> None:
    number = 2 + list(CASES).index(name) % 9
    play(CASES[name], [number], arrived=number % 2 == 0, times=6)


def play(case: Case, numbers: Iterable[int], *, arrived: bool, times: int = 1) -> None:
    async def main() -> None:
        async with staged(seed=31) as stage:
            await stage.begin(case.replicas, case.strategy)
            await case.prepare(stage, 0)
            for number in numbers:
                await play_once(stage, case, number, arrived=arrived, times=times)
                if not stage.ended:
                    break

    run_virtual(main)


async def play_once(
    stage: Stage, case: Case, number: int, *, arrived: bool, times: int = 1
) -> None:
    sim, ledger = stage.sim, stage.ledger
    await case.before(stage, number)
    await stage.until(lambda: leftovers(sim) == [])
    stage.agents.failing.clear()
    stage.agents.worked.clear()
    ledger.begin(most=case.most, fewest=case.fewest, rule=lambda: case.rule(stage))
    async with ending(sim, number, arrived=arrived, times=times) as end:
        await case.flow(stage, number)
    await stage.until(stage.is_whole)
    try:
        await stage.until(lambda: leftovers(sim) == [], within=120)
    except AssertionError:
        raise AssertionError(f"{number}: {leftovers(sim)}") from None
    assert ledger.broken == [], (number, ledger.broken)
    assert len(ledger.made) in case.made, (number, ledger.made, ledger.gone)
    assert len(ledger.gone) in case.gone, (number, ledger.made, ledger.gone)
    assert set(stage.agents.worked.values()) <= {1}, number
    await sim.pass_time(30)
    written = writes(sim)
    await sim.pass_time(60 if end.came else 600)
    assert writes(sim) == written, number
    stage.ended = end.came
    assert end.came or end.writes >= case.least or times > 1, (
        "or the flow is not what it claims to be"
    )
