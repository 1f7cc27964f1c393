"""``/configz``: the options that the process runs with."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from aiohttp import web

from mcm.http_server import Handler


def configuration_page(configuration: Mapping[str, object]) -> Handler:
    """Return the page that shows ``configuration``, as it is now, as JSON."""
    body = orjson.dumps(configuration, default=str, option=orjson.OPT_INDENT_2)

    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    return answer
