"""What a strategy is, and what strategies share."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.errors import bad_request
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import ServerState
from mcm.sandbox.apiserver.store import Stored

Strategy = Callable[[ServerState, ResourceInfo, JSONObject, Stored | None], None]
"""Changes an object's top level in place; nested values are shared and must be replaced, not
changed. The last argument is the state before an update, None for a creation. Raises StatusError.
"""


def spec_of(obj: JSONObject) -> JSONObject:
    """Return a copy of the spec. Raises StatusError (400)."""
    return object_in(obj, "spec")


def object_in(obj: JSONObject, field: str) -> JSONObject:
    """Return a copy of a member that must be an object. Raises StatusError (400)."""
    found = obj.get(field) or {}
    if not isinstance(found, dict):
        raise bad_request(f"{field} must be an object")
    return dict(found)


def objects_in(obj: JSONObject, field: str) -> list[JSONObject]:
    """Return copies of the elements of a list of objects. Raises StatusError (400)."""
    found = obj.get(field) or []
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise bad_request(f"{field} must be a list of objects")
    return [dict(item) for item in found]


def texts_in(obj: JSONObject, field: str) -> list[str]:
    """Return the elements of a list of texts. Raises StatusError (400)."""
    found = obj.get(field) or []
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise bad_request(f"{field} must be a list of strings")
    return list(found)


def name_of(obj: JSONObject) -> str:
    return cast(str, cast(JSONObject, obj["metadata"])["name"])


def set_members(obj: JSONObject) -> JSONObject:
    """Return the object without its nulls: those count as left out."""
    return {name: value for name, value in obj.items() if value is not None}
