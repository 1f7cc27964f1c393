"""The question that a webhook is asked, and what its answer means."""

from __future__ import annotations

import uuid
from http import HTTPStatus
from typing import cast

import orjson

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.admission.webhooks import SCALE, Change, Webhook
from mcm.sandbox.apiserver.errors import StatusError
from mcm.sandbox.apiserver.registry import ResourceInfo

_VERSION = "admission.k8s.io/v1"
_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


class NoAnswer(Exception):
    """A webhook could not be asked, or what it said is no answer; the text says why."""


def question(change: Change) -> tuple[str, bytes]:
    """Return the UID and the body of an AdmissionReview."""
    uid = str(uuid.uuid4())
    info = change.info
    kind = _triple(info, "kind", info.kind)
    if change.subresource == SCALE:
        kind = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    resource = _triple(info, "resource", info.plural)
    options = {"apiVersion": "meta.k8s.io/v1", "kind": _OPTIONS[change.operation]}
    asked: JSONObject = {
        "uid": uid,
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": change.name,
        "operation": change.operation,
        "userInfo": change.user.document(),
        "object": change.obj,
        "oldObject": change.old,
        "dryRun": change.dry_run,
        "options": options,
    }
    if info.namespaced:
        asked["namespace"] = change.namespace
    if change.subresource:
        asked["subResource"] = asked["requestSubResource"] = change.subresource
    body = {"apiVersion": _VERSION, "kind": "AdmissionReview", "request": asked}
    return uid, orjson.dumps(body)


def _triple(info: ResourceInfo, what: str, name: str) -> JSONObject:
    return {"group": info.group, "version": info.version, what: name}


def warnings_of(webhook: Webhook, uid: str, answer: bytes) -> list[str]:
    """Read the answer of a webhook that lets the change pass.

    Raises:
        NoAnswer: it is none, or one to another question.
        StatusError: the webhook denies the change.
    """
    try:
        document = orjson.loads(answer)
    except orjson.JSONDecodeError as error:
        raise NoAnswer(f"couldn't get version/kind; json parse error: {error}") from None
    response = document.get("response") if isinstance(document, dict) else None
    if not isinstance(response, dict):
        raise NoAnswer("webhook response was absent")
    if response.get("uid") != uid:
        raise NoAnswer(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    if response.get("allowed") is not True:
        raise _denial(webhook, cast(JSONObject, response.get("status") or {}))
    found = response.get("warnings") or ()
    return [str(warning) for warning in found]


def _denial(webhook: Webhook, status: JSONObject) -> StatusError:
    denied = f'admission webhook "{webhook.name}" denied the request'
    reason, why = str(status.get("reason") or ""), status.get("message") or status.get("reason")
    message = f"{denied}: {why}" if why else f"{denied} without explanation"
    code = status.get("code")
    if not isinstance(code, int) or code < HTTPStatus.BAD_REQUEST:
        code = HTTPStatus.BAD_REQUEST
    details = status.get("details")
    known = cast(JSONObject, details) if isinstance(details, dict) else None
    return StatusError(code, reason, message, details=known)


def unasked(webhook: Webhook, why: str) -> StatusError:
    """Return the refusal where a webhook must be asked and cannot be."""
    told = f'failed calling webhook "{webhook.name}": failed to call webhook: {why}'
    return StatusError(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "InternalError",
        f"Internal error occurred: {told}",
    )
