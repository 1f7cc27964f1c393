"""Failures as the API tells them: a code, a reason, and a Status body that names the object.

Code and reason belong together (409 is Conflict or AlreadyExists, 410 is Expired or Gone); the
functions below are the only places where they are paired. ``details.kind`` is the plural resource
name, save for Invalid, where it is the kind: upstream's inheritance, which clients rely on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import final

import orjson

from mcm.api.meta import JSONObject
from mcm.client.transport import Response
from mcm.sandbox.apiserver.registry import ResourceInfo


@final
@dataclass(frozen=True, slots=True)
class StatusCause:
    """One entry of ``details.causes``; ``field`` is a path such as ``spec.replicas``."""

    reason: str
    message: str
    field: str = ""

    def document(self) -> JSONObject:
        entries = {"reason": self.reason, "message": self.message, "field": self.field}
        return {name: value for name, value in entries.items() if value}


@final
class StatusError(Exception):
    """Raised by a handler to answer with a failure."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: JSONObject | None = None,
        causes: Sequence[StatusCause] = (),
        retry_after: int | None = None,
        continue_token: str = "",
    ) -> None:
        self.code = int(code)
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self._details = details
        self._causes = tuple(causes)
        self._continue_token = continue_token
        super().__init__(message)

    def status(self) -> JSONObject:
        """Return the Status object, as bodies and ERROR events hold it."""
        status: JSONObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {"continue": self._continue_token} if self._continue_token else {},
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        details = dict(self._details or {})
        if self._causes:
            details["causes"] = [cause.document() for cause in self._causes]
        if self.retry_after:
            details["retryAfterSeconds"] = self.retry_after
        if details or self._details is not None:
            status["details"] = details
        status["code"] = self.code
        return status

    def response(self) -> Response:
        headers = {"content-type": "application/json"}
        if self.retry_after:
            headers["retry-after"] = str(self.retry_after)
        return Response(self.code, headers, orjson.dumps(self.status()))


def _about(info: ResourceInfo, name: str, *, kind: str = "") -> JSONObject:
    details: JSONObject = {"name": name} if name else {}
    if info.group:
        details["group"] = info.group
    details["kind"] = kind or info.plural
    return details


# 4xx: the request -------------------------------------------------------------------------------


def bad_request(message: str) -> StatusError:
    return StatusError(HTTPStatus.BAD_REQUEST, "BadRequest", message)


def forbidden(
    info: ResourceInfo, name: str, why: str, *, causes: Sequence[StatusCause] = ()
) -> StatusError:
    return StatusError(
        HTTPStatus.FORBIDDEN,
        "Forbidden",
        f'{info.qualified} "{name}" is forbidden: {why}',
        details=_about(info, name),
        causes=causes,
    )


def not_found(info: ResourceInfo, name: str) -> StatusError:
    return StatusError(
        HTTPStatus.NOT_FOUND,
        "NotFound",
        f'{info.qualified} "{name}" not found',
        details=_about(info, name),
    )


def unknown_path() -> StatusError:
    """Something else is served under the group and version, but not this."""
    return StatusError(
        HTTPStatus.NOT_FOUND,
        "NotFound",
        "the server could not find the requested resource",
        details={},
    )


def method_not_allowed() -> StatusError:
    return StatusError(
        HTTPStatus.METHOD_NOT_ALLOWED,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
        details={},
    )


def not_acceptable() -> StatusError:
    return StatusError(
        HTTPStatus.NOT_ACCEPTABLE,
        "NotAcceptable",
        "only the following media types are accepted: application/json",
    )


def already_exists(info: ResourceInfo, name: str) -> StatusError:
    return StatusError(
        HTTPStatus.CONFLICT,
        "AlreadyExists",
        f'{info.qualified} "{name}" already exists',
        details=_about(info, name),
    )


def conflict(info: ResourceInfo, name: str, why: str) -> StatusError:
    return StatusError(
        HTTPStatus.CONFLICT,
        "Conflict",
        f'Operation cannot be fulfilled on {info.qualified} "{name}": {why}',
        details=_about(info, name),
    )


def stale(info: ResourceInfo, name: str) -> StatusError:
    """The resourceVersion sent is not the current one."""
    return conflict(
        info,
        name,
        "the object has been modified; please apply your changes to the latest version "
        "and try again",
    )


def other_uid(info: ResourceInfo, name: str, *, wanted: str, found: str) -> StatusError:
    """An update is meant for another object of the name."""
    return conflict(
        info,
        name,
        f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}",
    )


def failed_precondition(
    info: ResourceInfo, name: str, what: str, *, wanted: str, found: str
) -> StatusError:
    """A precondition of DeleteOptions does not hold; ``what`` is UID or ResourceVersion."""
    kind = f"{info.kind}.{info.group}" if info.group else info.kind
    happened = "deleted and then recreated" if what == "UID" else "modified"
    return StatusError(
        HTTPStatus.CONFLICT,
        "Conflict",
        f'Operation cannot be fulfilled on {kind} "{name}": the {what} in the precondition '
        f"({wanted}) does not match the {what} in record ({found}). The object might have been "
        f"{happened}",
        details=_about(info, name, kind=info.kind),
    )


def apply_conflict(message: str, causes: Sequence[tuple[str, str]]) -> StatusError:
    """A server-side apply without force wants others' fields; causes are (message, field)."""
    return StatusError(
        HTTPStatus.CONFLICT,
        "Conflict",
        message,
        causes=[StatusCause("FieldManagerConflict", text, field) for text, field in causes],
    )


def expired(message: str, *, continue_token: str = "") -> StatusError:
    return StatusError(HTTPStatus.GONE, "Expired", message, continue_token=continue_token)


def too_old(revision: int, oldest: int) -> StatusError:
    return expired(f"too old resource version: {revision} ({oldest})")


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    return StatusError(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted),
    )


def too_large_body(limit: int) -> StatusError:
    return StatusError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "RequestEntityTooLarge",
        f"Request entity too large: limit is {limit}",
    )


def slow_body(seconds: float) -> StatusError:
    return StatusError(
        HTTPStatus.REQUEST_TIMEOUT,
        "Timeout",
        f"Timeout: request did not complete within the allotted timeout of {seconds:g}s",
    )


def unreadable(code: int, why: str) -> StatusError:
    """For what is no request at all: nothing in it can be named. Only 400 has a reason upstream."""
    reason = "BadRequest" if code == HTTPStatus.BAD_REQUEST else ""
    return StatusError(code, reason, f"the request could not be read: {why}")


def invalid(info: ResourceInfo, name: str, causes: Sequence[StatusCause]) -> StatusError:
    """422; each cause names a field and what is wrong with it."""
    kind = f"{info.kind}.{info.group}" if info.group else info.kind
    problems = [f"{cause.field}: {cause.message}" for cause in causes]
    text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return StatusError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "Invalid",
        f'{kind} "{name}" is invalid: {text}',
        details=_about(info, name, kind=info.kind),
        causes=causes,
    )


def version_required(info: ResourceInfo, name: str) -> StatusError:
    """422 for an update without resourceVersion; upstream names the resource, not the kind."""
    cause = wrong_value("metadata.resourceVersion", 0, "must be specified for an update")
    return StatusError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "Invalid",
        f'{info.qualified} "{name}" is invalid: {cause.field}: {cause.message}',
        details=_about(info, name),
        causes=(cause,),
    )


def invalid_options(kind: str, cause: StatusCause) -> StatusError:
    """422 about query parameters or DeleteOptions rather than an object."""
    return StatusError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "Invalid",
        f'{kind}.meta.k8s.io "" is invalid: {cause.field}: {cause.message}',
        details={"group": "meta.k8s.io", "kind": kind},
        causes=(cause,),
    )


def unprocessable(message: str) -> StatusError:
    """422 for a patch that does not apply to the object."""
    return StatusError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message)


def too_many_requests(
    message: str, *, retry_after: int | None = None, causes: Sequence[StatusCause] = ()
) -> StatusError:
    return StatusError(
        HTTPStatus.TOO_MANY_REQUESTS,
        "TooManyRequests",
        message,
        causes=causes,
        retry_after=retry_after,
    )


# 5xx: the server --------------------------------------------------------------------------------


def internal(why: str) -> StatusError:
    return StatusError(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "InternalError",
        f"Internal error occurred: {why}",
        causes=(StatusCause("", why),),
    )


def unreasoned(message: str) -> StatusError:
    """What upstream answers where it forgot to give an error a code and a reason."""
    return StatusError(HTTPStatus.INTERNAL_SERVER_ERROR, "", message)


def too_large_version(wanted: int, current: int) -> StatusError:
    return StatusError(
        HTTPStatus.GATEWAY_TIMEOUT,
        "Timeout",
        f"Timeout: Too large resource version: {wanted}, current: {current}",
        causes=(StatusCause("ResourceVersionTooLarge", "Too large resource version"),),
        retry_after=1,
    )


# Field causes -----------------------------------------------------------------------------------


def required(field: str, detail: str = "") -> StatusCause:
    message = f"Required value: {detail}" if detail else "Required value"
    return StatusCause("FieldValueRequired", message, field)


def wrong_value(field: str, value: object, detail: str) -> StatusCause:
    shown = orjson.dumps(value).decode()
    return StatusCause("FieldValueInvalid", f"Invalid value: {shown}: {detail}", field)


def not_supported(field: str, value: str, supported: Sequence[str]) -> StatusCause:
    listed = ", ".join(f'"{choice}"' for choice in supported)
    message = f'Unsupported value: "{value}": supported values: {listed}'
    return StatusCause("FieldValueNotSupported", message, field)


def too_long(field: str, limit: int) -> StatusCause:
    return StatusCause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", field)


def not_permitted(field: str, detail: str) -> StatusCause:
    return StatusCause("FieldValueForbidden", f"Forbidden: {detail}", field)
