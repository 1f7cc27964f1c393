"""The bootstrap token a VM joins with: made before the VM, taken away once it joined.

A token's id follows from the machine, so that it is known again after a restart: first the one
that the Go original gives it, so that either finds what the other made; then ids drawn from its
UID. Where an id is another's, the next one is tried.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import secrets
import string
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import final

from mcm.api.core import SECRETS, Secret
from mcm.api.machine import Machine
from mcm.api.meta import JSONObject
from mcm.api.timestamps import parse_rfc3339, rfc3339
from mcm.client.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    MethodNotAllowed,
    NotFound,
    Unauthorized,
)
from mcm.controllers.machine.creation.deadline import CreationTime
from mcm.controllers.machine.creation.go_tokens import (
    belongs_to,
    go_token_id,
    may_join_yet,
    sharers,
)
from mcm.controllers.machine.creation.known_tokens import KnownTokens, Token, object_name
from mcm.controllers.machine.ports import ControlCluster, TargetCluster

logger = logging.getLogger(__name__)

TOKEN_NAMESPACE = "kube-system"

_SECRET_TYPE = "bootstrap.kubernetes.io/token"
_ALPHABET = string.digits + string.ascii_lowercase
_ID_LENGTH, _SECRET_LENGTH = 6, 16
_TRIES = 4
"""Ids to try: that even two are taken by others happens once in four billion."""
_STILL_USEFUL = timedelta(minutes=5)
"""What boots for longer is rare."""
_WHOLE_SECOND = timedelta(seconds=1)
"""Times are written without their fractions."""
_EXPIRATION = "expiration"


class TokenRefused(Exception):
    """The target cluster refuses the token's Secret. The text says why and what would help."""


@final
class BootstrapTokens:
    """The tokens of machines, in the cluster they join. ``known`` holds those in use, by UID.

    A VM keeps the token it was made with. So what a machine has is prolonged and never replaced:
    id and secret stay the same until it joined, be it for hours.
    """

    def __init__(
        self,
        control: ControlCluster,
        target: TargetCluster,
        known: KnownTokens,
        *,
        time: CreationTime,
    ) -> None:
        self._control = control
        self._target = target
        self._known = known
        self._time = time

    async def ensure(self, machine: Machine) -> Token:
        """Return the token of ``machine`` for a VM about to be made: valid for a while, and until
        the VM must have joined. Raises TokenRefused, and what the API client raises."""
        now = self._control.now()
        needed = max(self._time.end(machine), now + _STILL_USEFUL)
        with _refusals():
            known = self._known.get(machine.metadata.uid)
            if known is not None and (kept := await self._kept(machine, known, needed)):
                return kept
            for id_ in token_ids(machine):
                if self._known.is_used_by_another(machine.metadata.uid, id_):
                    continue  # asking would cost a write and a read
                new = new_token(id_, self._expiration(machine))
                token = await self._publish(machine, new)
                if token is not None and (kept := await self._kept(machine, token, needed)):
                    return kept
        raise AlreadyExists(409, "AlreadyExists", "every bootstrap token id tried is in use")

    def none_needed(self, machine: Machine) -> None:
        """Take note that a VM is about to be made without a token: none is looked for when it has
        joined. One that was made while its user data asked for one is known, or expires."""
        self._known.setdefault(machine.metadata.uid, None)

    async def keep(self, machine: Machine) -> bool:
        """Keep the token that a VM was made with valid until the VM must have joined. Tell whether
        there is one: else the VM cannot join any more. Raises like ``ensure``."""
        with _refusals():
            known = self._known.get(machine.metadata.uid) or await self._find(machine)
            if known is None:
                return await self._may_have_one_of_the_go_original(machine)
            return await self._kept(machine, known, self._time.end(machine)) is not None

    async def revoke(self, machine: Machine) -> bool:
        """Delete the machine's token, if it has one; tell whether none is left. Failing is no harm:
        it is tried again when the machine is deleted, and the token expires by itself. A process
        that has seen it go looks for it no more."""
        uid = machine.metadata.uid
        try:
            known = self._known[uid] if uid in self._known else await self._find(machine)
            if known is not None and not self._is_shared(machine, known):
                await self._delete(known)
        except NotFound:
            pass
        except Conflict:
            self._known.pop(uid, None)  # another's by now, or changed: the next look tells
            return True
        except KubeError as error:
            logger.warning(
                "a bootstrap token stays until it expires",
                extra={"machine": machine.metadata.key, "cause": str(error)},
            )
            return False
        self._known[uid] = None
        return True

    async def _kept(self, machine: Machine, token: Token, needed: datetime) -> Token | None:
        """Return ``token`` valid until ``needed``, id and secret the same; None if it is lost."""
        kept: Token | None = token
        if token.expires + _WHOLE_SECOND < needed:
            longer = replace(token, expires=self._expiration(machine))
            # Deleted under the VM that holds it? Made anew as it was it lets the VM join.
            kept = await self._prolong(longer) or await self._publish(machine, longer)
        if kept is None:
            self._known.pop(machine.metadata.uid, None)
        else:
            self._known[machine.metadata.uid] = kept
        return kept

    def _expiration(self, machine: Machine) -> datetime:
        """Return until when a token made or prolonged now is valid. A machine that no set replaces
        goes on trying after its time."""
        now, timeout = self._control.now(), self._control.settings_of(machine).creation_timeout
        return max(self._time.end(machine), now + max(timeout, 2 * _STILL_USEFUL))

    async def _publish(self, machine: Machine, token: Token) -> Token | None:
        """Make ``token`` valid, or find the machine's own of that id; None: the id is another's."""
        groups = self._control.defaults.bootstrap_token_auth_extra_groups
        body = token_secret(token, machine, groups)
        try:
            made = await self._target.writer.create(SECRETS, body, namespace=TOKEN_NAMESPACE)
        except AlreadyExists:
            found = await self._get(token.object_name)
            return self._token_of(machine, found) if found is not None else None
        return replace(token, uid=made.metadata.uid, of_go=False)

    async def _prolong(self, token: Token) -> Token | None:
        """Write the end of ``token`` and nothing else; None if its Secret is gone."""
        patch = {
            "metadata": {"uid": token.uid},
            "data": {_EXPIRATION: _encoded(rfc3339(token.expires))},
        }
        try:
            await self._target.writer.patch(
                SECRETS, token.object_name, patch, namespace=TOKEN_NAMESPACE
            )
        except (NotFound, Conflict):
            return None
        return token

    async def _find(self, machine: Machine) -> Token | None:
        """Look for a token made before this process began. The first drawn id that nobody uses ends
        the search: an id is tried only where the ones before are another's."""
        given = go_token_id(machine.metadata.name)
        for id_ in token_ids(machine):
            secret = await self._get(object_name(id_))
            if secret is None:
                if id_ == given:
                    continue  # it was another's then, maybe, or an older process drew all ids
                return None
            if (token := self._token_of(machine, secret)) is not None:
                return token
        return None

    def _token_of(self, machine: Machine, secret: Secret) -> Token | None:
        """Return the token in ``secret`` if it is the machine's, be it made by the Go original."""
        if (token := token_in(secret, machine)) is not None:
            return token
        if secret.metadata.name != object_name(go_token_id(machine.metadata.name) or ""):
            return None
        found = read_token(secret)
        if found is None or not belongs_to(found.description, machine, self._sharers(machine)):
            return None
        return replace(found.token, of_go=True)

    def _is_shared(self, machine: Machine, token: Token) -> bool:
        """Tell whether others may have been made with this token, who have not joined yet: the
        last of them takes it away."""
        return token.of_go and any(may_join_yet(other) for other in self._sharers(machine))

    def _sharers(self, machine: Machine) -> list[Machine]:
        return sharers(machine, self._control.machines.list())

    async def _may_have_one_of_the_go_original(self, machine: Machine) -> bool:
        """Tell whether there is a token that the Go original would give a VM of the machine,
        whoever made it."""
        id_ = go_token_id(machine.metadata.name)
        return id_ is not None and await self._get(object_name(id_)) is not None

    async def _get(self, name: str) -> Secret | None:
        try:
            return await self._target.client.get(SECRETS, name, namespace=TOKEN_NAMESPACE)
        except NotFound:
            return None

    async def _delete(self, token: Token) -> None:
        await self._target.writer.delete(
            SECRETS, token.object_name, namespace=TOKEN_NAMESPACE, uid=token.uid
        )


def token_id(machine: Machine, attempt: int) -> str:
    """Return the id to try as number ``attempt`` (from 0): six of 0-9a-z."""
    digest = hashlib.sha256(f"{machine.metadata.uid}/{attempt}".encode()).digest()
    number = int.from_bytes(digest, "big")
    letters = []
    for _ in range(_ID_LENGTH):
        number, place = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[place])
    return "".join(letters)


def token_ids(machine: Machine) -> Iterator[str]:
    """Yield the ids to try, in order."""
    given = go_token_id(machine.metadata.name)
    if given is not None:
        yield given
    for attempt in range(_TRIES):
        yield token_id(machine, attempt)


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
        _EXPIRATION: rfc3339(token.expires),
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": extra_groups,
    }
    return {
        "metadata": {"name": token.object_name, "namespace": TOKEN_NAMESPACE},
        "type": _SECRET_TYPE,
        "data": {key: _encoded(text) for key, text in data.items()},
    }


@final
@dataclass(frozen=True, slots=True)
class FoundToken:
    """A token as it stands in its Secret."""

    token: Token
    description: str


def read_token(secret: Secret) -> FoundToken | None:
    """Read a token back; None if the Secret holds none that can be read."""
    data = secret.data
    try:
        token = Token(
            id=_text(data, "token-id"),
            secret=_text(data, "token-secret"),
            expires=parse_rfc3339(_text(data, _EXPIRATION)),
            uid=secret.metadata.uid,
        )
        return FoundToken(token, _text(data, "description"))
    except (KeyError, ValueError):
        return None


def token_in(secret: Secret, machine: Machine) -> Token | None:
    """Read back the token of ``machine``; None if the Secret is another's, or unreadable."""
    found = read_token(secret)
    return found.token if found and found.description == _description(machine) else None


def _description(machine: Machine) -> str:
    meta = machine.metadata
    return f"Lets machine {meta.key} ({meta.uid}) join the cluster."


def _text(data: Mapping[str, str], name: str) -> str:
    return base64.b64decode(data[name], validate=True).decode()


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn answers that no repetition changes into TokenRefused."""
    try:
        yield
    except (Forbidden, Unauthorized, BadRequest, Invalid, MethodNotAllowed) as error:
        # The server's own words only where they cannot quote what was sent.
        words = f": {error}" if isinstance(error, Forbidden | Unauthorized) else ""
        raise TokenRefused(
            f"the target cluster refuses the bootstrap token, a Secret in {TOKEN_NAMESPACE} "
            f"({error.code} {error.reason}{words}): grant create, get, patch and delete of secrets"
        ) from error
