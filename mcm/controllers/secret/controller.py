"""Wiring of the secret controller: machine classes use secrets."""

from __future__ import annotations

from collections.abc import Sequence

from mcm.api.core import SECRETS
from mcm.api.machine import MACHINE_CLASSES
from mcm.api.names import SECRET_FINALIZER
from mcm.controllers.context import ControllerContext
from mcm.controllers.finalizers import InUse, build_in_use, keeping
from mcm.controllers.indexes import classes_using, index_classes
from mcm.controllers.provider import secret_keys_of
from mcm.controllers.runtime import Controller

NAME = "secret"


def build(ctx: ControllerContext) -> Sequence[Controller]:
    """Make the controller and register its handlers; nothing runs yet."""
    informers = ctx.control_informers
    classes = informers.store(MACHINE_CLASSES)
    index_classes(classes)
    in_use = InUse(
        used=SECRETS,
        users=MACHINE_CLASSES,
        uses=secret_keys_of,
        told_at=("secretRef", "credentialsSecretRef"),
        is_used=lambda secret: bool(classes_using(classes, secret.metadata.key)),
        decide=keeping(SECRET_FINALIZER),
    )
    return (build_in_use(ctx, NAME, in_use, used_from=informers, users_from=informers),)
