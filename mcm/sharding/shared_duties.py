"""Has one shard do what cannot be divided, and another once that one has ended.

It is: finalizers of classes and secrets, marks on Nodes without a machine, and the collection of
orphan VMs. Whoever holds one more lease does it. When that shard ends, another one takes the lease,
at once if it was released, else when it has run out; it looks at everything anew, as after a
restart. Once won, the lease is needed for everything: its loss ends the process, as that of any
other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, final

from mcm.controllers.runtime import Controller
from mcm.fence import Fence
from mcm.leaderelection import LeaderElector
from mcm.sharding.roots import DIVIDED

_DIVIDED: Final = frozenset(resource.plural for resource in DIVIDED)


@final
class SharedDuties:
    """A service (:meth:`run`) and a gate before the controllers that serve all shards."""

    def __init__(self, elector: LeaderElector) -> None:
        self._elector = elector
        self._ours = False
        self._waiting: list[Controller] = []

    @property
    def are_ours(self) -> bool:
        return self._ours

    def check(self) -> None:
        """Raise LeadershipLost if they were ours and may be another's by now."""
        if self._ours:
            self._elector.fence()

    def time_left(self) -> float:
        """Return the seconds for which :meth:`check` lets pass if nothing is renewed."""
        return self._elector.time_left() if self._ours else math.inf

    def guard(self, controllers: Sequence[Controller]) -> None:
        """Stand before those of ``controllers`` whose keys are of what is not divided."""
        for controller in controllers:
            if controller.regards and controller.regards not in _DIVIDED:
                controller.admits = lambda _: self._ours
                self._waiting.append(controller)

    async def run(self) -> None:
        """Contend for the lease, hold it, and give it up when cancelled. Raises LeadershipLost."""
        try:
            await self._elector.hold(self._won)
        finally:
            await self._elector.release()

    def _won(self) -> None:
        self._ours = True
        for controller in self._waiting:
            for key in controller.known_keys():
                controller.queue.add(key)


@final
class WithSharedDuties:
    """A :class:`mcm.fence.Fence` of ``inner`` and, once they are ours, of the shared duties."""

    def __init__(self, inner: Fence) -> None:
        self._inner = inner
        self.duties: SharedDuties | None = None

    def check(self) -> None:
        """Raise LeadershipLost unless we may act now."""
        self._inner.check()
        if self.duties is not None:
            self.duties.check()

    def time_left(self) -> float:
        """Return the seconds for which we may act if nothing is renewed."""
        mine = self.duties.time_left() if self.duties is not None else math.inf
        return min(self._inner.time_left(), mine)
