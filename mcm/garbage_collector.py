"""How seldom Python's garbage collector looks through all that lives."""

from __future__ import annotations

import gc


def collect_rarely() -> None:
    """Let the collector look through what was loaded, and through our mirrors, seldom.

    Both are large, live long and hold no cycles. With Python's defaults a busy watch spends a
    sixth of its time on looking through them again (measured in ``bench/informer.py``), and the
    start a tenth (``bench/process_start.py``).
    """
    gc.set_threshold(50_000, 20, 50)
