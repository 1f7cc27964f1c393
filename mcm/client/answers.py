"""From an answer to its meaning: pure functions, which raise the typed error of a failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

import msgspec

from mcm.api import codec
from mcm.api.meta import KubeObject, Resource
from mcm.client.errors import ApiError, ProtocolError, Unauthorized, error_from_status
from mcm.client.transport import Response

T = TypeVar("T", bound=KubeObject)
T_co = TypeVar("T_co", bound=KubeObject, covariant=True)


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T_co]):
    """One page of a list. ``remaining`` is what the server says is left, None if it did not say.

    ``bad`` are items whose type we could not read; they are no reason to lose the rest.
    """

    items: tuple[T_co, ...]
    resource_version: str
    continue_token: str = ""
    remaining: int | None = None
    bad: tuple[codec.BadObject, ...] = ()


class _DeletedMeta(msgspec.Struct, frozen=True, rename="camel"):
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] | None = None


class _Deleted(msgspec.Struct, frozen=True):
    kind: str = ""
    metadata: _DeletedMeta = _DeletedMeta()


_deleted_decoder = msgspec.json.Decoder(_Deleted)


def failure(
    status: int, headers: Mapping[str, str], body: bytes, *, refusal: str = ""
) -> ApiError | None:
    """Return the error an answer stands for, or None if it is a success.

    ``refusal`` is what to tell of a 401, where a server says no more than "Unauthorized".
    """
    if 200 <= status < 300:
        return None
    error = error_from_status(status, body, retry_after(headers))
    if refusal and isinstance(error, Unauthorized):
        said = f"{refusal} (the server says: {error})"
        return Unauthorized(error.code, error.reason, said, retry_after=error.retry_after)
    return error


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return Retry-After in seconds. API servers send whole seconds; a date (from a proxy) is
    not believed, as it would compare two machines' clocks."""
    text = headers.get("retry-after", "").strip()
    return float(text) if text.isascii() and text.isdigit() else None


def object_of(resource: Resource[T], response: Response) -> T:
    """Decode the object of a successful answer; raises :class:`ProtocolError` if it is none."""
    try:
        obj = codec.read_object(resource, response.body)
    except codec.DecodeError as error:
        raise ProtocolError(f"cannot read the answer: {error}") from error
    if not obj.metadata.name:
        raise ProtocolError(f"the answer is no {resource.kind}: it has no name")
    return obj


def page_of(resource: Resource[T], response: Response) -> ListPage[T]:
    """Decode one page; raises :class:`ProtocolError` if it is no list.

    Every list has a version. An answer without one comes from something else on the way, and to
    take it for an empty collection would make everything look deleted.
    """
    try:
        page = codec.decode_list(resource, response.body)
    except codec.DecodeError as error:
        raise ProtocolError(f"cannot read the answer: {error}") from error
    meta = page.metadata
    if not meta.resource_version:
        raise ProtocolError(f"the answer is no list of {resource.name}: it has no resourceVersion")
    return ListPage(
        items=page.items,
        resource_version=meta.resource_version,
        continue_token=meta.continue_,
        remaining=meta.remaining_item_count,
        bad=page.bad,
    )


def remainder_of(resource: Resource[T], response: Response) -> T | None:
    """Return the object if it outlives its deletion, None if it is gone.

    It stays while it has a deletionTimestamp and something to wait for: finalizers, or a grace
    period that is not zero. ``Status`` Success, or the object as it last was, mean it is gone.
    """
    try:
        deleted = _deleted_decoder.decode(response.body)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"cannot read the answer to a deletion: {error}") from error
    meta = deleted.metadata
    if deleted.kind == "Status" or meta.deletion_timestamp is None:
        return None
    if not meta.finalizers and meta.deletion_grace_period_seconds == 0:
        return None
    return object_of(resource, response)
