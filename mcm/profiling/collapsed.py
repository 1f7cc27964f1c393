"""Writes a profile as collapsed stacks, a line each, for flame graphs and speedscope."""

from __future__ import annotations

from mcm.profiling.profile import Profile


def encode(profile: Profile, *, measure: int = -1) -> bytes:
    """Return a line for each stack: its calls, outermost first, and the number of ``measure``."""
    lines = sorted(
        f"{';'.join(frame.function for frame in reversed(stack))} {values[measure]}\n"
        for stack, values in profile.samples.items()
    )
    return "".join(lines).encode()
