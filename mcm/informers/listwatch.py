"""List, then watch: the decisions of a reflector, as a state machine without any I/O.

The driver asks :meth:`ListWatch.next` what to do and reports what came of it. Every rule about
versions, relists and waiting is here:

==========================================  ====================================================
what happened                               what follows
==========================================  ====================================================
the list is complete                        watch from the list's version
a list at a version expired or is too new   list the newest state (quorum read), at once
a later page expired                        the whole list in one page, at once
any other failed list                       back-off, list
a watch could not be opened: transport, 429 back-off (Retry-After), watch at the same version
… 504 "too large resource version"          back-off, list the newest state
… anything else, 410 included               back-off, list
closed after news, or in its own time       watch at once
closed within a second, again and again     back-off, watch
closed without any news                     back-off, watch
… within a second, or for the second time   back-off, list
silent for too long                         watch at the same version, at once
garbage, or torn in the middle of a frame   back-off, list
ERROR event 429                             back-off (Retry-After), watch at the same version
any other ERROR event, 410 included         back-off, list
==========================================  ====================================================

A streamed list (``sendInitialEvents``) is a watch that begins with the list; whatever ends it
before its closing bookmark is a failed list, after which one goes in pages. A server that calls the
request invalid, or forgets about the bookmark, is never asked again.
"""

from __future__ import annotations

import random as random_module
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias, final

from mcm.client.errors import (
    ApiError,
    BadRequest,
    Gone,
    Invalid,
    TooLargeResourceVersion,
    TooManyRequests,
    TransportError,
)
from mcm.workqueue.backoff import FULL, Backoff

NEWEST = ""
"""The version that asks for a consistent read."""
ANY = "0"
"""The version that asks for whatever a server's cache has."""

_OWN_TIME = 0.9  # a server may start to count a watch's time before we do


@dataclass(frozen=True, slots=True)
class ReflectorOptions:
    """All times in seconds. The silence limit lies between the period of bookmarks (60) and the
    history a server keeps (75), so that reconnecting needs no relist."""

    page_size: int = 500
    streamed_lists: bool = True
    shortest_watch: int = 300
    longest_watch: int = 600
    silence: float = 70.0
    backoff_base: float = 0.8
    backoff_cap: float = 30.0
    steady: float = 30.0
    """A watch that lived this long, with news, ends a row of failures."""
    brief: float = 1.0
    """A watch shorter than this is suspicious, whatever it brought."""


@dataclass(frozen=True, slots=True)
class FetchPage:
    """Read one page of a list. Without a ``continue_token`` it is the first: drop earlier ones."""

    resource_version: str
    limit: int | None
    continue_token: str = ""


@dataclass(frozen=True, slots=True)
class OpenWatch:
    resource_version: str
    timeout_seconds: int
    streamed_list: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float


Action: TypeAlias = FetchPage | OpenWatch | Wait


class Ending(Enum):
    """How an open watch ended, other than by an ERROR event."""

    CLOSED = auto()
    """At the boundary of two frames, by whomever."""
    SILENT = auto()
    """Not a byte for too long: we gave up."""
    GARBLED = auto()
    """A line that is no watch frame, or half of one at the end."""


@final
class ListWatch:
    """``version`` is where a watch would resume: never ahead of what the driver was handed.
    ``listing``: a list is under way, be it in pages or at the head of a watch.
    ``short_watches`` counts the watches that ended without news before their time, ``failures``
    those in a row: what the next wait grows with.

    Call ``next``, do it, report exactly one outcome: nothing for a Wait, ``page`` or ``failed`` for
    a page, ``failed`` or ``opened`` + any number of ``event`` + ``ended`` or ``error_event`` for a
    watch. Times are monotonic seconds.
    """

    def __init__(
        self, *, randomness: random_module.Random, options: ReflectorOptions | None = None
    ) -> None:
        self._options = options or ReflectorOptions()
        self._random = randomness
        self._backoff = Backoff(self._options.backoff_base, self._options.backoff_cap, spread=FULL)
        self.failures = 0
        self.listing = True
        self._pause = 0.0
        self._can_stream = self._options.streamed_lists
        self._plain_once = False
        self._quorum = False
        self._page = self._first_page()
        self._list_version = ""
        self._watch = OpenWatch("", self._options.shortest_watch)
        self._opened_at = 0.0
        self._news = False
        self._ordered = True
        self._empty_watches = 0
        self._brief_watches = 0
        self.version = ""
        self.short_watches = 0

    # ---- what next -----------------------------------------------------------------------------

    def next(self) -> Action:
        """Return the next action; the wait that a failure earned comes first, once."""
        if self._pause > 0:
            pause, self._pause = self._pause, 0.0
            return Wait(pause)
        if not self.listing:
            return self._open(self.version, streamed=False)
        if self._can_stream and not self._plain_once:
            return self._open(NEWEST if self._quorum else self.version, streamed=True)
        return self._page

    def _open(self, version: str, *, streamed: bool) -> OpenWatch:
        shortest, longest = self._options.shortest_watch, self._options.longest_watch
        seconds = self._random.randint(shortest, longest)
        self._watch = OpenWatch(version, seconds, streamed)
        return self._watch

    # ---- lists ---------------------------------------------------------------------------------

    def page(self, version: str, continue_token: str) -> bool:
        """Take a page of a list; tell whether the list is complete (at ``self.version``)."""
        if not self._page.continue_token:
            self._list_version = version
        if continue_token:
            # The server wants neither version nor match with a token: the token holds them.
            self._page = FetchPage("", self._options.page_size, continue_token)
            return False
        self._complete(self._list_version)
        return True

    def initial_events_end(self, version: str) -> None:
        """Take the bookmark that closes a streamed list; the same stream goes on as a watch."""
        self._complete(version)
        self._news = True

    def _complete(self, version: str) -> None:
        self.version = version
        self._quorum = False
        self._plain_once = False
        self.listing = False
        self._ordered = version not in (NEWEST, ANY)

    def _relist(self) -> None:
        """Begin a list at its first page."""
        self.listing = True
        self._page = self._first_page()

    def _first_page(self) -> FetchPage:
        """A server's cache serves whole lists only, so pages come from its store; and with a limit
        a version means that very one, however old."""
        return FetchPage(NEWEST, self._options.page_size)

    def _list_newest(self) -> None:
        """List by a quorum read: at once, unless that is what just failed."""
        if self._quorum or self._requested_version() == NEWEST:
            self._wait_after()
        self._quorum = True
        self._relist()

    def _requested_version(self) -> str:
        return self._watch.resource_version if self._streaming() else self._page.resource_version

    def _streaming(self) -> bool:
        return self._can_stream and not self._plain_once

    # ---- failed requests -----------------------------------------------------------------------

    def failed(self, error: Exception) -> None:
        """Take the failure of the page or watch that ``next`` asked for."""
        if not self.listing:
            self._watch_refused(error)
        elif self._streaming():
            self._stream_failed(error)
        else:
            self._page_failed(error)

    def _page_failed(self, error: Exception) -> None:
        if isinstance(error, Gone) and self._page.continue_token:
            # Without a limit a version means "not older", and a cache can serve it.
            self._page = FetchPage(NEWEST if self._quorum else self.version, None)
        elif isinstance(error, Gone | TooLargeResourceVersion):
            self._list_newest()
        else:
            self._wait_after(error)
            self._relist()

    def _stream_failed(self, error: Exception) -> None:
        if isinstance(error, Invalid | BadRequest):
            self._can_stream = False
            self._relist()
        elif isinstance(error, Gone | TooLargeResourceVersion):
            self._list_newest()
        else:
            self._wait_after(error)
            self._plain_once = not isinstance(error, TransportError | TooManyRequests)
            self._relist()

    def _watch_refused(self, error: Exception) -> None:
        self._wait_after(error)
        if not isinstance(error, TransportError | TooManyRequests):
            self._quorum = self._quorum or isinstance(error, TooLargeResourceVersion)
            self._relist()

    def _wait_after(self, error: Exception | None = None) -> None:
        floor = error.retry_after if isinstance(error, ApiError) else None
        wait = self._backoff.delay(self.failures, self._random.random())
        self._pause = max(wait, floor or 0.0)
        self.failures += 1

    # ---- an open watch -------------------------------------------------------------------------

    def opened(self, now: float) -> None:
        self._opened_at = now
        self._news = False

    def event(self, version: str, *, added: bool = False) -> None:
        """Take one event or bookmark, after the store has it.

        A watch that started nowhere in particular begins with made-up additions in no order of
        versions: none of those may become the place to resume.
        """
        self._news = True
        if not self._ordered:
            if added:
                return
            self._ordered = True
        if version and not self.listing:
            self.version = version

    def error_event(self, error: ApiError, now: float) -> None:
        """Take the ERROR event that ended the watch."""
        self._note_end(now)
        if self.listing:
            self._stream_failed(error)
        else:
            self._watch_refused(error)

    def ended(self, ending: Ending, now: float) -> None:
        """Take the end of an open watch."""
        lasted = self._note_end(now)
        if self.listing or ending is Ending.GARBLED:
            # A streamed list that something between us and the server always cuts short would
            # never be complete: the next one goes in pages. One that falls silent comes from a
            # server that does not know what was asked for, and only watches.
            self._plain_once = self.listing
            self._can_stream = self._can_stream and not (self.listing and ending is Ending.SILENT)
            self._wait_after()
            self._relist()
        elif ending is Ending.CLOSED and not self._news:
            self._closed_empty(lasted)
        elif ending is Ending.CLOSED:
            self._closed_after_news(lasted)

    def _note_end(self, now: float) -> float:
        lasted = now - self._opened_at
        if self._news:
            self._empty_watches = 0
            if lasted >= self._options.steady:
                self.failures = 0
        return lasted

    def _closed_empty(self, lasted: float) -> None:
        if lasted >= self._watch.timeout_seconds * _OWN_TIME:
            self._empty_watches = 0
            self.failures = 0
            return
        # A version that is too old shows like this where the server keeps no watch cache: only
        # a list gets us out of there.
        self._empty_watches += 1
        self.short_watches += 1
        self._wait_after()
        if self._empty_watches > 1 or lasted < self._options.brief:
            self._relist()

    def _closed_after_news(self, lasted: float) -> None:
        self._brief_watches = self._brief_watches + 1 if lasted < self._options.brief else 0
        if self._brief_watches > 1:
            self._wait_after()
