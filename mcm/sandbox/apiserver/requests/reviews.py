"""Which kinds are questions, and who answers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from mcm.client.transport import Response
from mcm.sandbox.apiserver.authentication.reviews import self_subject_review, token_review
from mcm.sandbox.apiserver.authorization.reviews import (
    access_review,
    self_access_review,
    self_rules_review,
)
from mcm.sandbox.apiserver.kinds.access import AUTHENTICATION_GROUP, AUTHORIZATION_GROUP
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import Call, ServerState

_REVIEWS: Mapping[str, Callable[[ServerState, Call], Response]] = MappingProxyType(
    {
        f"localsubjectaccessreviews.{AUTHORIZATION_GROUP}": access_review,
        f"selfsubjectaccessreviews.{AUTHORIZATION_GROUP}": self_access_review,
        f"selfsubjectrulesreviews.{AUTHORIZATION_GROUP}": self_rules_review,
        f"subjectaccessreviews.{AUTHORIZATION_GROUP}": access_review,
        f"selfsubjectreviews.{AUTHENTICATION_GROUP}": self_subject_review,
        f"tokenreviews.{AUTHENTICATION_GROUP}": token_review,
    }
)


def is_review(info: ResourceInfo) -> bool:
    return info.storage in _REVIEWS


def review(state: ServerState, call: Call) -> Response:
    """Answer a review. Raises StatusError (400, 415, 422)."""
    return _REVIEWS[call.info.storage](state, call)
