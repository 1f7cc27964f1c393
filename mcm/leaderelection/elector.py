"""Takes, renews and releases one lease, as :class:`.election.Election` decides."""

from __future__ import annotations

import asyncio
import logging
import math
import random as random_module
import socket
import uuid
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import NoReturn, final

from prometheus_client import CollectorRegistry

from mcm.api.core import LEASES, Lease
from mcm.client.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Invalid,
    KubeError,
    NotFound,
)
from mcm.client.verbs import ObjectClient
from mcm.clock import Clock
from mcm.leaderelection.election import Election, LeadershipLost, Timings, Write
from mcm.leaderelection.metrics import ElectionMetrics
from mcm.metrics import once_per_registry
from mcm.rate_limited_log import RateLimitedLog

log = logging.getLogger(__name__)

_RELEASE_RETRY = 0.1  # seconds
_JOINT_RETRY = 0.2  # seconds, at most
_JITTER = 0.2
"""A candidate looks again after a retry period, less up to this part of it: never later, so that
whoever died is followed within lease duration and retry period."""
_TICK = 0.001  # seconds: timers may come so much too early


def new_identity(host: str = "") -> str:
    """Return a holder identity that no other process has had: host name, ``_``, random part."""
    return f"{host or socket.gethostname()}_{uuid.uuid4()}"


@final
class LeaderElector:
    """Contends for the lease ``namespace/name`` as ``identity``; all durations are in seconds.

    ``client`` is one without this elector's fence. ``joint`` and ``annotations`` are as
    :class:`.election.Election` has them.

    Raises ValueError if the durations cannot work together (:meth:`.election.Timings.problems`).
    """

    def __init__(
        self,
        client: ObjectClient,
        *,
        name: str,
        namespace: str,
        identity: str,
        clock: Clock,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        randomness: random_module.Random | None = None,
        registry: CollectorRegistry | None = None,
        joint: bool = False,
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.identity = identity
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._random = randomness or random_module.Random()
        self._timings = Timings(lease_duration, renew_deadline, retry_period)
        self._election = Election(
            name=name,
            namespace=namespace,
            identity=identity,
            timings=self._timings,
            joint=joint,
            annotations=annotations,
        )
        self._joint = joint
        self._look = asyncio.Event()
        self._seldom = RateLimitedLog(log, clock)
        self._metrics: ElectionMetrics | None = None
        if registry is not None:
            self._metrics = once_per_registry(registry, ElectionMetrics)
            self._metrics.start_at_zero(name)

    @property
    def is_leading(self) -> bool:
        return self._election.leading(self._clock.monotonic())

    @property
    def holder(self) -> str:
        """Who held the lease when it was last seen; empty if nobody."""
        return self._election.holder

    @property
    def lease(self) -> Lease | None:
        """The lease as it was last seen; None if there was none."""
        return self._election.lease

    @property
    def led_since(self) -> datetime | None:
        """When the lease we took was taken after the last long break (:mod:`.continuity`); None if
        no such break is known."""
        return self._election.led_since

    def fence(self) -> None:
        """Raise LeadershipLost unless the lease is ours for long enough to finish a request.

        Reads the clock, not a flag: it also holds after the event loop was blocked or the process
        stopped. Call it right before each change of anything.
        """
        if not self.is_leading:
            raise self._loss()

    def time_left(self) -> float:
        """Return the seconds for which :meth:`fence` lets pass if nothing is renewed."""
        return max(0.0, self._time_to_renew()) if self.is_leading else 0.0

    @property
    def free_in(self) -> float:
        """For how many seconds another holds the lease unless it renews; infinity if not known."""
        return self._election.free_in(self._clock.monotonic())

    def look_now(self) -> None:
        """Let a candidate that waits look at the lease at once."""
        self._look.set()

    async def hold(
        self,
        won: Callable[[], None],
        *,
        obstructed: Callable[[], float] = lambda: 0.0,
        changed: Callable[[], None] = lambda: None,
    ) -> NoReturn:
        """Wait for the lease, call ``won``, renew until it is lost; raise LeadershipLost then.

        Nothing is released, be it lost or this call cancelled: that is for :meth:`release`.
        ``obstructed`` tells for how many seconds other leases forbid taking this one; if they do
        once it is held, it is given up. ``changed`` is called when the lease has changed hands.
        """
        try:
            await self._acquire(obstructed, changed)
            won()
            await self._renew_until_lost(obstructed)
        finally:
            self._resign()
            changed()

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, run ``lead`` once under it, release it; return when ``lead`` does.

        If leadership is lost, ``lead`` is cancelled and, after it has ended, LeadershipLost is
        raised. If this call is cancelled, so is ``lead``, and the lease is renewed until it has
        ended. What ``lead`` raises is raised.
        """
        try:
            await self._acquire(lambda: 0.0, lambda: None)
            await self._while_renewing(lead)
        finally:
            self._resign()
            await self.release()

    async def _acquire(self, obstructed: Callable[[], float], changed: Callable[[], None]) -> None:
        log.info("waiting for lease %s/%s as %s", self._namespace, self.name, self.identity)
        limit, known = self._timings.request_limit, self._standing()
        while not await self._attempt(limit, obstructed):
            if (standing := self._standing()) != known:
                known = standing
                waits = not self.holder and obstructed() > 0
                note = "; it is taken together with the others or not at all" if waits else ""
                place = (self._namespace, self.name)
                log.info("lease %s/%s is held by %s%s", *place, standing[1], note)
                changed()
            await self._pause(max(self.free_in, obstructed()))
        log.info("lease %s/%s acquired", self._namespace, self.name)
        self._report(leading=True)
        changed()

    def _standing(self) -> tuple[bool, str]:
        """What others wait for: whether anybody looked yet, and who holds the lease."""
        return self.free_in < math.inf, self.holder or "nobody"

    async def _pause(self, until_free: float) -> None:
        """Wait until the lease runs out or is to be looked at again, whichever is sooner."""
        pause = self._timings.retry_period * (1 - _JITTER * self._random.random())
        if until_free > 0:
            pause = min(pause, until_free + _TICK)
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._look.wait()
        self._look.clear()

    async def _while_renewing(self, lead: Callable[[], Awaitable[None]]) -> None:
        failure: Exception | None = None
        try:
            async with asyncio.TaskGroup() as group:
                renewal = group.create_task(
                    self._renew_until_lost(lambda: 0.0), name=f"renew-{self.name}"
                )
                try:
                    # Awaited in this task: a cancellation from outside reaches it first, and the
                    # renewal goes on until it has ended.
                    await lead()
                except Exception as error:  # raised below, outside the group, as it is
                    failure = error
                finally:
                    renewal.cancel()
        except BaseExceptionGroup as group_error:
            lost, _ = group_error.split(LeadershipLost)
            if lost is None:
                raise
            loss = lost.exceptions[0]
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise asyncio.CancelledError from loss  # we were told to end, too: that stands
            raise loss from (loss.__cause__ or failure)
        if failure is not None:
            raise failure

    async def _renew_until_lost(self, obstructed: Callable[[], float]) -> NoReturn:
        """Raise LeadershipLost when that is so, or when other leases bid us give way."""
        period, limit = self._timings.retry_period, self._timings.request_limit
        try:
            while (left := self._time_to_renew()) > 0:
                await self._clock.sleep(min(period, left))
                if obstructed() > 0:
                    await self._give_way()
                if (left := self._time_to_renew()) > 0:
                    await self._attempt(min(limit, left))
        except LeadershipLost:
            raise
        except Exception as error:  # whatever it is, nobody renews any more
            raise LeadershipLost(f"renewing lease {self.name} failed: {error!r}") from error
        log.error("lease %s/%s lost", self._namespace, self.name)
        raise self._loss()

    async def _give_way(self) -> NoReturn:
        """Release what is of no use to us alone, so that whoever else waits for it gets it."""
        self._resign()
        await self.release()
        raise LeadershipLost(
            f"lease {self._namespace}/{self.name} given up: another holds what we need with it"
        )

    def _loss(self) -> LeadershipLost:
        holder = self.holder or "nobody known"
        state = "ours, but not renewed in time" if holder == self.identity else f"held by {holder}"
        return LeadershipLost(f"not leading: lease {self._namespace}/{self.name} is {state}")

    def _time_to_renew(self) -> float:
        return self._election.time_left(self._clock.monotonic()) - self._timings.margin

    async def _attempt(self, limit: float, obstructed: Callable[[], float] = lambda: 0.0) -> bool:
        """Try once, for at most ``limit`` seconds; return whether we lead then."""
        try:
            async with asyncio.timeout(limit):
                while not await self._tried(obstructed):
                    await self._clock.sleep(_JOINT_RETRY * self._random.random())
        except (Conflict, AlreadyExists):
            log.debug("lease %s/%s: another was faster", self._namespace, self.name)
        except (KubeError, TimeoutError) as error:
            self._warn("attempt failed", error)
        return self.is_leading

    async def _tried(self, obstructed: Callable[[], float]) -> bool:
        """Try; False if another holder of a joint lease was faster, which changes nothing."""
        try:
            await self._acquire_or_renew(obstructed)
        except (Conflict, AlreadyExists):
            if not self._joint:
                raise
            return False
        return True

    async def _acquire_or_renew(self, obstructed: Callable[[], float]) -> None:
        write = self._election.renewal(self._clock.monotonic(), self._clock.now())
        if write is not None:
            try:
                await self._send(write)
            except (Conflict, NotFound, BadRequest, Invalid):
                # Changed or deleted meanwhile (servers word the latter in several ways): look.
                if self._metrics is not None:
                    self._metrics.slow_path.labels(self.name).inc()
            else:
                return
        self._election.observe(await self._read(), self._clock.monotonic())
        write = self._election.bid(self._clock.monotonic(), self._clock.now())
        if write is not None and obstructed() <= 0:
            await self._send(write)

    async def _read(self) -> Lease | None:
        try:
            return await self._client.get(LEASES, self.name, namespace=self._namespace)
        except NotFound:
            return None

    async def _send(self, write: Write) -> None:
        sent_at = self._clock.monotonic()
        self._election.sending()
        if write.create:
            lease = await self._client.create(LEASES, write.lease, namespace=self._namespace)
        else:
            lease = await self._client.update(
                LEASES, self.name, write.lease, namespace=self._namespace
            )
        self._election.renewed(lease, sent_at=sent_at, now=self._clock.monotonic())

    async def release(self) -> None:
        """Give the lease up if it is still ours; a failure only costs the others some waiting.

        Only once nobody holds it here any more: neither :meth:`hold` nor :meth:`run` runs.
        """
        if not self._election.may_hold:
            return
        try:
            async with asyncio.timeout(self._timings.renew_deadline):
                while not await self._release_once():
                    await self._clock.sleep(_RELEASE_RETRY)
        except (KubeError, TimeoutError) as error:
            self._warn("not released", error)
        except Exception:  # must not hide why the run ended
            log.exception("lease %s/%s: not released", self._namespace, self.name)

    async def _release_once(self) -> bool:
        lease = await self._read()
        write = self._election.release(lease, self._clock.now()) if lease is not None else None
        if write is not None:
            try:
                await self._client.update(LEASES, self.name, write.lease, namespace=self._namespace)
            except Conflict:
                return False
            log.info("lease %s/%s released", self._namespace, self.name)
        self._election.released()
        return True

    def _warn(self, what: str, error: Exception) -> None:
        if isinstance(error, NotFound) and error.about == "namespaces":
            self._seldom.tell(
                f"namespace {self._namespace}",
                f"the namespace {self._namespace} does not exist, in which machines and leases are "
                f"(--namespace); `kubectl create namespace {self._namespace}` makes it",
            )
            return
        silent = "the server did not answer in time"
        cause = str(error) or (silent if isinstance(error, TimeoutError) else type(error).__name__)
        log.warning("lease %s/%s: %s: %s", self._namespace, self.name, what, cause)

    def _resign(self) -> None:
        self._election.resign()
        self._report(leading=False)

    def _report(self, *, leading: bool) -> None:
        if self._metrics is not None:
            self._metrics.status.labels(self.name).set(int(leading))
