"""Stands before the controllers: lets pass what bears our mark, unless it is being handed over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import final

from mcm.api.machine import MACHINES
from mcm.api.meta import KubeObject
from mcm.controllers.runtime import Controller
from mcm.informers import Change
from mcm.sharding.roots import DIVIDED, Roots
from mcm.sharding.shard import holder_of


@final
class Gate:
    """``is_called(machine key)`` tells whether the driver is still at something for a machine,
    though nobody waits for it any more."""

    def __init__(self, us: str, roots: Roots, *, is_called: Callable[[str], bool]) -> None:
        self._us = us
        self._roots = roots
        self._is_called = is_called
        self._closed: set[tuple[str, str]] = set()
        self._behind: dict[str, list[Controller]] = {r.plural: [] for r in DIVIDED}

    def guard(self, controllers: Sequence[Controller]) -> None:
        """Stand before those of ``controllers`` whose keys are of what is divided."""
        for controller in controllers:
            if controller.regards in self._behind:
                self._behind[controller.regards].append(controller)
                controller.admits = partial(self.admits, controller.regards)

    def admits(self, plural: str, key: str) -> bool:
        """Tell whether the object may be reconciled. What is not there can be forgotten by all."""
        obj = self._roots.store(plural).get(key)
        if obj is None:
            return True
        return holder_of(obj.metadata) == self._us and (plural, key) not in self._closed

    def close(self, plural: str, key: str) -> None:
        """Let no reconcile of the object begin."""
        self._closed.add((plural, key))

    def open(self, plural: str, key: str) -> None:
        """Undo :meth:`close`; what came meanwhile is looked at."""
        if (plural, key) in self._closed:
            self._closed.discard((plural, key))
            self._wake(plural, key)

    def is_closed(self, plural: str, key: str) -> bool:
        return (plural, key) in self._closed

    def is_busy(self, plural: str, key: str) -> bool:
        """Tell whether anything is still under way for the object."""
        if any(key in controller.queue.processing for controller in self._behind[plural]):
            return True
        return plural == MACHINES.plural and self._is_called(key)

    def marks_of(self, plural: str) -> Callable[[Change[KubeObject]], None]:
        """Return the handler that has objects of ``plural`` looked at that have become ours."""

        def handle(change: Change[KubeObject]) -> None:
            new, old = change.new, change.old
            if new is None or holder_of(new.metadata) != self._us:
                return
            if old is None or holder_of(old.metadata) != self._us:
                self._wake(plural, new.metadata.key)

        return handle

    def _wake(self, plural: str, key: str) -> None:
        for controller in self._behind[plural]:
            controller.queue.add(key)
