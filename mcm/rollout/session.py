"""One run of a rollout command: its common options, its cluster, and what ends it in one line."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar, final

import click

from mcm.api.machine import MACHINE_DEPLOYMENTS
from mcm.clock import SystemClock
from mcm.cluster_commands import options, running
from mcm.cluster_commands.connecting import connect
from mcm.controllers.deployment.sizes.bounds import OutOfBounds
from mcm.rollout.changes import Refused
from mcm.rollout.cluster import Cluster

R = TypeVar("R")

_USER_AGENT: Final = "mcm-rollout"

EXPECTED: Final[tuple[type[Exception], ...]] = (*running.EXPECTED, Refused, OutOfBounds)
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
        mirror = MACHINE_DEPLOYMENTS.name
        return running.run(self._connected(work), mirror=mirror, expected=EXPECTED)

    async def _connected(self, work: Callable[[Cluster], Coroutine[Any, Any, R]]) -> R:
        found = connect(
            self.kubeconfig, context=self.context, clock=SystemClock(), user_agent=_USER_AGENT
        )
        try:
            return await work(Cluster(found.client, self.namespace or found.namespace))
        finally:
            await found.client.aclose()


def fail(error: BaseException) -> NoReturn:
    """End the process as ``error`` asks for; raise it if nobody expected it."""
    running.fail(error, expected=EXPECTED)


def common(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the common options, as its argument ``session``."""

    @wraps(command)
    def wrapped(*, kubeconfig: Path | None, context: str, namespace: str, **values: Any) -> None:
        command(session=Session(kubeconfig, context, namespace), **values)

    return options.with_options(
        wrapped,
        (
            click.option("-n", "--namespace", default="",
                         help="Namespace of the deployment; by default the kubeconfig's."),
            options.kubeconfig(
                "--kubeconfig", "--control-kubeconfig", "kubeconfig",
                help="Kubeconfig of the cluster with the machine objects; by default "
                     "$KUBECONFIG, else ~/.kube/config."),
            options.context(),
        ),
    )  # fmt: skip
