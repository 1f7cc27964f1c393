"""Seeded scenarios over real sockets: whatever goes wrong on the way, the mirror agrees in the end.

Every ``make test`` runs one in eight: they take some seconds, and bring every kind of fault.
``CI=true`` runs half of the five hundred, ``MCM_TESTS=all`` all; ``MCM_FAULT_SEEDS=17,23`` just
those.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from mcm.clock import SystemClock
from tests.faults.scenario import Result, Security, run_scenario
from tests.thoroughness import part_of

ALL, AT_A_TIME = 500, 10
SEEDS = part_of(range(3, ALL + 3), one_in=8, in_ci=2)
"""Among each part are some that fail if a replayed event can bring a deleted object back."""


def chosen_seeds() -> Sequence[int]:
    if named := os.environ.get("MCM_FAULT_SEEDS"):
        return [int(seed) for seed in named.split(",")]
    return SEEDS


@pytest.mark.timeout(600)
async def test_no_fault_on_the_way_loses_or_invents_anything(
    security: Security, report: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    seeds = chosen_seeds()
    places = asyncio.Semaphore(AT_A_TIME)
    clock = SystemClock()
    began = clock.monotonic()

    async def one(seed: int) -> Result:
        async with places:
            return await run_scenario(seed, security)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(seed), name=f"seed {seed}") for seed in seeds]
    results = [task.result() for task in tasks]
    report(
        f"fault scenarios: {len(results)} of {ALL} in {clock.monotonic() - began:.1f} s"
        f" ({'all' if len(results) == ALL else 'MCM_TESTS=all runs all'}); "
        f"{sum(r.exchanges for r in results)} exchanges, {sum(r.writes for r in results)} writes, "
        f"{sum(r.changes for r in results)} changes; "
        f"slowest to agree: {max(r.seconds for r in results):.2f} s"
    )
    failed = [result for result in results if result.problems]
    kinds = Counter(problem.partition(":")[0] for r in failed for problem in r.problems)
    stories = "\n".join(result.told() for result in failed[:5])
    numbers = [result.seed for result in failed]
    if failed:
        pytest.fail(f"{numbers}, {dict(kinds)}:\n{stories}", pytrace=False)
