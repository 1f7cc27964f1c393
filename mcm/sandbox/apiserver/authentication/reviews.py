"""Reviews of who somebody is, and tokens on request: answered, never kept."""

from __future__ import annotations

from typing import cast

from mcm.api.meta import JSONObject
from mcm.api.timestamps import rfc3339
from mcm.client.transport import Response
from mcm.sandbox.apiserver.authentication.account_tokens import ISSUER, InvalidToken
from mcm.sandbox.apiserver.errors import (
    StatusError,
    bad_request,
    conflict,
    invalid,
    method_not_allowed,
    not_found,
    not_permitted,
    wrong_value,
)
from mcm.sandbox.apiserver.kinds.access import AUTHENTICATION_GROUP
from mcm.sandbox.apiserver.reading.rendering import json_response
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import Call, ServerState, decode_body, write_options
from mcm.sandbox.apiserver.writing.create_update import find, incoming
from mcm.sandbox.apiserver.writing.strategies.strategy import object_in, spec_of, texts_in

_TOKEN_REQUEST = ResourceInfo(
    AUTHENTICATION_GROUP, "v1", "tokenrequests", "TokenRequest", builtin=True
)
_SHORTEST, _USUAL, _LONGEST = 600, 3600, 1 << 32
_BINDABLE = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


def self_subject_review(_: ServerState, call: Call) -> Response:
    asked = incoming(call.info, decode_body(call))
    return _answered(asked, {"userInfo": call.user.document()})


def token_review(state: ServerState, call: Call) -> Response:
    """Say whose the token in the spec is. Raises StatusError (400)."""
    asked = incoming(call.info, decode_body(call))
    spec = spec_of(asked)
    if not spec.get("token"):
        raise bad_request("token is required for TokenReview in authentication")
    wanted = texts_in(spec, "audiences") or [ISSUER]
    try:
        proof = state.authenticator.proof_of(str(spec["token"]))
    except InvalidToken as error:
        return _answered(asked, {"user": {}, "error": str(error)})
    shared = [audience for audience in wanted if audience in proof.audiences]
    if not shared:
        why = f"token audiences {list(proof.audiences)} is invalid for the target audiences"
        return _answered(asked, {"user": {}, "error": f"{why} {wanted}"})
    user = proof.user.document()
    return _answered(asked, {"authenticated": True, "user": user, "audiences": shared})


def _answered(asked: JSONObject, status: JSONObject) -> Response:
    meta = {"creationTimestamp": None, **object_in(asked, "metadata")}
    return json_response({**asked, "metadata": meta, "status": status}, status=201)


# Tokens -----------------------------------------------------------------------------------------


def token_request(state: ServerState, call: Call) -> Response:
    """POST of ``serviceaccounts/NAME/token``. Raises StatusError: 400, 404, 405, 409, 422."""
    if call.verb != "create":
        raise method_not_allowed()
    options = write_options(call)
    account = find(state, call)
    asked = incoming(_TOKEN_REQUEST, decode_body(call))
    spec = spec_of(asked)
    audiences = texts_in(spec, "audiences") or [ISSUER]
    seconds = _seconds(spec, account.name)
    bound = _bound(state, call, spec)
    token, ends = state.authenticator.accounts.issue(
        account, audiences=audiences, seconds=seconds, bound=bound
    )
    meta = {
        "name": account.name,
        "namespace": account.namespace,
        "creationTimestamp": state.stamp(),
    }
    spec |= {"audiences": audiences, "expirationSeconds": seconds}
    spec.setdefault("boundObjectRef", None)
    status = {"token": "" if options.dry_run else token, "expirationTimestamp": rfc3339(ends)}
    return json_response({**asked, "metadata": meta, "spec": spec, "status": status}, status=201)


def _seconds(spec: JSONObject, name: str) -> int:
    seconds = spec.get("expirationSeconds")
    if seconds is None:
        return _USUAL
    why = ""
    if not isinstance(seconds, int) or isinstance(seconds, bool) or seconds < _SHORTEST:
        why = "may not specify a duration less than 10 minutes"
    elif seconds > _LONGEST:
        why = "may not specify a duration larger than 2^32 seconds"
    if why:
        raise invalid(_TOKEN_REQUEST, name, [wrong_value("spec.expirationSeconds", seconds, why)])
    return cast(int, seconds)


def _bound(state: ServerState, call: Call, spec: JSONObject) -> dict[str, JSONObject]:
    """Return what the token is to be bound to, as its claims name it."""
    if not spec.get("boundObjectRef"):
        return {}
    reference = object_in(spec, "boundObjectRef")
    kind, name = str(reference.get("kind")), str(reference.get("name"))
    plural = _BINDABLE.get(kind)
    if plural is None:
        why = f"cannot bind token for serviceaccount to an object of kind {kind}"
        cause = not_permitted("spec.boundObjectRef.kind", why)
        raise invalid(_TOKEN_REQUEST, call.target.name, [cause])
    info = state.registry.find("", "v1", plural)
    assert info is not None
    key = f"{call.target.namespace}/{name}" if info.namespaced else name
    found = state.store.collection(plural).get(key)
    if found is None:
        raise not_found(info, name)
    uid = reference.get("uid")
    if uid and uid != found.uid:
        raise _other_object(info, name, str(uid), found.uid)
    return {kind.lower(): {"name": name, "uid": found.uid}}


def _other_object(info: ResourceInfo, name: str, wanted: str, found: str) -> StatusError:
    why = f"the UID in the bound object reference ({wanted}) does not match the UID in record. "
    return conflict(info, name, f"{why}The object might have been deleted and then recreated")
