"""What ``/metrics`` answers: the fleet, and the process's registry, as the scraper asked for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import cast, final

from aiohttp import web
from prometheus_async.aio.web import server_stats
from prometheus_client import REGISTRY, disable_created_metrics

from mcm.metrics import plain_counters_of

_OPENMETRICS = "application/openmetrics-text"

Exposition = Callable[[], Awaitable[Sequence[bytes]]]
"""Returns metric families as text, in pieces, in a form that holds for both formats."""


@final
@dataclass(frozen=True, slots=True)
class Rendered:
    """An answer's content type, and its body in pieces."""

    content_type: str
    pieces: Sequence[bytes]


async def render(request: web.BaseRequest, *, fleet: Exposition | None = None) -> Rendered:
    """Return ``fleet`` and then the process's registry, which is rendered in one piece and so must
    hold no series for each object; as OpenMetrics if the request accepts that, else as
    Prometheus's text."""
    pieces = list(await fleet() if fleet is not None else ())
    # Else each counter and histogram has a twin, a gauge that says when it was made.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    # It reads nothing of the request but a header.
    registered: web.Response = await server_stats(cast("web.Request", request))
    content_type = registered.headers["Content-Type"]
    openmetrics = content_type.startswith(_OPENMETRICS)
    pieces += [c.text(openmetrics=openmetrics).encode() for c in plain_counters_of(REGISTRY)]
    # The registry comes last, as OpenMetrics ends with a mark that is set behind it.
    return Rendered(content_type, (*pieces, cast("bytes", registered.body)))
