"""Mirrors of API resources in memory: list, watch, index, tell.

- A store follows the server in the order of its versions; own writes that went through a
  :class:`Writer` are in it when the call returns, and no late event takes them back.
- Handlers are called after store and indexes hold a change, one at a time, in the order of each
  object's changes. They are plain functions: they turn changes into keys, and neither wait nor
  call the API.
- A lost connection resumes where it ended; a lost history is made good by a new list, whose
  difference (deletions included) reaches the handlers as changes.
- :meth:`InformerFactory.run` owns every task. Cancelling it closes all connections before it
  returns, and no handler is called after that. The client stays open: who made it closes it.
- One thread, one loop: nothing here may be called from another.
"""

from __future__ import annotations

from mcm.informers.change import Change, Changes, Handler
from mcm.informers.factory import InformerFactory
from mcm.informers.freshness import Freshness
from mcm.informers.informer import Informer, InformerStatus
from mcm.informers.listwatch import ReflectorOptions
from mcm.informers.store import Store
from mcm.informers.writer import Writer

__all__ = [
    "Change",
    "Changes",
    "Freshness",
    "Handler",
    "Informer",
    "InformerFactory",
    "InformerStatus",
    "ReflectorOptions",
    "Store",
    "Writer",
]
