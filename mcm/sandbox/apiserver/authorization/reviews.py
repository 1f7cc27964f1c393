"""Reviews of what somebody may do: answered, never kept."""

from __future__ import annotations

from typing import cast

from mcm.api.meta import JSONObject
from mcm.client.transport import Response
from mcm.sandbox.apiserver.authentication.users import MASTERS, User
from mcm.sandbox.apiserver.authorization.attributes import Attributes
from mcm.sandbox.apiserver.authorization.authorizer import judged
from mcm.sandbox.apiserver.authorization.rbac import grants_of
from mcm.sandbox.apiserver.errors import (
    StatusCause,
    bad_request,
    invalid,
    required,
    wrong_value,
)
from mcm.sandbox.apiserver.reading.rendering import json_response
from mcm.sandbox.apiserver.requests.calls import Call, ServerState, decode_body
from mcm.sandbox.apiserver.writing.create_update import incoming
from mcm.sandbox.apiserver.writing.strategies.strategy import object_in, spec_of, texts_in

_EVERYTHING: tuple[JSONObject, ...] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)


def self_access_review(state: ServerState, call: Call) -> Response:
    """Say whether the caller may do something. Raises StatusError (400, 422)."""
    asked = incoming(call.info, decode_body(call))
    return _reviewed(state, call, asked, call.user, [])


def access_review(state: ServerState, call: Call) -> Response:
    """Say whether somebody may do something. Raises StatusError (400, 422)."""
    asked = incoming(call.info, decode_body(call))
    spec = spec_of(asked)
    groups = tuple(texts_in(spec, "groups"))
    causes: list[StatusCause] = []
    if not spec.get("user") and not groups:
        why = "at least one of user or group must be specified"
        causes.append(wrong_value("spec.user", "", why))
    return _reviewed(state, call, asked, User(str(spec.get("user") or ""), groups), causes)


def _reviewed(
    state: ServerState, call: Call, asked: JSONObject, user: User, causes: list[StatusCause]
) -> Response:
    spec = spec_of(asked)
    about, path = object_in(spec, "resourceAttributes"), object_in(spec, "nonResourceAttributes")
    if bool(spec.get("resourceAttributes")) == bool(spec.get("nonResourceAttributes")):
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes.append(wrong_value("spec.resourceAttributes", about or None, why))
    elif path and not (path.get("path") and path.get("verb")):
        causes.append(required("spec.nonResourceAttributes"))
    if causes:
        raise invalid(call.info, "", causes)
    if call.info.namespaced and about.get("namespace") != call.target.namespace:
        raise bad_request(
            f"spec.resourceAttributes.namespace must match namespace: {call.target.namespace}"
        )
    decision = judged(state.settings.authorization, state.store, _attributes(user, about, path))
    status: JSONObject = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return _answered(asked, status)


def _attributes(user: User, about: JSONObject, path: JSONObject) -> Attributes:
    def text(field: str) -> str:
        return str(about.get(field) or "")

    if path:
        return Attributes(user, str(path.get("verb")), path=str(path.get("path")))
    return Attributes(
        user,
        text("verb"),
        group=text("group"),
        resource=text("resource") or "*",
        subresource=text("subresource"),
        namespace=text("namespace"),
        name=text("name"),
    )


def self_rules_review(state: ServerState, call: Call) -> Response:
    """List what the caller may do in a namespace. Raises StatusError (400)."""
    asked = incoming(call.info, decode_body(call))
    namespace = str(spec_of(asked).get("namespace") or "")
    if not namespace:
        raise bad_request("no namespace on request")
    rules, missing = list(_EVERYTHING), list[str]()
    if state.settings.authorization == "RBAC" and MASTERS not in call.user.groups:
        grants = list(grants_of(state.store, call.user, namespace))
        rules = [rule for grant in grants for rule in grant.rules]
        missing = [grant.missing for grant in grants if grant.missing]
    status: JSONObject = {
        "resourceRules": [rule for rule in rules if rule.get("resources")],
        "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
        "incomplete": bool(missing),
    }
    if missing:
        status["evaluationError"] = ", ".join(missing)
    return _answered(asked, status)


def _answered(asked: JSONObject, status: JSONObject) -> Response:
    meta = {"creationTimestamp": None, **cast(JSONObject, asked.get("metadata") or {})}
    return json_response({**asked, "metadata": meta, "status": status}, status=201)
