"""What can go wrong between us and an API server: one class for each thing a caller may do.

``ApiError`` carries the server's Status; code *and* reason choose the subclass, since 409 means two
things (Conflict, AlreadyExists) and so does 410. Texts are cut, as bodies may hold secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

_MESSAGE_LIMIT = 512


class KubeError(Exception):
    """Base of everything the client raises."""


class ConfigurationError(KubeError):
    """A kubeconfig, credential or flag that cannot work; the text names it and the remedy."""


class TransportError(KubeError, OSError):
    """The request may or may not have reached the server: refused, reset, TLS, name resolution."""


class NotSent(TransportError):
    """No connection came about: the request certainly did not reach a server."""


class ConnectionRefused(NotSent):
    """Nothing listens there, or the way there is cut."""


class NameResolutionError(NotSent):
    """The server's (or the proxy's) name has no address."""


class TLSError(NotSent):
    """The handshake failed: an unknown authority, a name that does not match, a refused client
    certificate. The text says which, and the remedy."""


class CredentialsError(NotSent):
    """No credentials could be had (a plugin failed, a token file is unreadable or empty)."""


class RequestTimeout(TransportError, TimeoutError):
    """No answer within the time limit of the request's class."""


class ConnectTimeout(NotSent, RequestTimeout):
    """No connection within the time limit."""


class ProtocolError(KubeError):
    """The peer answered something that is not the Kubernetes API (not JSON, a torn frame …)."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of ``status.details.causes``."""

    reason: str
    message: str
    field: str


class ApiError(KubeError):
    """A Status with a failure. ``retry_after`` is in seconds, if the server said one.

    ``about`` is the kind or plural name of the object that it is about; empty where it is about
    none, as with a path at which nothing is served.
    """

    def __init__(
        self,
        code: int,
        reason: str = "",
        message: str = "",
        *,
        causes: tuple[Cause, ...] = (),
        retry_after: float | None = None,
        about: str = "",
    ) -> None:
        self.code = code
        self.reason = reason
        self.message = message[:_MESSAGE_LIMIT]
        self.causes = causes
        self.retry_after = retry_after
        self.about = about
        super().__init__(self.message or reason or f"HTTP {code}")


class BadRequest(ApiError):
    """400."""


class Unauthorized(ApiError):
    """401, after one renewal of the credentials."""


class Forbidden(ApiError):
    """403."""


class NotFound(ApiError):
    """404."""


class MethodNotAllowed(ApiError):
    """405."""


class Conflict(ApiError):
    """409, reason Conflict: the precondition (resourceVersion, UID) no longer holds.

    A patch that names another UID is told apart from other changes of immutable fields (422): it
    was meant for an object that is gone.
    """


class AlreadyExists(ApiError):
    """409, reason AlreadyExists."""


class Gone(ApiError):
    """410, reasons Expired and Gone: the version asked for is no longer kept."""


class Invalid(ApiError):
    """422; ``causes`` name the fields."""


class TooManyRequests(ApiError):
    """429; for an eviction, ``causes`` say which budget refused."""


class ServerError(ApiError):
    """5xx."""


class ServerTimeout(ServerError):
    """504, or reason Timeout/ServerTimeout."""


class TooLargeResourceVersion(ServerTimeout):
    """504 with cause ResourceVersionTooLarge: the server has not reached the version asked for."""


class _Details(msgspec.Struct, frozen=True):
    kind: str = ""
    causes: list[dict[str, str]] | None = None
    retryAfterSeconds: int | None = None  # noqa: N815 - wire name


class _Status(msgspec.Struct, frozen=True):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_status_decoder = msgspec.json.Decoder(_Status)
_BY_CODE: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
    504: ServerTimeout,
}


def error_from_status(code: int, body: bytes, retry_after: float | None = None) -> ApiError:
    """Build the error for an HTTP answer, or for the Status object of a watch's ERROR event.

    ``code`` is the HTTP status (0 in an ERROR event: the body's own code counts then).
    A body that is no Status gives an error with an empty reason.
    """
    try:
        status = _status_decoder.decode(body)
    except msgspec.DecodeError:
        status = _Status(message=body[:_MESSAGE_LIMIT].decode("utf-8", "replace"))
    code = code or status.code or 500
    details = status.details or _Details()
    causes = tuple(
        Cause(c.get("reason", ""), c.get("message", ""), c.get("field", ""))
        for c in details.causes or ()
    )
    if retry_after is None and details.retryAfterSeconds:
        retry_after = float(details.retryAfterSeconds)
    return _class_of(code, status.reason, causes)(
        code,
        status.reason,
        status.message,
        causes=causes,
        retry_after=retry_after,
        about=details.kind,
    )


def _class_of(code: int, reason: str, causes: tuple[Cause, ...]) -> type[ApiError]:
    if code == 409 and reason == "AlreadyExists":
        return AlreadyExists
    if code == 504 or reason in ("Timeout", "ServerTimeout"):
        if any(c.reason == "ResourceVersionTooLarge" for c in causes):
            return TooLargeResourceVersion
        return ServerTimeout
    if code == 422 and causes and all(c.field == "metadata.uid" for c in causes):
        return Conflict
    if reason in ("Expired", "Gone"):
        return Gone
    return _BY_CODE.get(code, ServerError if code >= 500 else ApiError)
