"""Shows where every thread is."""

from __future__ import annotations

import sys
import threading

from mcm.profiling.stacks import stack_of


def describe() -> str:
    """Return each thread's name and calls, innermost first."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = []
    for ident, frame in sys._current_frames().items():
        calls = "".join(f"    {call}\n" for call in stack_of(frame))
        parts.append(f"{names.get(ident, 'a thread that is not of Python')}:\n{calls}")
    return "\n".join(sorted(parts))
