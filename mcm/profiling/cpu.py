"""Samples what this process's threads do while they are on the CPU."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Final

from mcm.clock import Clock
from mcm.profiling.profile import Measure, Profile
from mcm.profiling.stacks import Stack, stack_of

PERIOD: Final = 0.01
"""Seconds between two samples."""

_MEASURES: Final = (Measure("samples", "count"), Measure("cpu", "nanoseconds"))
_OWN_TASKS: Final = Path("/proc/self/task")


def sample(seconds: float, *, clock: Clock, cancelled: threading.Event) -> Profile:
    """Return a profile of ``seconds``, fewer once ``cancelled`` is set. Blocks: call it in a
    thread, which is left out.

    A stack counts as much as its thread was on the CPU since it was last looked at, as the kernel
    says; where that is not known, a whole period whenever it is not seen to wait for events.
    """
    started, started_at = clock.monotonic(), clock.now().timestamp()
    counted: Counter[Stack] = Counter()
    spent: Counter[Stack] = Counter()
    before = _cpu_times()
    while clock.monotonic() - started < seconds and not cancelled.wait(PERIOD):
        now = _cpu_times()
        frames = sys._current_frames()
        for ident, used in now.items():
            if (took := used - before.get(ident, used)) > 0 and ident in frames:
                stack = stack_of(frames[ident])
                counted[stack] += 1
                spent[stack] += took
        before = now
        del frames  # it holds this very frame
    return Profile(
        measures=_MEASURES,
        samples={stack: (count, spent[stack]) for stack, count in counted.items()},
        seconds=clock.monotonic() - started,
        started_at=started_at,
    )


def _cpu_times() -> dict[int, int]:
    """Return the nanoseconds that each other thread was on the CPU, by its identity.

    Read from files: asking for the clock of a thread that has just ended is undefined.
    """
    times = {}
    for thread in threading.enumerate():
        if thread.ident is None or thread is threading.current_thread():
            continue
        try:
            text = (_OWN_TASKS / str(thread.native_id) / "schedstat").read_text()
        except OSError:
            continue  # it has ended
        times[thread.ident] = int(text.split()[0])
    return times
