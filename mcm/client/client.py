"""Carries out the verbs on one API server: sends, waits, repeats, counts.

What is sent (:mod:`mcm.client.verbs`), what an answer means (:mod:`mcm.client.answers`) and whether
to send again (:mod:`mcm.client.retry`) is decided elsewhere, without any I/O.
"""

from __future__ import annotations

import logging
import random as random_module
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import TypeVar, final

from mcm.client import answers
from mcm.client.errors import KubeError, TransportError
from mcm.client.metrics import ClientMetrics, code_of
from mcm.client.requests import Call
from mcm.client.retry import RetryPolicy, asked_too_much, wait_before_retry
from mcm.client.throttle import Throttle
from mcm.client.transport import Lane, Request, Response, StreamResponse, Transport
from mcm.client.verbs import ObjectClient
from mcm.clock import Clock
from mcm.tracing import NO_TRACES, Kind, Span, Tracer

R = TypeVar("R")

_ERROR_BODY_LIMIT = 64 * 1024

logger = logging.getLogger(__name__)


def _nobody_asks(_: float) -> None:
    """Who makes requests outside reconciles need not tell how they get on."""


@final
class Client(ObjectClient):
    """One server, many callers. Every verb raises only :mod:`mcm.client.errors`, what ``fence``
    raises, and ValueError for a request that cannot be meant (an empty name).

    ``name`` is what its metrics call it that are of one client; without one it has none of those.
    ``fence`` is called before each attempt of a write, and again when its bytes leave; it raises to
    forbid it. ``timeout`` limits one attempt, ``budget`` a call with all its retries (both in
    seconds). Watches are outside ``max_in_flight`` (0: no cap), which gives way where the server
    refuses requests, and ``qps`` (0: no limit), and are never retried here: who watches knows
    better how to go on. ``progressed`` is told the monotonic time at which an attempt begins, and
    at which it is over. A client whose ``lane`` is LEASE is meant for the elector: give it no
    fence, short times, and it never waits behind others.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock,
        name: str = "",
        user_agent: str = "mcm",
        fence: Callable[[], None] | None = None,
        metrics: ClientMetrics | None = None,
        max_in_flight: int = 64,
        qps: float = 0,
        burst: int = 0,
        lane: Lane = Lane.REQUEST,
        field_manager: str = "mcm",
        timeout: float = 30.0,
        budget: float = 60.0,
        retry: RetryPolicy | None = None,
        random: random_module.Random | None = None,
        tracer: Tracer = NO_TRACES,
        progressed: Callable[[float], None] = _nobody_asks,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._user_agent = user_agent
        self._fence = fence
        self._metrics = metrics
        self._lane = lane
        self.field_manager = field_manager
        self._timeout = timeout
        self._budget = budget
        self._retry = retry or RetryPolicy()
        self._random = random or random_module.Random()
        self._tracer = tracer
        self._progressed = progressed
        self._throttle = Throttle(clock=clock, max_in_flight=max_in_flight, qps=qps, burst=burst)
        if metrics is not None and name:
            metrics.limited(name, lambda: self._throttle.allowed)

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        """Send ``call`` until it succeeds, may not be repeated, or its time is used up."""
        deadline = self._clock.monotonic() + self._budget
        attempt = 0
        while True:
            left = deadline - self._clock.monotonic()
            timeout = self._timeout if attempt == 0 else min(self._timeout, left)
            try:
                response = await self._attempt(call, timeout=timeout)
            except KubeError as error:
                delay = wait_before_retry(
                    self._retry,
                    attempt=attempt,
                    error=error,
                    safety=call.safety,
                    left=deadline - self._clock.monotonic(),
                    chance=self._random.random(),
                )
                if delay is None:
                    raise
                self._note_retry(call, error, delay)
            else:
                return read(response)
            await self._clock.sleep(delay)
            attempt += 1

    @asynccontextmanager
    async def follow(
        self, call: Call, *, read_timeout: float | None
    ) -> AsyncIterator[StreamResponse]:
        """Open a stream."""
        request = call.request(
            user_agent=self._user_agent,
            lane=self._lane,
            timeout=self._timeout,
            read_timeout=read_timeout,
        )
        async with self._counted_stream(request, call.about) as response:
            if not 200 <= response.status < 300:
                raise await _stream_failure(response)
            yield response

    async def aclose(self) -> None:
        """Close the transport; idempotent."""
        await self._transport.aclose()

    async def _attempt(self, call: Call, *, timeout: float) -> Response:
        queued_at = self._clock.monotonic()
        await self._throttle.enter()
        try:
            fence = self._fence if call.mutating else None
            if fence is not None:
                fence()  # leadership may have gone in the queue
            started_at = self._clock.monotonic()
            if self._metrics is not None:
                self._metrics.waited(started_at - queued_at, verb=call.verb)
            self._progressed(started_at)
            with self._span(call) as span:
                # … or goes while a connection is made, or the loop stands still: asked once more
                # when the bytes leave.
                request = call.request(
                    user_agent=self._user_agent,
                    lane=self._lane,
                    timeout=timeout,
                    permit=fence,
                    headers=self._tracer.headers(),
                )
                response: Response | None = None
                try:
                    response = await self._transport.request(request)
                    span.set("http.response.status_code", response.status)
                finally:
                    took = self._clock.monotonic() - started_at
                    self._progressed(started_at + took)
                    self._note_answer(call, request, response, took)
            return self._judged(call, response, started_at)
        finally:
            self._throttle.leave()

    def _judged(self, call: Call, response: Response, started_at: float) -> Response:
        """Let the throttle know of an answer; raise the error that it stands for."""
        error = answers.failure(
            response.status, response.headers, response.body, refusal=response.refusal
        )
        if error is None:
            self._throttle.served()
            return response
        if asked_too_much(error, call.safety):
            self._throttle.refused(begun=started_at, wait=error.retry_after or 0.0)
        else:
            self._throttle.served()
        raise error

    def _span(self, call: Call) -> AbstractContextManager[Span]:
        if self._tracer is NO_TRACES:
            return NO_TRACES.span("", {})  # what a span is told costs more than it
        attributes = {
            "http.request.method": call.method,
            "url.path": call.path,
            "k8s.verb": call.verb,
            "k8s.resource": call.about,
            "k8s.namespace.name": call.namespace,
            "k8s.object.name": call.name,
        }
        name = f"{call.method} {call.about or call.path}"
        return self._tracer.span(name, attributes, kind=Kind.CLIENT)

    def _note_answer(
        self, call: Call, request: Request, response: Response | None, took: float
    ) -> None:
        """Count an answer, which took so many seconds; None: there was none."""
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug(
                "%s %s: %s after %.3f s",
                request.method,
                request.path,
                response.status if response is not None else "no answer",
                took,
            )
        if self._metrics is not None:
            code = str(response.status) if response is not None else "<error>"
            self._metrics.answered(code, method=request.method, resource=call.about)
            self._metrics.took(took, verb=call.verb, url=call.path_form)

    @asynccontextmanager
    async def _counted_stream(
        self, request: Request, resource: str
    ) -> AsyncIterator[StreamResponse]:
        opened = False
        try:
            async with self._transport.stream(request) as response:
                opened = True
                logger.debug("%s %s: %d, open", request.method, request.path, response.status)
                self._count(str(response.status), resource)
                yield response
        except TransportError:
            if not opened:
                self._count("<error>", resource)
            raise

    def _count(self, code: str, resource: str) -> None:
        if self._metrics is not None:
            self._metrics.answered(code, method="GET", resource=resource)

    def _note_retry(self, call: Call, error: KubeError, delay: float) -> None:
        if self._metrics is not None:
            self._metrics.retried(code_of(error), verb=call.verb, resource=call.about)
        logger.debug(
            "request will be repeated",
            extra={
                "verb": call.verb,
                "resource": call.about,
                "path": call.path,
                "delay": round(delay, 3),
                "cause": str(error),
            },
        )


async def _stream_failure(response: StreamResponse) -> KubeError:
    """Read the Status of a refused watch, as far as it comes and fits."""
    body = b""
    try:
        async for chunk in response.chunks:
            body += chunk
            if len(body) > _ERROR_BODY_LIMIT:
                break
    except TransportError:
        pass  # the status says enough; a torn body only costs the message
    error = answers.failure(response.status, response.headers, body, refusal=response.refusal)
    assert error is not None, "only called for failures"
    return error
