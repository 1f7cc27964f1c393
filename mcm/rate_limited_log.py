"""Log lines about what others do: one for each kind of trouble and minute, however often it is."""

from __future__ import annotations

import logging
import math
from typing import Final, final

from mcm.clock import Clock

_PERIOD: Final = 60.0


@final
class RateLimitedLog:
    """Warns by ``logger``. The next line of a kind says how many were left out since the last."""

    def __init__(self, logger: logging.Logger, clock: Clock) -> None:
        self._logger = logger
        self._clock = clock
        self._kinds: dict[str, tuple[float, int]] = {}

    def tell(self, kind: str, message: str, *, error: BaseException | None = None) -> None:
        """Log ``message``, unless one of its ``kind`` was within the last minute. There must not
        be more kinds than a programmer can count. ``error`` is shown with its traceback."""
        now = self._clock.monotonic()
        last, missed = self._kinds.get(kind, (-math.inf, 0))
        if now - last < _PERIOD:
            self._kinds[kind] = (last, missed + 1)
            return
        self._kinds[kind] = (now, 0)
        more = f" ({missed} more since the last line about {kind})" if missed else ""
        self._logger.warning("%s%s", message, more, exc_info=error)
