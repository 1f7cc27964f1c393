"""Since when somebody leads without a long break: what a Lease tells whoever takes it.

While nobody leads, nobody observes, and what is timed by observation must not run out on account of
that time. A process that ended with the API server it led by knows nothing of it; the Lease does:
its holder renewed it to the last. After a break that is longer than any change of leaders takes,
whoever takes the lease notes the moment on it, in the write that takes it, so that those who follow
soon after know it, too.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from mcm.api.core import Lease
from mcm.api.names import ANNOTATION_LED_SINCE
from mcm.api.timestamps import micro_time, parse_rfc3339

MARGIN: Final = timedelta(seconds=60)
"""What a change of leaders may take beyond lease duration and retry period: the clocks of two hosts
differ, and a process needs its time to start."""

ONCE_IN: Final = timedelta(hours=1)
"""A process that crashes again and again leaves a long break each time, as its restarts are delayed
ever more. Of breaks so close to each other only the first counts: else nothing would ever be over.
"""


def led_since(found: Lease | None, now: datetime, *, failover: timedelta) -> datetime | None:
    """Return when the lease was taken after the last long break, if it is taken at ``now``.

    ``now`` means that there was one just before; None, that none is known. ``found`` is the lease
    before it is taken (None: there is none), ``failover`` how long a change of leaders takes at
    most by the lease's durations. What cannot be read, or lies ahead, counts as not known, and
    a time of the last renewal that is not known as a break.
    """
    if found is None:
        return now
    noted = _read(found.metadata.annotations.get(ANNOTATION_LED_SINCE))
    if noted is not None:
        noted = min(noted, now) if noted - now <= MARGIN else None
    renewed = _read(found.spec.renew_time)
    if renewed is not None and -MARGIN <= now - renewed <= failover + MARGIN:
        return noted
    if noted is not None and now - noted < ONCE_IN:
        return noted
    return now


def with_note(lease: Lease, since: datetime) -> Lease:
    """Return the lease with the moment noted on it."""
    noted = {**lease.metadata.annotations, ANNOTATION_LED_SINCE: micro_time(since)}
    return replace(lease, metadata=replace(lease.metadata, annotations=noted))


def _read(text: str | None) -> datetime | None:
    try:
        return parse_rfc3339(text) if text else None
    except (ValueError, OverflowError):
        return None
