"""The bootstrap token a VM joins with: made before the VM, taken away once it joined.

A token's id is drawn from the machine's UID, so that it is known again after a restart, and two
machines all but never draw the same; where they do, the second one draws on.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import secrets
import string
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import final

from mcm.api.core import SECRETS, Secret
from mcm.api.machine import Machine
from mcm.api.meta import JSONObject
from mcm.api.timestamps import parse_rfc3339, rfc3339
from mcm.client.errors import AlreadyExists, Conflict, KubeError, NotFound
from mcm.controllers.machine.ports import ControlCluster, TargetCluster

logger = logging.getLogger(__name__)

TOKEN_NAMESPACE = "kube-system"

_SECRET_TYPE = "bootstrap.kubernetes.io/token"
_ALPHABET = string.digits + string.ascii_lowercase
_ID_LENGTH, _SECRET_LENGTH = 6, 16
_TRIES = 4
"""Ids to try: that even two are taken by others happens once in four billion."""
_STILL_USEFUL = timedelta(minutes=5)


@final
@dataclass(frozen=True, slots=True)
class Token:
    """One bootstrap token; the secret part hides from ``repr``."""

    id: str
    secret: str = field(repr=False)
    expires: datetime

    @property
    def text(self) -> str:
        return f"{self.id}.{self.secret}"

    @property
    def object_name(self) -> str:
        return object_name(self.id)


@final
class BootstrapTokens:
    """The tokens of machines, in the cluster they join. ``known`` holds those in use, by UID."""

    def __init__(
        self, control: ControlCluster, target: TargetCluster, known: MutableMapping[str, Token]
    ) -> None:
        self._control = control
        self._target = target
        self._known = known

    async def ensure(self, machine: Machine) -> Token:
        """Return a token of ``machine`` that is valid for a while yet, making one if need be."""
        now = self._control.now()
        known = self._known.get(machine.metadata.uid)
        if known is not None and known.expires - now > _STILL_USEFUL:
            return known
        expires = now + self._control.settings_of(machine).creation_timeout
        for attempt in range(_TRIES):
            token = new_token(token_id(machine, attempt), expires)
            usable = await self._publish(machine, token)
            if usable is not None:
                self._known[machine.metadata.uid] = usable
                return usable
        raise AlreadyExists(409, "AlreadyExists", "every bootstrap token id tried is in use")

    async def revoke(self, machine: Machine) -> None:
        """Delete the machine's token, if it has one. Failing is no harm: it expires by itself."""
        known = self._known.pop(machine.metadata.uid, None)
        try:
            if known is not None:
                await self._delete(known.object_name)
                return
            # Made before this process began, if at all: make sure that it is this machine's.
            name = object_name(token_id(machine, 0))
            secret = await self._target.client.get(SECRETS, name, namespace=TOKEN_NAMESPACE)
            if token_in(secret, machine) is not None:
                await self._delete(name, uid=secret.metadata.uid)
        except (NotFound, Conflict):
            return
        except KubeError as error:
            logger.warning(
                "a bootstrap token stays until it expires",
                extra={"machine": machine.metadata.key, "cause": str(error)},
            )

    async def _publish(self, machine: Machine, token: Token) -> Token | None:
        """Make ``token`` valid, or find a good one of the machine; None: the id is another's."""
        groups = self._control.defaults.bootstrap_token_auth_extra_groups
        body = token_secret(token, machine, groups)
        try:
            await self._target.writer.create(SECRETS, body, namespace=TOKEN_NAMESPACE)
        except AlreadyExists:
            return await self._reuse(machine, token, body)
        return token

    async def _reuse(
        self, machine: Machine, token: Token, body: Mapping[str, object]
    ) -> Token | None:
        target, name = self._target, token.object_name
        found = await target.client.get(SECRETS, name, namespace=TOKEN_NAMESPACE)
        present = token_in(found, machine)
        if present is None:
            return None
        if present.expires - self._control.now() > _STILL_USEFUL:
            return present
        patch = {"metadata": {"uid": found.metadata.uid}, "data": body["data"]}
        await target.writer.patch(SECRETS, name, patch, namespace=TOKEN_NAMESPACE)
        return token

    async def _delete(self, name: str, *, uid: str = "") -> None:
        await self._target.writer.delete(SECRETS, name, namespace=TOKEN_NAMESPACE, uid=uid)


def token_id(machine: Machine, attempt: int) -> str:
    """Return the id to try as number ``attempt`` (from 0): six of 0-9a-z."""
    digest = hashlib.sha256(f"{machine.metadata.uid}/{attempt}".encode()).digest()
    number = int.from_bytes(digest, "big")
    letters = []
    for _ in range(_ID_LENGTH):
        number, place = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[place])
    return "".join(letters)


def object_name(id_: str) -> str:
    return f"bootstrap-token-{id_}"


def new_token(id_: str, expires: datetime) -> Token:
    """Make a token whose secret only the machine and the cluster will know."""
    secret = "".join(secrets.choice(_ALPHABET) for _ in range(_SECRET_LENGTH))
    return Token(id=id_, secret=secret, expires=expires)


def token_secret(token: Token, machine: Machine, extra_groups: str) -> JSONObject:
    """Return the Secret that makes ``token`` valid, for ``kube-system`` of the target cluster."""
    data = {
        "description": _description(machine),
        "token-id": token.id,
        "token-secret": token.secret,
        "expiration": rfc3339(token.expires),
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": extra_groups,
    }
    return {
        "metadata": {"name": token.object_name, "namespace": TOKEN_NAMESPACE},
        "type": _SECRET_TYPE,
        "data": {key: base64.b64encode(text.encode()).decode() for key, text in data.items()},
    }


def token_in(secret: Secret, machine: Machine) -> Token | None:
    """Read back the token of ``machine``; None if the Secret is another's, or unreadable."""
    data = secret.data
    try:
        if _text(data, "description") != _description(machine):
            return None
        return Token(
            id=_text(data, "token-id"),
            secret=_text(data, "token-secret"),
            expires=parse_rfc3339(_text(data, "expiration")),
        )
    except (KeyError, ValueError):
        return None


def _description(machine: Machine) -> str:
    meta = machine.metadata
    return f"Lets machine {meta.key} ({meta.uid}) join the cluster."


def _text(data: Mapping[str, str], name: str) -> str:
    return base64.b64decode(data[name], validate=True).decode()
