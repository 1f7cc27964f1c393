"""The token a VM joins with: made when its user data asks for one, taken away once it joined."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta

from mcm.api.core import SECRETS
from mcm.api.machine import Machine
from mcm.client.errors import AlreadyExists, Conflict, KubeError, NotFound
from mcm.controllers.machine import bootstrap
from mcm.controllers.machine.bootstrap import TOKEN_NAMESPACE, Token
from mcm.controllers.machine.ports import Ports, Target

logger = logging.getLogger(__name__)

_TRIES = 4
"""Ids to try: that even two are taken by others happens once in four billion."""
_STILL_USEFUL = timedelta(minutes=5)


async def user_data_for(
    ports: Ports, machine: Machine, data: Mapping[str, bytes]
) -> Mapping[str, bytes]:
    """Fill in the user data, with a fresh token if it has a place for one."""
    token = None
    if ports.target is not None and bootstrap.needs_token(data):
        token = await _ensure_token(ports, ports.target, machine)
    return bootstrap.filled(data, machine_name=machine.metadata.name, token=token)


async def revoke_token(ports: Ports, machine: Machine) -> None:
    """Delete the machine's token, if it has one. Failing is no harm: it expires by itself."""
    if ports.target is None:
        return
    known = ports.memory.tokens.pop(machine.metadata.uid, None)
    try:
        if known is not None:
            await _delete(ports.target, known.object_name)
            return
        # Made before this process began, if at all: make sure that it is this machine's.
        name = bootstrap.object_name(bootstrap.token_id(machine, 0))
        secret = await ports.target.client.get(SECRETS, name, namespace=TOKEN_NAMESPACE)
        if bootstrap.token_in(secret, machine) is not None:
            await _delete(ports.target, name, uid=secret.metadata.uid)
    except (NotFound, Conflict):
        return
    except KubeError as error:
        logger.warning(
            "a bootstrap token stays until it expires",
            extra={"machine": machine.metadata.key, "cause": str(error)},
        )


async def _ensure_token(ports: Ports, target: Target, machine: Machine) -> Token:
    now = ports.now()
    known = ports.memory.tokens.get(machine.metadata.uid)
    if known is not None and known.expires - now > _STILL_USEFUL:
        return known
    expires = now + ports.limits(machine).creation
    for attempt in range(_TRIES):
        token = bootstrap.new_token(bootstrap.token_id(machine, attempt), expires)
        usable = await _publish(ports, target, machine, token)
        if usable is not None:
            ports.memory.tokens[machine.metadata.uid] = usable
            return usable
    raise AlreadyExists(409, "AlreadyExists", "every bootstrap token id tried is in use")


async def _publish(ports: Ports, target: Target, machine: Machine, token: Token) -> Token | None:
    """Make ``token`` valid, or find that the machine has a good one; None: the id is another's."""
    groups = ports.settings.bootstrap_token_auth_extra_groups
    body = bootstrap.token_secret(token, machine, groups)
    try:
        await target.writer.create(SECRETS, body, namespace=TOKEN_NAMESPACE)
    except AlreadyExists:
        return await _reuse(ports, target, machine, token, body)
    return token


async def _reuse(
    ports: Ports, target: Target, machine: Machine, token: Token, body: Mapping[str, object]
) -> Token | None:
    found = await target.client.get(SECRETS, token.object_name, namespace=TOKEN_NAMESPACE)
    present = bootstrap.token_in(found, machine)
    if present is None:
        return None
    if present.expires - ports.now() > _STILL_USEFUL:
        return present
    patch = {"metadata": {"uid": found.metadata.uid}, "data": body["data"]}
    await target.writer.patch(SECRETS, token.object_name, patch, namespace=TOKEN_NAMESPACE)
    return token


async def _delete(target: Target, name: str, *, uid: str = "") -> None:
    await target.writer.delete(SECRETS, name, namespace=TOKEN_NAMESPACE, uid=uid)
