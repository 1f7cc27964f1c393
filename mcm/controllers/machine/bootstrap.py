"""How a VM gets into the cluster: placeholders in its user data, and the token that lets it join.

A token's id is drawn from the machine's UID, so that it is known again after a restart, and two
machines all but never draw the same; where they do, the second one draws on.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import final
from urllib.parse import quote_plus

from mcm.api.core import Secret
from mcm.api.machine import Machine
from mcm.api.meta import JSONObject
from mcm.api.timestamps import parse_rfc3339, rfc3339

USER_DATA = "userData"
TOKEN_NAMESPACE = "kube-system"
TOKEN_PLACEHOLDER = "<<BOOTSTRAP_TOKEN>>"
NAME_PLACEHOLDER = "<<MACHINE_NAME>>"

_SECRET_TYPE = "bootstrap.kubernetes.io/token"
_ALPHABET = string.digits + string.ascii_lowercase
_ID_LENGTH, _SECRET_LENGTH = 6, 16


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


def needs_token(data: Mapping[str, bytes]) -> bool:
    """Tell whether the user data asks for a token, in plain or in query-escaped form."""
    user_data = data.get(USER_DATA, b"")
    return any(form in user_data for form in _forms(TOKEN_PLACEHOLDER))


def filled(
    data: Mapping[str, bytes], *, machine_name: str, token: Token | None
) -> Mapping[str, bytes]:
    """Return ``data`` with the placeholders of its user data filled in.

    Where the plain form occurs, it alone is replaced; else the escaped form is, by escaped text.
    """
    if USER_DATA not in data:
        return data
    user_data = _replaced(data[USER_DATA], NAME_PLACEHOLDER, machine_name)
    if token is not None:
        user_data = _replaced(user_data, TOKEN_PLACEHOLDER, token.text)
    return {**data, USER_DATA: user_data}


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


def _forms(placeholder: str) -> tuple[bytes, bytes]:
    return placeholder.encode(), quote_plus(placeholder).encode()


def _replaced(user_data: bytes, placeholder: str, text: str) -> bytes:
    plain, escaped = _forms(placeholder)
    if plain in user_data:
        return user_data.replace(plain, text.encode())
    return user_data.replace(escaped, quote_plus(text).encode())
