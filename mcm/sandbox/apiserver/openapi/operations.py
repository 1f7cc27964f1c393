"""The operations of version 3 documents: what may be done to each path, with which parameters.

``kubectl`` looks here for two things: whether writes take ``fieldValidation`` (then it leaves
validation to the server), and whether a kind takes strategic merge patches. The latter is not
said: for built-in kinds clients know the merge keys themselves and better than our schemas do.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.openapi.schemas import V3_PREFIX, component_name
from mcm.sandbox.apiserver.registry import ResourceInfo

_PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
)


def _query(name: str, description: str, kind: str = "string") -> JSONObject:
    schema = {"type": kind, "uniqueItems": True}
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _path(name: str) -> JSONObject:
    schema = {"type": "string", "uniqueItems": True}
    return {"name": name, "in": "path", "required": True, "schema": schema}


_WRITE_PARAMETERS = (
    _query("dryRun", "All: answer as if the change were made, but do not make it."),
    _query("fieldManager", "Who makes the change, for the ownership of fields."),
    _query("fieldValidation", "What unknown fields lead to: Ignore, Warn or Strict."),
)
_FORCE = _query("force", "Take fields from other managers that own them.", "boolean")
_LIST_PARAMETERS = (
    _query("continue", "Where the last page ended."),
    _query("fieldSelector", "Select by fields."),
    _query("labelSelector", "Select by labels."),
    _query("limit", "How many objects to return at most.", "integer"),
    _query("resourceVersion", "Which state to start from."),
    _query("resourceVersionMatch", "How to read resourceVersion."),
    _query("timeoutSeconds", "When to end the call.", "integer"),
    _query("watch", "Stream the changes instead.", "boolean"),
)
_DELETE_PARAMETERS = (
    _query("dryRun", "All: answer as if the object were deleted, but do not delete it."),
    _query("gracePeriodSeconds", "How long the object may take to end.", "integer"),
    _query("propagationPolicy", "What becomes of dependents: Orphan, Background or Foreground."),
)

_ACTIONS = {
    "get": ("get", "get"),
    "list": ("get", "list"),
    "create": ("post", "post"),
    "update": ("put", "put"),
    "patch": ("patch", "patch"),
    "delete": ("delete", "delete"),
    "deletecollection": ("delete", "deletecollection"),
}
_OF_COLLECTION = ("list", "create", "deletecollection")
_OF_OBJECT = ("get", "update", "patch", "delete")
_PARAMETERS = {
    "list": _LIST_PARAMETERS,
    "create": _WRITE_PARAMETERS,
    "update": _WRITE_PARAMETERS,
    "patch": (*_WRITE_PARAMETERS, _FORCE),
    "delete": _DELETE_PARAMETERS,
    "deletecollection": (*_DELETE_PARAMETERS, *_LIST_PARAMETERS),
}


def paths_of(resources: Iterable[ResourceInfo]) -> JSONObject:
    """Return the path items of every resource, its objects and its status."""
    paths: JSONObject = {}
    for info in resources:
        base = f"/apis/{info.group}" if info.group else "/api"
        scope = "/namespaces/{namespace}" if info.namespaced else ""
        collection = f"{base}/{info.version}{scope}/{info.plural}"
        _add(paths, collection, _item(info, _OF_COLLECTION))
        _add(paths, f"{collection}/{{name}}", _item(info, _OF_OBJECT))
        if info.namespaced and "list" in info.verbs:
            everywhere = _item(info, ("list",), "ForAllNamespaces")
            _add(paths, f"{base}/{info.version}/{info.plural}", everywhere)
        if info.has_status:
            status = _item(info, ("get", "update", "patch"), "Status")
            _add(paths, f"{collection}/{{name}}/status", status)
    return paths


def _add(paths: JSONObject, path: str, item: JSONObject) -> None:
    if not item:
        return
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    paths[path] = {**item, "parameters": [_path(name) for name in names]} if names else item


def _item(info: ResourceInfo, verbs: Iterable[str], suffix: str = "") -> JSONObject:
    """Return the operations of one path; ``suffix`` tells their names from another path's."""
    item: JSONObject = {}
    for verb in verbs:
        if verb in info.verbs:
            method, action = _ACTIONS[verb]
            item[method] = _operation(info, verb, action, suffix)
    return item


def _operation(info: ResourceInfo, verb: str, action: str, suffix: str) -> JSONObject:
    group = info.group.partition(".")[0].title() or "Core"
    operation: JSONObject = {
        "operationId": f"{verb}{group}{info.version.title()}{info.kind}{suffix}",
        "parameters": list(_PARAMETERS.get(verb, ())),
        "responses": {"200": {"description": "OK", "content": _content(info)}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {
            "group": info.group,
            "version": info.version,
            "kind": info.kind,
        },
    }
    if verb in ("create", "update"):
        operation["requestBody"] = {"content": _content(info), "required": True}
    elif verb == "patch":
        operation["requestBody"] = {
            "content": {media_type: {"schema": {"type": "object"}} for media_type in _PATCH_TYPES},
            "required": True,
        }
    return operation


def _content(info: ResourceInfo) -> JSONObject:
    return {"application/json": {"schema": {"$ref": f"{V3_PREFIX}{component_name(info)}"}}}
