"""Runs what a command does to its end: a result, or one line on standard error and an exit code."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Coroutine
from typing import Any, Final, NoReturn, TypeVar, final

import click

from mcm.client.errors import KubeError
from mcm.interrupts import EXIT_CODE, heed_interrupts

R = TypeVar("R")


@final
class Failed(Exception):
    """Ends the command with exit code 1 and this line."""


EXPECTED: Final[tuple[type[Exception], ...]] = (KubeError, Failed)
"""What a user can mend, or must know."""


def run(
    work: Coroutine[Any, Any, R], *, mirror: str, expected: tuple[type[Exception], ...] = EXPECTED
) -> R:
    """Run to the end; what is ``expected`` is one line and exit code 1.

    Of several mirrors that lose one server, the one of the resource ``mirror`` tells of it.
    """
    _log_to_stderr(mirror)
    heed_interrupts()
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        sys.exit(EXIT_CODE)
    except BaseExceptionGroup as group:
        fail(_only(group), expected=expected)
    except expected as error:
        fail(error, expected=expected)


def fail(error: BaseException, *, expected: tuple[type[Exception], ...] = EXPECTED) -> NoReturn:
    """End the process as ``error`` asks for; raise it if nobody expected it."""
    if isinstance(error, KeyboardInterrupt):
        sys.exit(EXIT_CODE)
    if not isinstance(error, expected):
        raise error
    click.echo(f"mcm: {error}", err=True)
    sys.exit(1)


def _only(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _log_to_stderr(mirror: str) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("mcm: %(message)s"))
    handler.addFilter(lambda record: getattr(record, "resource", mirror) == mirror)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
