"""What a provider is given where there is no cluster: a client that says so when it is used."""

from __future__ import annotations

import random
from contextlib import AbstractAsyncContextManager
from typing import final

from mcm.client.client import Client
from mcm.client.errors import ConfigurationError
from mcm.client.transport import Request, Response, StreamResponse, Transport
from mcm.clock import Clock
from mcm.driver import ProviderContext


def context_of(transport: Transport, *, namespace: str, clock: Clock) -> ProviderContext:
    """Return a context in which one cluster is both control and target."""
    client = Client(transport, clock=clock)
    return ProviderContext(client, client, namespace, clock, random.Random())


@final
class NoCluster:
    """A :class:`~mcm.client.transport.Transport` to nowhere."""

    async def request(self, request: Request) -> Response:
        raise _refusal()

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        raise _refusal()

    async def aclose(self) -> None:
        """There is nothing to close."""


def _refusal() -> ConfigurationError:
    return ConfigurationError(
        "this provider's cloud is a cluster, and none is given: use --kubeconfig"
    )
