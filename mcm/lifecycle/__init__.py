"""How a process starts, leads and stops: a pure state machine, and the driver that owns all tasks.

What is promised, whatever comes in whatever order:

* work runs only while every lease is held, and nothing that acts is started once a stop has begun;
* a stop takes no longer than one grace period, however little the servers answer; cancelling it
  makes it shorter and never leaves it half done;
* leases are renewed while work winds down, and released only after everything that acts has ended;
* no task outlives :meth:`Runner.run`, but one that does not obey its cancellation, which is named.

:mod:`.machine` decides, :mod:`.runner` acts; :mod:`.tasks`, :mod:`.inputs` and :mod:`.actions` are
the words between them. :mod:`.cleanup` is for what is closed after a life.
"""

from __future__ import annotations

from mcm.lifecycle.cleanup import uninterrupted
from mcm.lifecycle.machine import GRACE_PERIOD, Lifecycle, Stage
from mcm.lifecycle.runner import Runner, Work
from mcm.lifecycle.tasks import Components, Kind, TaskName

__all__ = [
    "GRACE_PERIOD",
    "Components",
    "Kind",
    "Lifecycle",
    "Runner",
    "Stage",
    "TaskName",
    "Work",
    "uninterrupted",
]
