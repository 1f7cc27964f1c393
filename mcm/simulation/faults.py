"""What can go wrong between a client and the server, scripted or left to a seed.

A :class:`FaultPlan` is a list of faults, each with a matcher and a budget of hits. It decides, it
does not act: :class:`mcm.simulation.transport.FaultyTransport` carries its decisions out. With one
seed and one order of requests they are the same.

::

    plan = FaultPlan(random=random.Random(1))
    plan.answer(429, method="PATCH", path=r"/machines/", times=3, retry_after=1)
    plan.lose_answers(path=r"/machines", probability=0.01)
    plan.end_watches(how=WatchEnd.TORN, after=30.0)
"""

from __future__ import annotations

import random as randomness
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TypedDict, Unpack, final

import orjson

from mcm.client.transport import Request, Response
from mcm.sandbox.apiserver.errors import StatusError

_WATCH_VALUES = frozenset({"1", "t", "T", "true", "TRUE", "True"})

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def is_watch(request: Request) -> bool:
    return any(name == "watch" and value in _WATCH_VALUES for name, value in request.query)


@final
@dataclass(frozen=True, slots=True)
class Matcher:
    """Which requests a fault may befall. ``path`` and ``method`` are searched as regular
    expressions; ``watch`` None means watches and others alike; ``where`` decides last."""

    method: str = ""
    path: str = ""
    agent: str = ""
    watch: bool | None = None
    where: Callable[[Request], bool] | None = None

    def matches(self, request: Request) -> bool:
        if self.watch is not None and self.watch != is_watch(request):
            return False
        if self.method and not re.search(self.method, request.method):
            return False
        if self.path and not re.search(self.path, request.path):
            return False
        if self.agent and not re.search(self.agent, _agent(request)):
            return False
        return self.where is None or self.where(request)


def _agent(request: Request) -> str:
    return next((v for k, v in request.headers.items() if k.lower() == "user-agent"), "")


# Effects ----------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True)
class Answered:
    """The server is not asked; this is the answer."""

    response: Response


class Broken(Enum):
    """How a connection fails."""

    REFUSED = "refused"  # certainly not applied
    RESET = "reset"  # not applied, but the client cannot know
    LOST = "lost"  # applied, and the answer never came
    HANGS = "hangs"  # not applied; nothing comes until the client's own timeout


@final
@dataclass(frozen=True, slots=True)
class Delayed:
    """Seconds on the way there and back, each drawn from a range."""

    before: tuple[float, float]
    after: tuple[float, float]


class WatchEnd(Enum):
    """What happens to a running watch."""

    CLOSED = "closed"  # cleanly, as by its own timeout
    RESET = "reset"  # the connection breaks between two events
    TORN = "torn"  # the connection breaks within an event
    FROZEN = "frozen"  # nothing comes any more, and nothing says so


@final
@dataclass(frozen=True, slots=True)
class WatchEnded:
    """A watch ends ``after`` seconds, or after so many events, whichever is set; ``line`` is sent
    last (an ERROR event, garbage). Events meanwhile under way are lost."""

    how: WatchEnd
    after: float | None = None
    events: int | None = None
    line: bytes = b""


@final
@dataclass(frozen=True, slots=True)
class WatchDelayed:
    """Each event of a watch comes ``seconds`` to twice as many too late, in its order."""

    seconds: float


Effect = Answered | Broken | Delayed | WatchEnded | WatchDelayed


@final
@dataclass(slots=True)
class Fault:
    """One entry of a plan. ``skip``: matching requests it lets pass first; ``times``: how many it
    then befalls, None for all; ``probability`` is drawn for each. ``hits`` counts."""

    matcher: Matcher
    effect: Effect
    times: int | None = None
    skip: int = 0
    probability: float = 1.0
    hits: int = 0

    def lift(self) -> None:
        """Befall nobody from now on."""
        self.times = self.hits

    @property
    def spent(self) -> bool:
        return self.times is not None and self.hits >= self.times

    def strikes(self, request: Request, random: randomness.Random) -> bool:
        if self.spent or not self.matcher.matches(request):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.probability < 1.0 and random.random() >= self.probability:
            return False
        self.hits += 1
        return True


@final
@dataclass(slots=True)
class InjectedFaults:
    """What befalls one request. ``failure`` is the first one that struck; delays add up. ``lag`` is
    that of a watch's events."""

    before: float = 0.0
    after: float = 0.0
    lag: float = 0.0
    failure: Answered | Broken | None = None
    endings: list[WatchEnded] = field(default_factory=list)


class Aim(TypedDict, total=False):
    """Whom a fault befalls, and how often: see :class:`Matcher` and :class:`Fault`."""

    method: str
    path: str
    agent: str
    watch: bool | None
    where: Callable[[Request], bool] | None
    times: int | None
    skip: int
    probability: float


@final
class FaultPlan:
    """Faults are tried in the order they were added. All functions that add one take the keywords
    of :class:`Aim`."""

    def __init__(self, *, random: randomness.Random | None = None) -> None:
        self.faults: list[Fault] = []
        self._random = random or randomness.Random(0)
        self._running: set[Callable[[WatchEnded], None]] = set()

    def add(self, effect: Effect, **aim: Unpack[Aim]) -> Fault:
        """Add a fault of any effect."""
        matcher = Matcher(
            aim.get("method", ""),
            aim.get("path", ""),
            aim.get("agent", ""),
            aim.get("watch"),
            aim.get("where"),
        )
        fault = Fault(
            matcher,
            effect,
            times=aim.get("times"),
            skip=aim.get("skip", 0),
            probability=aim.get("probability", 1.0),
        )
        self.faults.append(fault)
        return fault

    def clear(self) -> None:
        """Lift every fault. Watches already frozen stay so."""
        self.faults.clear()

    def decide(self, request: Request) -> InjectedFaults:
        """Return what befalls a request; counts against the faults' budgets."""
        injected = InjectedFaults()
        watch = is_watch(request)
        for fault in self.faults:
            effect = fault.effect
            if isinstance(effect, WatchEnded | WatchDelayed) and not watch:
                continue
            if isinstance(effect, Answered | Broken) and injected.failure is not None:
                continue
            if fault.strikes(request, self._random):
                self._apply(injected, effect)
        return injected

    def _apply(self, injected: InjectedFaults, effect: Effect) -> None:
        match effect:
            case Delayed(before, after):
                injected.before += self._random.uniform(*before)
                injected.after += self._random.uniform(*after)
            case WatchDelayed(seconds):
                injected.lag += seconds
            case WatchEnded():
                injected.endings.append(effect)
            case _:
                injected.failure = effect

    # ---- shorthands -----------------------------------------------------------------------------

    def answer(
        self,
        code: int,
        reason: str = "",
        message: str = "injected by a fault plan",
        *,
        retry_after: int | None = None,
        **aim: Unpack[Aim],
    ) -> Fault:
        """Answer with a Status of ``code``, without asking the server."""
        error = StatusError(
            code, reason or _REASONS.get(code, ""), message, retry_after=retry_after
        )
        return self.add(Answered(error.response()), **aim)

    def refuse(self, **aim: Unpack[Aim]) -> Fault:
        """Refuse connections: nothing listens."""
        return self.add(Broken.REFUSED, **aim)

    def lose_answers(self, **aim: Unpack[Aim]) -> Fault:
        """Let requests be applied and break the connection before their answers; only writes
        unless ``method`` says otherwise."""
        aim.setdefault("method", "POST|PUT|PATCH|DELETE")
        return self.add(Broken.LOST, **aim)

    def delay(
        self,
        seconds: float | tuple[float, float],
        *,
        back: float | tuple[float, float] = 0.0,
        **aim: Unpack[Aim],
    ) -> Fault:
        """Slow requests down on the way there, and ``back``; ranges are drawn from evenly."""
        return self.add(Delayed(_range(seconds), _range(back)), **aim)

    def delay_events(self, seconds: float, **aim: Unpack[Aim]) -> Fault:
        """Let watches that start from now on lag behind."""
        return self.add(WatchDelayed(seconds), **aim)

    def end_watches(
        self,
        *,
        how: WatchEnd = WatchEnd.CLOSED,
        after: float | None = None,
        events: int | None = None,
        line: bytes = b"",
        **aim: Unpack[Aim],
    ) -> Fault:
        """End watches that start from now on; without ``after`` or ``events``, at once."""
        if after is None and events is None:
            after = 0.0
        return self.add(WatchEnded(how, after, events, line), **aim)

    # ---- watches under way ----------------------------------------------------------------------

    def cut_watches(self, how: WatchEnd = WatchEnd.RESET, *, line: bytes = b"") -> int:
        """Let every running watch end now; return how many there were."""
        running = tuple(self._running)
        for end in running:
            end(WatchEnded(how, line=line))
        return len(running)

    @contextmanager
    def running(self, end: Callable[[WatchEnded], None]) -> Iterator[None]:
        """For carriers: while the context lasts, ``end`` is called for :meth:`cut_watches`."""
        self._running.add(end)
        try:
            yield
        finally:
            self._running.discard(end)


def error_line(code: int, reason: str = "", message: str = "injected by a fault plan") -> bytes:
    """Return an ERROR event, for the ``line`` of a watch's end."""
    status = StatusError(code, reason or _REASONS.get(code, ""), message).status()
    return orjson.dumps({"type": "ERROR", "object": status}) + b"\n"


def _range(seconds: float | tuple[float, float]) -> tuple[float, float]:
    return seconds if isinstance(seconds, tuple) else (seconds, seconds)
