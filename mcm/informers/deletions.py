"""Which objects are gone by our own writes, so that older news cannot bring them back."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import final

from mcm.informers.versions import newer


@final
class RememberedDeletions:
    """UIDs known to be gone although the watch has not said so yet; at most ``limit`` of them.

    A UID is forgotten when its DELETED event arrives, when a list that is new enough lacks it, or
    when a second list still shows it: lists are the truth in the end.
    """

    __slots__ = ("_limit", "_shown", "_versions")

    def __init__(self, limit: int = 4096) -> None:
        self._limit = limit
        self._versions: dict[str, str] = {}
        self._shown: set[str] = set()

    def __len__(self) -> int:
        return len(self._versions)

    def __contains__(self, uid: str) -> bool:
        return uid in self._versions

    def add(self, uid: str, version: str) -> None:
        """Remember ``uid``, whose last known state had ``version``; the oldest may be dropped."""
        if not uid:
            return
        self._versions[uid] = version
        if len(self._versions) > self._limit:
            self.discard(next(iter(self._versions)))

    def discard(self, uid: str) -> bool:
        """Forget ``uid``; tell whether it was remembered."""
        self._shown.discard(uid)
        return self._versions.pop(uid, None) is not None

    def relisted(self, listed: AbstractSet[str], version: str) -> None:
        """Learn from a complete list at ``version`` that shows the UIDs ``listed``."""
        for uid, known in tuple(self._versions.items()):
            if uid not in listed:
                if not newer(known, version):
                    self.discard(uid)
            elif uid in self._shown:
                self.discard(uid)
            else:
                self._shown.add(uid)

    def clear(self) -> None:
        self._versions.clear()
        self._shown.clear()
