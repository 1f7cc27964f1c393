"""From flags to transports: which server is which cluster, and how to log in to it."""

from __future__ import annotations

from dataclasses import dataclass

from mcm.client import incluster
from mcm.client.connection import ConnectionSpec
from mcm.client.errors import ConfigurationError
from mcm.client.http import HTTPTransport
from mcm.client.transport import Transport
from mcm.clock import Clock
from mcm.options import IN_CLUSTER, Options


@dataclass(frozen=True, slots=True)
class Connections:
    """``target`` is ``control`` itself if they are one cluster, None without a target. ``server``
    is the URL of the control cluster."""

    control: Transport
    target: Transport | None
    server: str

    async def aclose(self) -> None:
        await self.control.aclose()
        if self.target is not None and self.target is not self.control:
            await self.target.aclose()


def connect(options: Options, clock: Clock) -> Connections:
    """Load what the flags name. Raises ConfigurationError, its text naming flag and file."""
    clusters = options.clusters
    if clusters.are_one:
        spec = _load(clusters.target_kubeconfig, "--target-kubeconfig")
        shared = HTTPTransport(spec, clock=clock)
        return Connections(shared, shared, spec.server)
    control = _load(clusters.control_kubeconfig, "--control-kubeconfig")
    # Both are read before either is opened: a fault in the second leaves nothing behind.
    target = (
        _load(clusters.target_kubeconfig, "--target-kubeconfig") if clusters.has_target else None
    )
    return Connections(
        HTTPTransport(control, clock=clock),
        HTTPTransport(target, clock=clock) if target is not None else None,
        control.server,
    )


def _load(path: str, flag: str) -> ConnectionSpec:
    try:
        if path == IN_CLUSTER or (not path and incluster.available()):
            return incluster.load()
        from mcm.client import kubeconfig  # costs 60 MiB of imports: only when one is used

        return kubeconfig.load(path or None)
    except ConfigurationError as error:
        raise ConfigurationError(f"{flag}: {error}") from error
