"""What a server can answer at most, and how much of it a load has made use of."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import msgspec

from bench.clusters.requests import Kind
from bench.managers.usage import usage_of

CUSTOM = frozenset({"machines", "machinesets", "machinedeployments", "machineclasses"})


class NotMeasured(Exception):
    """The raw rates could not be measured; the text says why."""


@final
@dataclass(frozen=True, slots=True)
class RawRates:
    """Requests a second by kind, each measured alone with nobody watching.

    ``generator_cpu_seconds`` of ``seconds`` is what the one that asked needed itself: far below
    one core, or it was the bottleneck. ``server_cpu_seconds`` is what the server needed, 0 if it is
    not ours.
    """

    rates: Mapping[str, float]
    connections: int
    requests: int
    seconds: float
    generator_cpu_seconds: float
    server_cpu_seconds: float = 0.0

    def rate_of(self, kind: Kind) -> float:
        """Return the rate of a kind; of what was not measured, that of its nearest likeness: PUT
        as PATCH, sets and deployments as machines, other built-in kinds as Secrets and Nodes."""
        verb = {"PUT": "PATCH", "DELETECOLLECTION": "DELETE", "LIST": "GET"}.get(
            kind.verb, kind.verb
        )
        if verb == "GET":
            return self.rates["GET machines"]
        resource = "machines" if kind.resource in CUSTOM else kind.resource
        names = (
            f"{verb} {resource}/{kind.subresource}",
            f"{verb} {resource}",
            f"{verb} secrets",
            f"{verb} nodes",
        )
        return next(self.rates[name] for name in names if name in self.rates)

    def seconds_for(self, requests: Mapping[Kind, int]) -> float:
        """Return how long the server needs for these at its raw rates."""
        return sum(count / self.rate_of(kind) for kind, count in requests.items())


def mean(measured: Sequence[RawRates]) -> RawRates:
    """Return the harmonic means: the rates that belong to the mean time of a request."""
    first, count = measured[0], len(measured)
    rates = {
        name: round(count / sum(1 / each.rates[name] for each in measured), 1)
        for name in first.rates
    }
    return RawRates(
        rates,
        first.connections,
        sum(each.requests for each in measured),
        round(sum(each.seconds for each in measured), 3),
        round(sum(each.generator_cpu_seconds for each in measured), 3),
        round(sum(each.server_cpu_seconds for each in measured), 2),
    )


async def measure(
    kubeconfig: Path,
    namespace: str,
    *,
    objects: int,
    connections: int,
    servers: Sequence[int] = (),
) -> RawRates:
    """Measure in a process of its own; ``servers`` are the server's processes, if they are known.
    Raises :class:`NotMeasured`."""
    before = usage_of(servers).cpu_seconds
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.clusters.generator",
        str(kubeconfig),
        namespace,
        f"--objects={objects}",
        f"--connections={connections}",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise NotMeasured(errors.decode().strip() or f"exit code {process.returncode}")
    used = usage_of(servers).cpu_seconds - before
    return replace(msgspec.json.decode(output, type=RawRates), server_cpu_seconds=round(used, 2))
