"""Whether clusters given have what a manager needs, before it starts, and may the rest be made."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from mcm.client.client import Client
from mcm.client.errors import ConfigurationError
from mcm.clock import Clock, SystemClock
from mcm.configuration.configuration import Configuration
from mcm.connections import connect
from mcm.driver.definitions import definitions_of
from mcm.driver.discovery import ProviderContext, load_provider
from mcm.launcher.installation import Plan, install, planned
from mcm.options import Options

CLUSTERS: Final = ("target-kubeconfig", "control-kubeconfig")
"""Flags of which one is set where clusters are given, and not the sandbox is used."""


def prepare(
    configuration: Configuration,
    *,
    installing: bool,
    confirmed: Callable[[str], bool],
    tell: Callable[[str], None],
) -> None:
    """Return when the clusters given have what a manager needs; at once for the sandbox.

    ``installing`` lets what is missing be created, once ``confirmed`` has agreed to the list.
    Raises ConfigurationError, which names all that is missing and one command that mends it.
    """
    if not is_for_clusters(configuration):
        if installing:
            tell("--install: nothing is missing in a sandbox")
        return
    clock = SystemClock()
    url, plan = asyncio.run(_look(configuration.options, clock))
    for name in plan.differing if installing else ():
        tell(f"customresourcedefinition/{name}: not as this version has it; left as it is")
    if not plan.missing:
        return
    listed = "\n".join(f"  {name}" for name in plan.names)
    if not installing:
        raise ConfigurationError(
            f"the cluster at {url} lacks\n{listed}\nthe same command with --install "
            "(`make start ARGS=--install`) shows this list, and creates what is in it"
        )
    if not confirmed(f"to be created in the cluster at {url}:\n{listed}"):
        raise ConfigurationError("nothing was created, and nothing is started")
    asyncio.run(_install(configuration.options, plan, clock))
    tell("created, and served")


def is_for_clusters(configuration: Configuration) -> bool:
    """Whether clusters are given; else the sandbox is used."""
    return any(flag in configuration.places for flag in CLUSTERS)


async def _look(options: Options, clock: Clock) -> tuple[str, Plan]:
    async with _control(options, clock) as (url, client):
        context = ProviderContext(
            control=client,
            target=None,
            namespace=options.clusters.namespace,
            clock=clock,
            random=random.Random(),
        )
        driver = load_provider(options.provider.name)(context)
        definitions = definitions_of(driver)
        return url, await planned(client, definitions, options.clusters.namespace)


async def _install(options: Options, plan: Plan, clock: Clock) -> None:
    async with _control(options, clock) as (_, client):
        await install(client, plan, clock)


@asynccontextmanager
async def _control(options: Options, clock: Clock) -> AsyncIterator[tuple[str, Client]]:
    connections = connect(options, clock)
    try:
        yield connections.server, Client(connections.control, clock=clock)
    finally:
        await connections.aclose()
