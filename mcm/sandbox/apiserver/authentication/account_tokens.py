"""Tokens of service accounts: good for a while, and no longer than what they are bound to.

They have the form that readers of such tokens know (a JWT with the claims of Kubernetes), and are
signed with a key that only this server has: who wants one judged asks it for a TokenReview.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast, final

import orjson

from mcm.api.meta import JSONObject
from mcm.clock import Clock
from mcm.sandbox.apiserver.authentication.users import User, service_account
from mcm.sandbox.apiserver.store import Store, Stored

ISSUER = "https://kubernetes.default.svc.cluster.local"
_CLAIMS = "kubernetes.io"
_HEADER = {"alg": "HS256", "typ": "JWT"}
_COLLECTIONS = {"pod": "pods", "secret": "secrets", "node": "nodes"}
_EXTRA = "authentication.kubernetes.io"


class InvalidToken(Exception):
    """The text says why, and nothing of the token."""


@final
@dataclass(frozen=True, slots=True)
class Proof:
    """Whose a token is, and for which audiences it was made."""

    user: User
    audiences: tuple[str, ...] = ()


@final
class AccountTokens:
    """``store`` tells whether accounts, and what tokens are bound to, still exist."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._key = secrets.token_bytes(32)

    def issue(
        self,
        account: Stored,
        *,
        audiences: Sequence[str],
        seconds: int,
        bound: Mapping[str, JSONObject],
    ) -> tuple[str, datetime]:
        """Return a token and when it ends. ``bound`` holds name and uid of what must live, by the
        kind in lower case."""
        now = self._clock.now()
        ends = now + timedelta(seconds=seconds)
        claims: JSONObject = {
            "aud": list(audiences),
            "exp": int(ends.timestamp()),
            "iat": int(now.timestamp()),
            "iss": ISSUER,
            "jti": str(uuid.UUID(bytes=secrets.token_bytes(16), version=4)),
            _CLAIMS: {
                "namespace": account.namespace,
                "serviceaccount": {"name": account.name, "uid": account.uid},
                **bound,
            },
            "nbf": int(now.timestamp()),
            "sub": service_account(account.namespace, account.name).name,
        }
        signed = f"{_encoded(orjson.dumps(_HEADER))}.{_encoded(orjson.dumps(claims))}"
        return f"{signed}.{_encoded(self._signature(signed))}", ends

    def proof_of(self, token: str) -> Proof:
        """Return what a token proves. Raises InvalidToken."""
        claims = self._claims(token)
        if self._clock.now().timestamp() >= cast(int, claims["exp"]):
            raise InvalidToken("service account token has expired")
        about = cast("dict[str, JSONObject]", claims[_CLAIMS])
        namespace, account = str(about["namespace"]), about["serviceaccount"]
        self._must_live("serviceaccounts", namespace, account)
        extra = {f"{_EXTRA}/credential-id": (f"JTI={claims['jti']}",)}
        for kind, collection in _COLLECTIONS.items():
            if kind in about:
                place = "" if kind == "node" else namespace
                self._must_live(collection, place, about[kind])
                extra[f"{_EXTRA}/{kind}-name"] = (str(about[kind]["name"]),)
                extra[f"{_EXTRA}/{kind}-uid"] = (str(about[kind]["uid"]),)
        user = service_account(
            namespace, str(account["name"]), uid=str(account["uid"]), extra=extra
        )
        return Proof(user, tuple(cast("list[str]", claims["aud"])))

    def _claims(self, token: str) -> JSONObject:
        signed, _, signature = token.rpartition(".")
        try:
            given = _decoded(signature)
            if not hmac.compare_digest(given, self._signature(signed)):
                raise InvalidToken("invalid bearer token")
            return cast(JSONObject, orjson.loads(_decoded(signed.rpartition(".")[2])))
        except (ValueError, binascii.Error):
            raise InvalidToken("invalid bearer token") from None

    def _must_live(self, collection: str, namespace: str, wanted: JSONObject) -> None:
        name, uid = str(wanted["name"]), wanted["uid"]
        key = f"{namespace}/{name}" if namespace else name
        found = self._store.collection(collection).get(key)
        if found is None or found.uid != uid:
            raise InvalidToken("service account token has been invalidated")

    def _signature(self, signed: str) -> bytes:
        return hmac.digest(self._key, signed.encode("utf-8", "surrogateescape"), hashlib.sha256)


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    raw = text.encode("ascii")
    return base64.b64decode(raw + b"=" * (-len(raw) % 4), altchars=b"-_", validate=True)
