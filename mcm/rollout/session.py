"""One run of a command: its common options, its cluster, its end in one line and an exit code."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar, final

import click

from mcm.api.machine import MACHINE_DEPLOYMENTS
from mcm.client.errors import KubeError
from mcm.clock import SystemClock
from mcm.controllers.deployment.sizes.bounds import OutOfBounds
from mcm.interrupts import EXIT_CODE, heed_interrupts
from mcm.rollout.changes import Refused
from mcm.rollout.cluster import Cluster, connect

R = TypeVar("R")

_USER_AGENT: Final = "mcm-rollout"


@final
class Failed(Exception):
    """Ends the command with exit code 1 and this line."""


EXPECTED: Final = (KubeError, Refused, Failed, OutOfBounds)
"""What a user can mend, or must know."""


@final
@dataclass(frozen=True, slots=True)
class Session:
    """Where the common options say that the deployment is."""

    kubeconfig: Path | None
    context: str
    namespace: str

    def run(self, work: Callable[[Cluster], Coroutine[Any, Any, R]]) -> R:
        """Connect, work, and return the result; what a user can mend ends the process with 1."""
        return run(self._connected(work))

    async def _connected(self, work: Callable[[Cluster], Coroutine[Any, Any, R]]) -> R:
        cluster = connect(
            self.kubeconfig,
            context=self.context,
            namespace=self.namespace,
            clock=SystemClock(),
            user_agent=_USER_AGENT,
        )
        try:
            return await work(cluster)
        finally:
            await cluster.client.aclose()


def run(work: Coroutine[Any, Any, R]) -> R:
    """Run to the end; what a user can mend is one line and exit code 1."""
    _log_to_stderr()
    heed_interrupts()
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        sys.exit(EXIT_CODE)
    except BaseExceptionGroup as group:
        fail(_only(group))
    except EXPECTED as error:
        fail(error)


def _only(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def fail(error: BaseException) -> NoReturn:
    """End the process as ``error`` asks for; raise it if nobody expected it."""
    if isinstance(error, KeyboardInterrupt):
        sys.exit(EXIT_CODE)
    if not isinstance(error, EXPECTED):
        raise error
    click.echo(f"mcm: {error}", err=True)
    sys.exit(1)


def _log_to_stderr() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("mcm: %(message)s"))
    handler.addFilter(_is_of_deployments)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)


def _is_of_deployments(record: logging.LogRecord) -> bool:
    """Of three mirrors that lose one server, one tells of it."""
    return getattr(record, "resource", MACHINE_DEPLOYMENTS.name) == MACHINE_DEPLOYMENTS.name


def common(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the common options, as its argument ``session``."""
    options: Sequence[Callable[[Any], Any]] = (
        click.option("-n", "--namespace", default="",
                     help="Namespace of the deployment; by default the kubeconfig's."),
        click.option("--kubeconfig", "--control-kubeconfig", "kubeconfig",
                     type=click.Path(dir_okay=False, path_type=Path),
                     help="Kubeconfig of the cluster with the machine objects; by default "
                          "$KUBECONFIG, else ~/.kube/config."),
        click.option("--context", default="", help="Context of the kubeconfig."),
    )  # fmt: skip

    @wraps(command)
    def wrapped(*, kubeconfig: Path | None, context: str, namespace: str, **values: Any) -> None:
        command(session=Session(kubeconfig, context, namespace), **values)

    decorated: Callable[..., None] = wrapped
    for option in reversed(options):
        decorated = option(decorated)
    return decorated
