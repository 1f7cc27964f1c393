"""Log lines for people (text) or for machines (JSON, one object a line)."""

from __future__ import annotations

import logging
import sys
from typing import TextIO, final

import orjson

from mcm.api.timestamps import micro_time
from mcm.clock import Clock

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_THIRD_PARTY = ("aiohttp", "asyncio", "kubernetes_asyncio")


def _extras(record: logging.LogRecord) -> dict[str, object]:
    return {k: v for k, v in vars(record).items() if k not in _STANDARD}


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
    log_format: str, *, verbosity: int, clock: Clock, stream: TextIO | None = None
) -> None:
    """Send all records to ``stream`` (stderr); verbosity 4 and more is debug, as with klog."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JSONFormatter(clock) if log_format == "json" else TextFormatter(clock))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.DEBUG if verbosity >= 4 else logging.INFO)
    for name in _THIRD_PARTY:
        logging.getLogger(name).setLevel(logging.WARNING)
