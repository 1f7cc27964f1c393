"""Keeps the registry in step with the stored CustomResourceDefinitions.

Runs inside the store's notifications: a definition is served before the write that made it is
answered, and a deleted one is gone with the last of its objects.
"""

from __future__ import annotations

from typing import final

from mcm.sandbox.apiserver.definitions.checking import (
    CLEANUP_FINALIZER,
    resources_of,
    serve,
    withdraw,
)
from mcm.sandbox.apiserver.kinds.builtin import DEFINITIONS
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import ServerState, WriteOptions
from mcm.sandbox.apiserver.store import Change, ChangeType, Stored, Unsubscribe
from mcm.sandbox.apiserver.writing.create_update import update_object
from mcm.sandbox.apiserver.writing.deletion import NO_OPTIONS, delete_object

_OPTIONS = WriteOptions(manager="apiserver")


@final
class DefinitionWatcher:
    """Follows definitions, and the objects of those being deleted."""

    def __init__(self, state: ServerState, info: ResourceInfo) -> None:
        self._state = state
        self._info = info
        self._emptying: dict[str, Unsubscribe] = {}
        state.store.subscribe(self._on_definition, DEFINITIONS)

    def _on_definition(self, change: Change) -> None:
        if change.type is ChangeType.DELETED:
            self._stop(change.stored)
            return
        serve(self._state.registry, change.stored.body)
        if change.stored.terminating:
            self._empty(change.stored.name)

    def _stop(self, definition: Stored) -> None:
        withdraw(self._state.registry, definition.body)
        unsubscribe = self._emptying.pop(definition.name, None)
        if unsubscribe is not None:
            unsubscribe()
        for stream in tuple(self._state.streams):
            if stream.storage == definition.name:
                stream.end()

    def _empty(self, name: str) -> None:
        """Delete a definition's objects; a definition's name is its objects' storage key."""
        if name not in self._emptying:
            self._emptying[name] = self._state.store.subscribe(
                lambda change: self._on_object(change, name), name
            )
            definition = self._state.store.collection(DEFINITIONS).get(name)
            infos = resources_of(definition.body) if definition is not None else []
            for stored in self._state.store.collection(name):
                delete_object(self._state, infos[0], stored, NO_OPTIONS)
        self._finish(name)

    def _on_object(self, change: Change, name: str) -> None:
        if change.type is ChangeType.DELETED:
            self._finish(name)

    def _finish(self, name: str) -> None:
        """Let go of a definition whose last object is gone."""
        definition = self._state.store.collection(DEFINITIONS).get(name)
        if definition is None or len(self._state.store.collection(name)):
            return
        if CLEANUP_FINALIZER not in definition.finalizers:
            return
        remaining = [f for f in definition.finalizers if f != CLEANUP_FINALIZER]
        body = {
            **definition.body,
            "metadata": {**definition.metadata, "finalizers": remaining},
        }
        update_object(self._state, self._info, definition, body, options=_OPTIONS)
