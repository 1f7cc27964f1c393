from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from mcm import logs


class FixedClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("a log line does not wait")


@pytest.fixture(autouse=True)
def root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers, root.level = handlers, level


def written(log_format: str, *, verbosity: int = 0) -> str:
    stream = io.StringIO()
    logs.configure(log_format, verbosity=verbosity, clock=FixedClock(), stream=stream)
    logger = logging.getLogger("mcm.controllers.machine")
    logger.debug("detail")
    logger.info("machine %s joined", "m-1", extra={"key": "default/m-1"})
    return stream.getvalue()


def test_text_lines_name_time_level_place_and_fields() -> None:
    assert written("text") == (
        "03:04:05 INFO    controllers.machine  machine m-1 joined  key=default/m-1\n"
    )


def test_json_lines_are_one_object_each() -> None:
    assert json.loads(written("json")) == {
        "ts": "2026-01-02T03:04:05.000000Z",
        "level": "info",
        "logger": "mcm.controllers.machine",
        "msg": "machine m-1 joined",
        "key": "default/m-1",
    }


def test_verbosity_four_shows_debug() -> None:
    assert "detail" not in written("text", verbosity=3)
    assert "detail" in written("text", verbosity=4)


def test_an_exception_is_a_field_of_its_json_line() -> None:
    stream = io.StringIO()
    logs.configure("json", verbosity=0, clock=FixedClock(), stream=stream)
    try:
        raise ValueError("boom")
    except ValueError:
        logging.getLogger("mcm").exception("failed")
    assert "ValueError: boom" in json.loads(stream.getvalue())["error"]
