"""Log lines for people (text) or for machines (JSON, one object a line)."""

from __future__ import annotations

import logging
import sys
from typing import Final, TextIO, final

import orjson

from mcm import correlation
from mcm.api.timestamps import micro_time
from mcm.clock import Clock
from mcm.log_modules import log_more, rules_of

logger = logging.getLogger(__name__)

DEBUG_FROM: Final = 4
"""The verbosity from which on debug lines are logged, as with klog."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_THIRD_PARTY = ("aiohttp", "asyncio", "kubernetes_asyncio", "requests", "urllib3")


def _extras(record: logging.LogRecord) -> dict[str, object]:
    extras = {k: v for k, v in vars(record).items() if k not in _STANDARD}
    if under_way := correlation.current():
        extras.setdefault("correlation", under_way)
    return extras


@final
class JSONFormatter(logging.Formatter):
    """``{"ts", "level", "logger", "msg", …extra fields}``."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "ts": micro_time(self._clock.now()),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **_extras(record),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str).decode()


@final
class TextFormatter(logging.Formatter):
    """``12:00:01 INFO  controllers.machine  machine joined  key=default/m-1``."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f"  {k}={v}" for k, v in _extras(record).items())
        name = record.name.removeprefix("mcm.")
        stamp = self._clock.now().strftime("%H:%M:%S")
        line = f"{stamp} {record.levelname:<7} {name}  {record.getMessage()}{fields}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def configure(
    log_format: str,
    *,
    verbosity: int,
    clock: Clock,
    vmodule: str = "",
    stream: TextIO | None = None,
) -> None:
    """Send all records to ``stream`` (stderr); from :data:`DEBUG_FROM` on with debug, and so for
    the modules that ``vmodule`` names."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JSONFormatter(clock) if log_format == "json" else TextFormatter(clock))
    root = logging.getLogger()
    root.handlers = [handler]
    for name in _THIRD_PARTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    _set_level(verbosity)
    log_more(rules_of(vmodule))


@final
class Verbosity:
    """How much is logged, as the number that ``--v`` takes; may be changed at any time."""

    def __init__(self, number: int) -> None:
        self.number = number

    def change(self, number: int) -> None:
        """Log as much as with ``--v=number``, and say so if that is another number."""
        before, self.number = self.number, number
        _set_level(number)
        if number != before:
            logger.info("log verbosity changed", extra={"v": number, "was": before})


def _set_level(verbosity: int) -> None:
    logging.getLogger().setLevel(logging.DEBUG if verbosity >= DEBUG_FROM else logging.INFO)
