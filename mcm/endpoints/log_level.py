"""``/debug/flags/v``: how much is logged, shown by GET and changed by PUT."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from aiohttp import web

from mcm.http_server import Handler, Limits, read_body

PATH: Final = "/debug/flags/v"
METHODS: Final = ("GET", "HEAD", "PUT")

_NUMBER: Final = re.compile(rb"[0-9]{1,3}")
_LIMITS: Final = Limits(body=5.0)
_LONGEST: Final = 64


def log_level_page(shown: Callable[[], int], change: Callable[[int], None]) -> Handler:
    """Return the page. A number that is PUT is handed to ``change``, in the form and with the
    answer that the components of Kubernetes have."""

    async def answer(request: web.BaseRequest) -> web.Response:
        if request.method != "PUT":
            return web.Response(text=f"{shown()}\n")
        try:
            body = (await read_body(request, _LIMITS)).strip()
        except TimeoutError:
            return web.Response(status=408, text="the number did not come in time\n")
        except web.HTTPRequestEntityTooLarge:
            body = b""
        if not _NUMBER.fullmatch(body[:_LONGEST]):
            return web.Response(status=400, text="send a whole number from 0 to 999\n")
        change(int(body))
        return web.Response(text=f"successfully set klog.logging.verbosity to {int(body)}\n")

    return answer
