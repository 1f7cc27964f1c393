"""Reviews of the caller's own rights: all is allowed; answered on creation, never kept."""

from __future__ import annotations

from collections.abc import Mapping

from mcm.api.meta import JSONObject
from mcm.client.transport import Response
from mcm.sandbox.apiserver.reading.rendering import json_response
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import Call, decode_body
from mcm.sandbox.apiserver.writing.create_update import incoming

_ACCESS: JSONObject = {"allowed": True}
_RULES: JSONObject = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}
_IDENTITY: JSONObject = {
    "userInfo": {"username": "sandbox-admin", "groups": ["system:masters", "system:authenticated"]}
}
_STATUS: Mapping[str, JSONObject] = {
    "selfsubjectaccessreviews.authorization.k8s.io": _ACCESS,
    "selfsubjectrulesreviews.authorization.k8s.io": _RULES,
    "selfsubjectreviews.authentication.k8s.io": _IDENTITY,
}


def is_review(info: ResourceInfo) -> bool:
    return info.storage in _STATUS


def review(call: Call) -> Response:
    """Answer a review. Raises StatusError (400, 415)."""
    asked = incoming(call.info, decode_body(call))
    return json_response({**asked, "status": _STATUS[call.info.storage]}, status=201)
