"""Wiring and body of the secret controller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final

from mcm.api.core import SECRETS, Secret
from mcm.api.machine import MACHINE_CLASSES, MachineClass
from mcm.api.meta import split_key
from mcm.api.names import SECRET_FINALIZER
from mcm.client.errors import NotFound
from mcm.controllers.context import ControllerContext
from mcm.controllers.indexes import classes_using, index_classes
from mcm.controllers.protection import protection_patch
from mcm.controllers.provider import secret_keys_of
from mcm.controllers.runtime import DONE, Controller, Outcome
from mcm.controllers.seams import ObjectWriter
from mcm.informers import Change, Store
from mcm.workqueue import INITIAL_PRIORITY

NAME = "secret"

_LOOK_AGAIN = 60.0
"""Seconds, while a class that cannot be read might refer to any secret."""


@final
class SecretReconciler:
    """Keeps the finalizer of each secret in step with its use."""

    def __init__(
        self, secrets: Store[Secret], classes: Store[MachineClass], writer: ObjectWriter
    ) -> None:
        self._secrets = secrets
        self._classes = classes
        self._writer = writer

    async def reconcile(self, key: str) -> Outcome:
        secret = self._secrets.get(key)
        if secret is None:
            return DONE
        used = bool(classes_using(self._classes, key))
        patch = protection_patch(secret.metadata, SECRET_FINALIZER, used=used)
        if patch is None:
            return DONE
        if not used and self._classes.unreadable:
            return Outcome(after=_LOOK_AGAIN, reason="classes that cannot be read")
        namespace, name = split_key(key)
        try:
            await self._writer.patch(SECRETS, name, patch, namespace=namespace)
        except NotFound:
            return DONE
        return DONE


def secrets_of_class_change(change: Change[MachineClass]) -> Iterator[str]:
    """Yield the keys of the secrets that a class refers to or referred to."""
    keys = {
        key: None
        for class_ in (change.old, change.new)
        if class_ is not None
        for key in secret_keys_of(class_)
    }
    yield from keys


def build(ctx: ControllerContext) -> Sequence[Controller]:
    """Make the controller and register its handlers; nothing runs yet."""
    secrets = ctx.control_informers.informer(SECRETS)
    classes = ctx.control_informers.informer(MACHINE_CLASSES)
    index_classes(classes.store)
    queue = ctx.queue(NAME)
    reconciler = SecretReconciler(secrets.store, classes.store, ctx.control_informers.writer)

    def on_secret(change: Change[Secret]) -> None:
        if change.new is not None:
            priority = INITIAL_PRIORITY if change.initial or change.resync else 0
            queue.add(change.new.metadata.key, priority=priority)

    def on_class(change: Change[MachineClass]) -> None:
        for key in secrets_of_class_change(change):
            queue.add(key, priority=INITIAL_PRIORITY if change.initial else 0)

    secrets.add_handler(on_secret)
    classes.add_handler(on_class)
    workers = ctx.options.machine_concurrent_syncs
    return (ctx.controller(NAME, queue, reconciler.reconcile, workers=workers),)
