"""A transport that carries nothing by which a server changes anything, and notes its clock."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, final

from mcm.client.transport import Request, Response, StreamResponse, Transport
from mcm.clock import Clock

REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
"""Asked by POST: the server answers, and stores nothing."""


@final
class ReadOnlyTransport:
    """A :class:`Transport` in front of another one."""

    def __init__(self, transport: Transport, *, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self.ahead: timedelta | None = None
        """By how much the server's clock is ahead of ours; None while it has not told."""

    async def request(self, request: Request) -> Response:
        """Carry a read. Raises PermissionError for anything else."""
        if request.method != "GET" and (request.method, request.path) != ("POST", REVIEWS):
            raise PermissionError(f"{request.method} {request.path} would change something")
        sent = self._clock.now()
        response = await self._transport.request(request)
        took = self._clock.now() - sent
        self._note(response.headers.get("date", ""), sent + took / 2, took)
        return response

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        raise PermissionError("nothing is watched")

    async def aclose(self) -> None:
        await self._transport.aclose()

    def _note(self, date: str, ours: datetime, took: timedelta) -> None:
        """Believe the header up to its whole seconds and the time that the answer took."""
        try:
            theirs = parsedate_to_datetime(date)
        except ValueError:
            return
        if theirs.tzinfo is None:
            return
        # It was cut to the second: half of one more is the best guess.
        ahead = theirs + timedelta(seconds=0.5) - ours
        doubt = timedelta(seconds=0.5) + took / 2
        sure = max(abs(ahead) - doubt, timedelta(0))
        self.ahead = sure if ahead > timedelta(0) else -sure
