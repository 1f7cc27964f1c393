"""Lets Ctrl-C cancel what a command runs, once there is something to clean up or to say."""

from __future__ import annotations

import signal
from typing import Final

EXIT_CODE: Final = 130
"""Of what was ended by Ctrl-C, as shells have it."""


def heed_interrupts() -> None:
    """Raise KeyboardInterrupt at Ctrl-C from now on; until then it ends the process where it stands
    (:mod:`mcm.__main__`). Where it is ignored, it stays so."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
