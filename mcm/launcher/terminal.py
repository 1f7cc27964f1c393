"""Ctrl-C for us alone: under ``make``, whose own death by it would hide that we ended in order."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

_TERMINAL = "/dev/tty"


@contextmanager
def foreground_under_make(environ: Mapping[str, str]) -> Iterator[None]:
    """Become a process group of our own, and the terminal's foreground, while the context lasts.

    Does nothing unless ``make`` started us (it sets MAKELEVEL) in the foreground of a terminal:
    a shell gives each of its jobs a group already.
    """
    terminal = _foreground_terminal() if environ.get("MAKELEVEL") else None
    if terminal is None:
        yield
        return
    group = os.getpgrp()
    # Without this, a process that is no longer in the foreground is stopped for giving it back.
    previous = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        os.setpgid(0, 0)
        os.tcsetpgrp(terminal, os.getpgrp())
        yield
    finally:
        with suppress(OSError):  # the terminal may be gone
            os.tcsetpgrp(terminal, group)
        os.close(terminal)
        signal.signal(signal.SIGTTOU, previous)


def _foreground_terminal() -> int | None:
    """Open the controlling terminal if we are in its foreground; the caller closes it."""
    try:
        terminal = os.open(_TERMINAL, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    if os.tcgetpgrp(terminal) == os.getpgrp():
        return terminal
    os.close(terminal)
    return None
