"""Who is told what happens in drains, to count it and to tell people."""

from __future__ import annotations

from typing import Protocol

from mcm.drain.request import DrainRequest
from mcm.drain.volumes import Handover


class DrainWitness(Protocol):
    """Is told as things happen. May neither wait nor raise. Answers to requests are told to the
    listener of :class:`mcm.drain.execution.PodRequests`."""

    def handed_over(self, request: DrainRequest, handover: Handover) -> None:
        """A handover is over."""


class NoWitness:
    """Nobody looks."""

    def handed_over(self, request: DrainRequest, handover: Handover) -> None:
        pass
