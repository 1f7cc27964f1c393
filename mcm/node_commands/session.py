"""One run of a command for Nodes: its common options, its clusters, and who runs it."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar, final

import click

from mcm.api.core import PODS
from mcm.clock import SystemClock
from mcm.cluster_commands import options, running
from mcm.cluster_commands.connecting import Connected, connect
from mcm.node_commands.clusters import Clusters

R = TypeVar("R")

_USER_AGENT: Final = "mcm-drain"
_LONGEST_NAME: Final = 120


@final
@dataclass(frozen=True, slots=True)
class Session:
    """Where the common options say that Node and machine are."""

    kubeconfig: Path | None
    context: str
    control_kubeconfig: Path | None
    namespace: str

    def run(self, work: Callable[[Clusters], Coroutine[Any, Any, R]]) -> R:
        """Connect, work, and return the result; what a user can mend ends the process with 1."""
        return running.run(self._connected(work), mirror=PODS.name)

    async def _connected(self, work: Callable[[Clusters], Coroutine[Any, Any, R]]) -> R:
        async with self._target() as target, self._control(target) as control:
            usual = control.namespace
            return await work(Clusters(target.client, control.client, self.namespace, usual))

    @asynccontextmanager
    async def _target(self) -> AsyncIterator[Connected]:
        found = connect(
            self.kubeconfig, context=self.context, clock=SystemClock(), user_agent=_USER_AGENT
        )
        try:
            yield found
        finally:
            await found.client.aclose()

    @asynccontextmanager
    async def _control(self, target: Connected) -> AsyncIterator[Connected]:
        if self.control_kubeconfig is None:
            yield target
            return
        found = connect(
            self.control_kubeconfig,
            context="",
            clock=SystemClock(),
            user_agent=_USER_AGENT,
            flag="--control-kubeconfig",
        )
        try:
            yield found
        finally:
            await found.client.aclose()


def whoami() -> str:
    """Return ``user@host`` of whoever runs this process, for others to know whom to ask."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in many containers
        user = f"uid-{os.getuid()}"
    return f"{user}@{socket.gethostname()}"[:_LONGEST_NAME]


def common(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the common options, as its argument ``session``."""

    @wraps(command)
    def wrapped(
        *,
        kubeconfig: Path | None,
        context: str,
        control_kubeconfig: Path | None,
        namespace: str,
        **values: Any,
    ) -> None:
        session = Session(kubeconfig, context, control_kubeconfig, namespace)
        command(session=session, **values)

    return options.with_options(
        wrapped,
        (
            options.kubeconfig(
                "--kubeconfig", "--target-kubeconfig", "kubeconfig",
                help="Kubeconfig of the cluster with the node; by default $KUBECONFIG, else "
                     "~/.kube/config."),
            options.context(),
            options.kubeconfig(
                "--control-kubeconfig",
                help="Kubeconfig of the cluster with the machine objects, if it is another one."),
            click.option("-n", "--namespace", default="",
                         help="Namespace of the machine objects."),
        ),
    )  # fmt: skip
