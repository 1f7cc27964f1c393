"""``AdmissionReview`` of ``admission.k8s.io/v1``: reads the question, writes the answer."""

from __future__ import annotations

from typing import Final

import msgspec

from mcm.api import nesting
from mcm.api.machine import GROUP, VERSION
from mcm.api.meta import JSONObject
from mcm.api.validation import FieldError, describe
from mcm.webhook.judgement import Judgement, judge

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"

_MOST_CAUSES: Final = 50
_MOST_WARNINGS: Final = 16
_LONGEST_WARNING: Final = 250
_LONGEST_MESSAGE: Final = 4000
_UNPROCESSABLE: Final = 422
_NOTHING: Final = (b"", b"null")


class BadReview(ValueError):
    """What was sent is no review that can be answered; says why, and quotes nothing."""


class _GroupVersionResource(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    resource: str = ""


class _Kind(msgspec.Struct, frozen=True):
    kind: str = ""


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    operation: str
    resource: _GroupVersionResource
    kind: _Kind = _Kind()
    sub_resource: str = ""
    name: str = ""
    object: msgspec.Raw = msgspec.Raw()
    old_object: msgspec.Raw = msgspec.Raw()


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    request: _Request


_reviews = msgspec.json.Decoder(_Review)


def answer(body: bytes, *, max_replicas: int) -> tuple[JSONObject, Judgement]:
    """Return the review that answers ``body``, and what was decided. Raises BadReview."""
    request = _read(body)
    asked = request.resource
    if (asked.group, asked.version) != (GROUP, VERSION):
        judgement = Judgement()
    else:
        judgement = judge(
            plural=asked.resource,
            subresource=request.sub_resource,
            operation=request.operation,
            new=_present(request.object),
            old=_present(request.old_object),
            max_replicas=max_replicas,
        )
    return _review(request, judgement), judgement


def _read(body: bytes) -> _Request:
    try:
        review = _reviewed(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadReview(f"not an {KIND} with a request") from None
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise BadReview(f"only {KIND} of {API_VERSION} is understood")
    if not review.request.uid:
        raise BadReview("the request has no uid")
    return review.request


def _reviewed(body: bytes) -> _Review:
    try:
        return _reviews.decode(body)
    except RecursionError:  # enough is left for the object in it to be judged as too deep
        return _reviews.decode(nesting.cut(body, below=nesting.READABLE + 10))


def _present(raw: msgspec.Raw) -> bytes:
    body = bytes(raw)
    return b"" if body in _NOTHING else body


def _review(request: _Request, judgement: Judgement) -> JSONObject:
    response: JSONObject = {"uid": request.uid, "allowed": not judgement.errors}
    if judgement.errors:
        response["status"] = _status(request, judgement)
    if judgement.warnings:
        said = [str(found)[:_LONGEST_WARNING] for found in judgement.warnings]
        response["warnings"] = said[:_MOST_WARNINGS]
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def _status(request: _Request, judgement: Judgement) -> JSONObject:
    """A refusal in the form of the API server's own; kubectl shows its causes."""
    return {
        "status": "Failure",
        "code": _UNPROCESSABLE,
        "reason": "Invalid",
        "message": describe(judgement.errors)[:_LONGEST_MESSAGE],
        "details": {
            "group": request.resource.group,
            "kind": request.kind.kind,
            "name": request.name,
            "causes": [_cause(error) for error in judgement.errors[:_MOST_CAUSES]],
        },
    }


def _cause(error: FieldError) -> JSONObject:
    return {"reason": f"FieldValue{error.kind}", "field": error.field, "message": error.complaint}
