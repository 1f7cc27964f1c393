"""Shows what every asyncio task waits for, and since when it was not seen to go on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final
from weakref import WeakKeyDictionary

from mcm.clock import Clock
from mcm.profiling.profile import Measure, Profile
from mcm.profiling.stacks import Stack, stack_of_task

_MOST_NAMES: Final = 20


@final
@dataclass(frozen=True, slots=True)
class _Seen:
    """Where a task was, and since when (monotonic seconds)."""

    stack: Stack
    since: float


@final
class Tasks:
    """Looks at all tasks of the running loop. What it saw is kept from one look to the next, so
    that a task can be shown not to have moved in between."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: WeakKeyDictionary[asyncio.Task[object], _Seen] = WeakKeyDictionary()

    def describe(self) -> str:
        """Return the tasks, those at the same place together, the most first."""
        now = self._clock.monotonic()
        alike: dict[Stack, list[asyncio.Task[object]]] = {}
        for task in asyncio.all_tasks():
            alike.setdefault(self._look(task, now), []).append(task)
        parts = [f"{sum(map(len, alike.values()))} tasks\n"]
        for stack, tasks in sorted(alike.items(), key=lambda item: -len(item[1])):
            parts.append(self._group(stack, tasks, now))
        return "\n".join(parts)

    def profile(self) -> Profile:
        """Return how many tasks are at each place."""
        counts: dict[Stack, int] = {}
        for task in asyncio.all_tasks():
            stack = stack_of_task(task)
            counts[stack] = counts.get(stack, 0) + 1
        return Profile(
            measures=(Measure("tasks", "count"),),
            samples={stack: (count,) for stack, count in counts.items()},
            started_at=self._clock.now().timestamp(),
        )

    def _look(self, task: asyncio.Task[object], now: float) -> Stack:
        stack = stack_of_task(task)
        seen = self._seen.get(task)
        if seen is None or seen.stack != stack:
            self._seen[task] = _Seen(stack, now)
        return stack

    def _group(self, stack: Stack, tasks: Iterable[asyncio.Task[object]], now: float) -> str:
        names = []
        ordered = sorted(tasks, key=lambda task: task.get_name())
        for task in ordered[:_MOST_NAMES]:
            unmoved = now - self._seen[task].since
            told = f" (here for at least {unmoved:.1f} s)" if unmoved >= 0.1 else ""
            names.append(f"{task.get_name()}{told}")
        if len(ordered) > _MOST_NAMES:
            names.append("…")
        calls = "".join(f"    {call}\n" for call in stack) or "    it runs, or is about to\n"
        return f"{len(ordered)} at the same place: {', '.join(names)}\n{calls}"
