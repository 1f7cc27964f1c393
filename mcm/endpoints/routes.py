"""Which page answers a path, with which methods, and who may ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import final

from aiohttp import web

from mcm.endpoints.probes import Probe
from mcm.http_server import Handler

Guard = Callable[[web.BaseRequest], Awaitable[web.Response | None]]
"""Returns the refusal of a request; None lets it in."""

READ = ("GET", "HEAD")

# No more of 127.0.0.0/8: a mesh's proxy hands strangers on from other addresses of it.
_LOOPBACK = ("127.0.0.1", "::1", "::ffff:127.0.0.1")


class Access(Enum):
    """Who may ask: anybody; whom the guard lets in, if there is one; or, for what shows the inside
    of the process or changes it, only who sits beside it if there is no guard (``kubectl
    port-forward`` and ``kubectl exec`` do)."""

    OPEN = "open"
    GUARDED = "guarded"
    INSIDE = "inside"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path, its page, and who may ask for it."""

    path: str
    page: Handler
    methods: tuple[str, ...] = READ
    access: Access = Access.GUARDED


def app_of(
    routes: Iterable[Route] = (),
    *,
    probes: Iterable[tuple[str, Probe]] = (),
    guard: Guard | None = None,
) -> Handler:
    """Return what answers requests. ``guard`` is asked before every page that is not open, and
    before it is said that there is no such page; probes are open, with all paths below theirs."""
    pages = {route.path: route for route in routes}
    checks = dict(probes)
    for path, probe in checks.items():
        pages[path] = Route(path=path, page=probe.overview, access=Access.OPEN)

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        route = pages.get(request.path) or await _single_check(checks, request)
        refusal = await _refusal(request, route.access if route else Access.GUARDED, guard)
        if refusal is not None:
            return refusal
        if route is None:
            return web.Response(status=404, text="404: Not Found")
        if request.method not in route.methods:
            allowed = {"Allow": ",".join(route.methods)}
            return web.Response(status=405, text="405: Method Not Allowed", headers=allowed)
        return await route.page(request)

    return answer


async def _refusal(
    request: web.BaseRequest, access: Access, guard: Guard | None
) -> web.Response | None:
    if access is Access.OPEN:
        return None
    if guard is not None:
        return await guard(request)
    if access is Access.INSIDE and not _from_inside(request):
        return web.Response(
            status=403,
            text="403: Forbidden\nwithout --metrics-authorization this is answered only to who "
            "comes from the pod itself, as kubectl port-forward does\n",
        )
    return None


def _from_inside(request: web.BaseRequest) -> bool:
    peer = request.transport.get_extra_info("peername") if request.transport else None
    return isinstance(peer, tuple) and peer[0] in _LOOPBACK


async def _single_check(checks: Mapping[str, Probe], request: web.BaseRequest) -> Route | None:
    """Return the route of one check of a probe, if the path names one."""
    for path, probe in checks.items():
        if request.path.startswith(f"{path}/"):
            found = await probe.single(request.path[len(path) + 1 :])
            if found is not None:
                return Route(path=request.path, page=_answering(found), access=Access.OPEN)
    return None


def _answering(response: web.Response) -> Handler:
    async def page(_: web.BaseRequest) -> web.Response:
        return response

    return page
