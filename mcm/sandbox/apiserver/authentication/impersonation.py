"""Requests on behalf of somebody else: whom they name, and what one must be allowed for that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final
from urllib.parse import unquote

from mcm.sandbox.apiserver.authentication.users import (
    ANONYMOUS,
    AUTHENTICATED,
    User,
    account_of,
    service_account,
)
from mcm.sandbox.apiserver.errors import StatusError, internal

_USER, _GROUP, _UID = "impersonate-user", "impersonate-group", "impersonate-uid"
_EXTRA = "impersonate-extra-"


@final
@dataclass(frozen=True, slots=True)
class Need:
    """An ``impersonate`` that the caller must be allowed."""

    resource: str
    name: str
    namespace: str = ""
    group: str = ""
    subresource: str = ""


@final
@dataclass(frozen=True, slots=True)
class Impersonation:
    """``user`` to act as, if the caller is allowed all of ``needs``."""

    user: User
    needs: Sequence[Need]


def impersonation_in(headers: Iterable[tuple[str, str]]) -> Impersonation | None:
    """Read the headers of a request; None if they name nobody. Raises StatusError (500), as
    upstream, for groups or more of a user that is not named."""
    found = [(k.lower(), v) for k, v in headers if k.lower().startswith("impersonate-")]
    if not found:
        return None
    name = next((value for key, value in found if key == _USER), "")
    if not name:
        raise _nameless(found)
    groups = tuple(value for key, value in found if key == _GROUP)
    uid = next((value for key, value in found if key == _UID), "")
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in found:
        if key.startswith(_EXTRA):
            member = unquote(key.removeprefix(_EXTRA))
            extra[member] = (*extra.get(member, ()), value)
    return Impersonation(_user(name, groups, uid, extra), tuple(_needs(name, groups, uid, extra)))


def _nameless(found: Iterable[tuple[str, str]]) -> StatusError:
    named = ", ".join(sorted({key for key, _ in found}))
    return internal(f"requested {named} without impersonating a user")


def _user(name: str, groups: tuple[str, ...], uid: str, extra: dict[str, tuple[str, ...]]) -> User:
    account = account_of(name)
    if account is not None and not groups:
        groups = service_account(*account).groups
    elif name != ANONYMOUS.name and AUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    return User(name, groups, uid, extra)


def _needs(
    name: str, groups: Iterable[str], uid: str, extra: dict[str, tuple[str, ...]]
) -> Iterable[Need]:
    account = account_of(name)
    if account is None:
        yield Need("users", name)
    else:
        yield Need("serviceaccounts", account[1], namespace=account[0])
    for group in groups:
        yield Need("groups", group)
    if uid:
        yield Need("uids", uid, group="authentication.k8s.io")
    for member, values in extra.items():
        for value in values:
            group = "authentication.k8s.io"
            yield Need("userextras", value, group=group, subresource=member)
