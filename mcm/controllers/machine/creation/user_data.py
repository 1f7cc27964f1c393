"""The user data a VM boots with: machine name and bootstrap token put into its placeholders."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote_plus

from mcm.api.machine import Machine
from mcm.controllers.machine.creation.bootstrap_token import BootstrapTokens
from mcm.controllers.machine.creation.known_tokens import Token

USER_DATA = "userData"
TOKEN_PLACEHOLDER = "<<BOOTSTRAP_TOKEN>>"
NAME_PLACEHOLDER = "<<MACHINE_NAME>>"


async def user_data_for(
    machine: Machine, data: Mapping[str, bytes], tokens: BootstrapTokens | None
) -> Mapping[str, bytes]:
    """Fill in the user data, with a valid token if it has a place for one.

    ``tokens`` is None where there is no cluster to join.
    """
    token = None
    if tokens is not None and needs_token(data):
        token = await tokens.ensure(machine)
    elif tokens is not None:
        tokens.none_needed(machine)
    return filled(data, machine_name=machine.metadata.name, token=token)


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


def _forms(placeholder: str) -> tuple[bytes, bytes]:
    return placeholder.encode(), quote_plus(placeholder).encode()


def _replaced(user_data: bytes, placeholder: str, text: str) -> bytes:
    plain, escaped = _forms(placeholder)
    if plain in user_data:
        return user_data.replace(plain, text.encode())
    return user_data.replace(escaped, quote_plus(text).encode())
