"""Users as the server knows them: a name, and groups that speak for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import final

from mcm.api.meta import JSONObject

AUTHENTICATED = "system:authenticated"
MASTERS = "system:masters"
"""The group that may do everything, whatever the rules say."""
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
SERVICE_ACCOUNTS = "system:serviceaccounts"

_NOTHING: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NOTHING)

    def document(self) -> JSONObject:
        """Return the user as reviews show it; what is empty is left out."""
        known: JSONObject = {
            "username": self.name,
            "uid": self.uid,
            "groups": list(self.groups),
            "extra": {name: list(values) for name, values in self.extra.items()},
        }
        return {name: value for name, value in known.items() if value}


ADMIN = User("sandbox-admin", (MASTERS, AUTHENTICATED))
"""Who holds the sandbox's kubeconfig, and its own controllers."""

ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


def service_account(
    namespace: str, name: str, *, uid: str = "", extra: Mapping[str, tuple[str, ...]] = _NOTHING
) -> User:
    """Return the user that a service account is."""
    groups = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}", AUTHENTICATED)
    return User(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}", groups, uid, extra)


def account_of(user_name: str) -> tuple[str, str] | None:
    """Return namespace and name of the service account that a user name means, if it means one."""
    match user_name.split(":"):
        case ["system", "serviceaccount", namespace, name] if namespace and name:
            return namespace, name
        case _:
            return None
