"""``/metrics``: the fleet's families and those of the process's registry, for Prometheus."""

from __future__ import annotations

from aiohttp import web

from mcm.endpoints.exposition import Exposition, render
from mcm.http_server import Handler


def metrics_page(fleet: Exposition | None = None) -> Handler:
    """Return the page that shows ``fleet`` and then the process's registry."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        rendered = await render(request, fleet=fleet)
        response = web.StreamResponse(headers={"Content-Type": rendered.content_type})
        response.content_length = sum(map(len, rendered.pieces))
        await response.prepare(request)
        if request.method != "HEAD":
            for piece in rendered.pieces:
                await response.write(piece)
        await response.write_eof()
        return response

    return answer
