"""Whether a mirror is believed to be current, judged by what its reflector reports.

A watch that ends leaves the mirror behind, be it for a moment. It has caught up once a whole list
is in the store, once a bookmark says that everything was sent, or a while after a watch was opened
at the place where the last one ended. What is behind for too long is not believed, so that nobody
concludes from it that something is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import final

from mcm.api.timestamps import rfc3339

BEHIND_FOR = 10.0
"""Seconds without a watch, or with a list under way, that a mirror may be behind."""
SILENT_FOR = 90.0
"""Seconds without a sign of the server: more than the period of bookmarks (60), and than the
silence after which a watch is given up (70)."""
CATCHING_UP = 3.0
"""Seconds after which a watch has told what happened before it was opened: servers send that at
once, but only after the headers."""


@final
@dataclass(frozen=True, slots=True)
class Freshness:
    """``why`` a mirror is not believed to be ``current``, in words that do not change while that
    is so; ``heard_at`` is when the server last sent anything (monotonic seconds)."""

    current: bool
    heard_at: float | None
    why: str = ""


@final
@dataclass(frozen=True, slots=True)
class _Behind:
    """Since when a mirror is behind: monotonic, and as people read it."""

    since: float
    at: datetime


@final
class Currency:
    """A state machine without I/O. Times are monotonic seconds; ``wall`` tells what people read.

    Its driver reports ``heard`` for each sign of the server, ``opened`` and ``ended`` for a watch,
    ``failed`` for a refused request, ``listed`` once a list is in the store, ``bookmarked`` for a
    bookmark of an open watch. All return whether the verdict may have changed.
    """

    def __init__(self, what: str, wall: Callable[[], datetime]) -> None:
        self._what = what
        self._wall = wall
        self._synced = False
        self._heard_at: float | None = None
        self._opened_at: float | None = None
        self._behind: _Behind | None = None
        self._unwatched: _Behind | None = None  # as _behind, but a list does not end it
        self._failure = ""

    # ---- what happens --------------------------------------------------------------------------

    def heard(self, now: float) -> bool:
        """Take a sign of the server. After a long silence more may be on its way than came yet."""
        silent_since = self._silent_since(now)
        self._heard_at = now
        if silent_since is None:
            return False
        self._fall_behind(silent_since, now)
        if self._opened_at is not None:
            self._opened_at = now
        return True

    def opened(self, now: float) -> bool:
        self._opened_at = now
        return self._behind is not None

    def ended(self, now: float) -> bool:
        """Take the end of a watch; one too brief to have told everything has changed nothing, and
        one that was silent for too long has told nothing since."""
        if self._has_caught_up(now):
            self._catch_up()
            self._unwatched = None
        self._opened_at = None
        silent_since = self._silent_since(now)
        since = now if silent_since is None else silent_since
        self._fall_behind(since, now)
        self._lose_watch(since, now)
        return True

    def failed(self, error: Exception) -> bool:
        """Take a failed request. The first one since the mirror is behind is what is told."""
        if self._failure:
            return False
        self._failure = type(error).__name__
        return True

    def listed(self, now: float) -> bool:
        self._synced = True
        self._catch_up()
        if self._opened_at is None:
            self._fall_behind(now, now)
            self._lose_watch(now, now)
        return True

    def bookmarked(self) -> bool:
        if self._opened_at is not None:
            self._unwatched = None
        if self._behind is None or self._opened_at is None:
            return False
        self._catch_up()
        return True

    # ---- what to make of it --------------------------------------------------------------------

    def judged(self, now: float) -> Freshness:
        why = self._why(now)
        return Freshness(not why, self._heard_at, why)

    def unready(self, now: float) -> str:
        """Return why the mirror can serve nobody who relies on it; empty if it can.

        That is more than being current: where each watch breaks at once, a list now and then makes
        the mirror current for a moment, and what happens in between is told late, or never.
        """
        if why := self._why(now):
            return why
        unwatched = self._unwatched
        if unwatched and now >= unwatched.since + BEHIND_FOR and not self._has_caught_up(now):
            return self._cannot_be_watched(unwatched)
        return ""

    def next_change(self, now: float) -> float | None:
        """Return the seconds after which time alone changes the verdict; None: only news do.

        Silence does not count: a watch that is silent is given up before.
        """
        behind = self._behind
        if behind is None or not self._synced:
            return None
        moments = [behind.since + BEHIND_FOR]
        if self._opened_at is not None:
            moments.append(self._opened_at + CATCHING_UP)
        return min((m - now for m in moments if m > now), default=None)

    def _why(self, now: float) -> str:
        if not self._synced:
            return f"{self._what} were not read yet{self._because()}"
        behind = self._behind
        if behind and now >= behind.since + BEHIND_FOR and not self._has_caught_up(now):
            return self._cannot_be_watched(behind)
        if self._silent_since(now) is not None:
            return f"nothing was heard of {self._what} for more than {SILENT_FOR:.0f} seconds"
        return ""

    def _cannot_be_watched(self, behind: _Behind) -> str:
        return f"{self._what} cannot be watched since {rfc3339(behind.at)}{self._because()}"

    def _because(self) -> str:
        return f" ({self._failure})" if self._failure else ""

    def _has_caught_up(self, now: float) -> bool:
        return self._opened_at is not None and now >= self._opened_at + CATCHING_UP

    # ---- between the two -----------------------------------------------------------------------

    def _catch_up(self) -> None:
        self._behind = None
        self._failure = ""

    def _silent_since(self, now: float) -> float | None:
        """Return the last sign of the server if it is too long ago, else None."""
        heard = self._heard_at
        return heard if heard is not None and now - heard > SILENT_FOR else None

    def _fall_behind(self, since: float, now: float) -> None:
        if self._behind is None:
            self._behind = self._as_behind(since, now)

    def _lose_watch(self, since: float, now: float) -> None:
        if self._unwatched is None:
            self._unwatched = self._as_behind(since, now)

    def _as_behind(self, since: float, now: float) -> _Behind:
        return _Behind(since, self._wall() - timedelta(seconds=now - since))
