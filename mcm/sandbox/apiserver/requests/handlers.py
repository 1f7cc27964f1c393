"""From a call to the handler of its verb and subresource."""

from __future__ import annotations

from mcm.api.meta import JSONObject
from mcm.client.transport import Response, StreamResponse
from mcm.sandbox.apiserver.authentication.reviews import token_request
from mcm.sandbox.apiserver.errors import method_not_allowed
from mcm.sandbox.apiserver.reading.listing import get, list_objects
from mcm.sandbox.apiserver.reading.logs import pod_log
from mcm.sandbox.apiserver.reading.rendering import (
    deleted_details,
    list_response,
    success,
    write_response,
)
from mcm.sandbox.apiserver.reading.watching import watch
from mcm.sandbox.apiserver.requests.calls import Call, ServerState
from mcm.sandbox.apiserver.requests.reviews import is_review, review
from mcm.sandbox.apiserver.writing.create_update import create, update
from mcm.sandbox.apiserver.writing.deletion import delete, delete_collection
from mcm.sandbox.apiserver.writing.eviction import evict
from mcm.sandbox.apiserver.writing.patching import patch
from mcm.sandbox.apiserver.writing.subresources import bind, scale

_STATUS_VERBS = frozenset({"get", "update", "patch"})


def answer(state: ServerState, call: Call) -> Response | StreamResponse:
    """Answer a call. Raises StatusError, NotYetReached."""
    match call.target.subresource:
        case "":
            return _answer_resource(state, call)
        case "status" if call.verb in _STATUS_VERBS:
            return _answer_object(state, call)
        case "finalize" if call.verb == "update":
            return _answer_object(state, call)
        case "scale":
            return scale(state, call)
        case "eviction":
            return evict(state, call)
        case "binding":
            return bind(state, call)
        case "log" if call.verb == "get":
            return pod_log(state, call)
        case "token":
            return token_request(state, call)
        case _:
            raise method_not_allowed()


def _answer_resource(state: ServerState, call: Call) -> Response | StreamResponse:
    info, target = call.info, call.target
    if call.verb not in info.verbs:
        raise method_not_allowed()
    match call.verb:
        case "list":
            return list_objects(state, call)
        case "watch":
            return watch(state, call)
        case "create":
            if target.name or (info.namespaced and not target.namespace):
                raise method_not_allowed()
            if is_review(info):
                return review(state, call)
            return write_response(state, call, create(state, call))
        case "deletecollection":
            selected = delete_collection(state, call)
            list_meta: JSONObject = {"resourceVersion": str(state.store.revision)}
            return list_response(state, call, selected, list_meta)
        case _:
            return _answer_object(state, call)


def _answer_object(state: ServerState, call: Call) -> Response:
    if not call.target.name:
        raise method_not_allowed()
    match call.verb:
        case "get":
            return get(state, call)
        case "update":
            return write_response(state, call, update(state, call))
        case "patch":
            return write_response(state, call, patch(state, call))
        case _:
            return _answer_delete(state, call)


def _answer_delete(state: ServerState, call: Call) -> Response:
    written = delete(state, call)
    if written.gone and not call.info.returns_deleted:
        return success(deleted_details(call.info, written.body))
    return write_response(state, call, written)
