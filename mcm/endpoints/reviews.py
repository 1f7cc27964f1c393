"""``TokenReview`` and ``SubjectAccessReview``: whose a token is, and what that user may do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, final

import msgspec

from mcm.client.errors import ProtocolError
from mcm.client.requests import SEND, Call
from mcm.client.retry import Safety
from mcm.client.transport import Response
from mcm.client.verbs import Carrier

_TOKEN_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS_REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

R = TypeVar("R")


class User(msgspec.Struct, frozen=True):
    """Whom an API server recognised."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a user may do what was asked about, and what the server says of it."""

    allowed: bool
    reason: str = ""


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: User = User()
    audiences: tuple[str, ...] = ()


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False
    denied: bool = False
    reason: str = ""


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


async def user_of(client: Carrier, token: str, audiences: Sequence[str]) -> User | None:
    """Return whose ``token`` is; None if it is nobody's, or not meant for one of ``audiences``
    (none given: for the API server itself). Raises :mod:`mcm.client.errors`."""
    spec: dict[str, object] = {"token": token}
    if audiences:
        spec["audiences"] = list(audiences)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
    status = await client.perform(_call(_TOKEN_REVIEWS, review), _read_token_review)
    if not status.authenticated or not status.user.username:
        return None
    # A server that knows nothing of audiences names none: then the token was meant for anybody.
    if audiences and not set(audiences) & set(status.audiences):
        return None
    return status.user


async def may(client: Carrier, user: User, *, verb: str, path: str) -> Decision:
    """Ask whether ``user`` may ``verb`` the path, which is that of no resource. Raises
    :mod:`mcm.client.errors`."""
    spec = {
        "user": user.username,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": dict(user.extra),
        "nonResourceAttributes": {"path": path, "verb": verb},
    }
    kind = "SubjectAccessReview"
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    status = await client.perform(_call(_ACCESS_REVIEWS, review), _read_access_review)
    return Decision(status.allowed and not status.denied, status.reason)


def _call(path: str, review: Mapping[str, object]) -> Call:
    # It changes nothing and so may be repeated, and needs no leadership.
    body = msgspec.json.encode(review)
    return Call("CREATE", "POST", path, headers=SEND, body=body, safety=Safety.READ)


def _read_token_review(response: Response) -> _TokenStatus:
    return _read(response, _TokenReview).status


def _read_access_review(response: Response) -> _AccessStatus:
    return _read(response, _AccessReview).status


def _read(response: Response, kind: type[R]) -> R:
    try:
        return msgspec.json.decode(response.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # What it holds instead is not repeated: it may hold what we sent.
        raise ProtocolError(f"the answer is no {kind.__name__.removeprefix('_')}") from None
