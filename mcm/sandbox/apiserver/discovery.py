"""Discovery: which groups, versions and resources are served, in the old form and the new.

Old clients walk ``/api``, ``/apis``, a group and a version at a time; new ones ask ``/api`` and
``/apis`` once each for everything (KEP-3352). Which of the two a client wants, its Accept header
tells.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from mcm.api.meta import JSONObject
from mcm.client.transport import Response
from mcm.sandbox.apiserver.errors import not_acceptable
from mcm.sandbox.apiserver.registry import Registry, ResourceInfo

_AGGREGATED_GROUP = "apidiscovery.k8s.io"
_AGGREGATED_VERSIONS = ("v2", "v2beta1")
_JSON_TYPES = ("application/json", "application/*", "*/*")

_READ_WRITE = ("get", "patch", "update")
# subresource → (group, version, kind of its objects), None where it is the parent's own
_SUBRESOURCE_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "eviction": ("policy", "v1", "Eviction"),
    "binding": ("", "v1", "Binding"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}
_SUBRESOURCE_VERBS = {
    "binding": ("create",),
    "eviction": ("create",),
    "finalize": ("update",),
    "log": ("get",),
    "token": ("create",),
}


def discovery_response(registry: Registry, path: str, accept: str) -> Response | None:
    """Answer a GET of a discovery path; None if ``path`` is none, or names what is not served.

    Raises:
        StatusError: 406, for a client that takes no JSON.
    """
    parts = path.strip("/").split("/")
    if parts[0] not in ("api", "apis"):
        return None
    wanted = _wanted_form(accept)
    if len(parts) == 1 and wanted:
        return _aggregated(registry, parts[0], wanted)
    document = _legacy(registry, parts)
    return None if document is None else _json(document, "application/json")


def _wanted_form(accept: str) -> str:
    """Return the aggregated version a client wants first, or nothing for the old form."""
    for clause in accept.split(",") if accept else ("*/*",):
        media_type, *parameters = (part.strip() for part in clause.split(";"))
        if media_type not in _JSON_TYPES:
            continue
        named = dict(p.partition("=")[::2] for p in parameters)
        if "as" not in named:
            return ""
        is_ours = named.get("g") == _AGGREGATED_GROUP and named["as"] == "APIGroupDiscoveryList"
        if is_ours and named.get("v") in _AGGREGATED_VERSIONS:
            return named["v"]
    raise not_acceptable()


def _json(document: JSONObject, content_type: str) -> Response:
    return Response(200, {"content-type": content_type, "vary": "Accept"}, orjson.dumps(document))


# The old form --------------------------------------------------------------------------------


def _legacy(registry: Registry, parts: list[str]) -> JSONObject | None:
    match parts:
        case ["api"]:
            return _core_versions(registry)
        case ["apis"]:
            groups = [_group(registry, group) for group in registry.groups() if group]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", group] if group in registry.groups():
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(registry, group)}
        case ["api", version]:
            return _resource_list(registry, "", version)
        case ["apis", group, version] if group:
            return _resource_list(registry, group, version)
        case _:
            return None


def _core_versions(registry: Registry) -> JSONObject:
    return {
        "kind": "APIVersions",
        "apiVersion": "v1",
        "versions": list(registry.versions("")),
        "serverAddressByClientCIDRs": [],
    }


def _group(registry: Registry, group: str) -> JSONObject:
    versions = [{"groupVersion": f"{group}/{v}", "version": v} for v in registry.versions(group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _resource_list(registry: Registry, group: str, version: str) -> JSONObject | None:
    found = registry.resources(group, version)
    if not found:
        return None
    resources: list[JSONObject] = []
    for info in found:
        resources.append(_resource(info))
        resources += (_subresource(info, name) for name in sorted(info.subresources))
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": found[0].api_version,
        "resources": resources,
    }


def _resource(info: ResourceInfo) -> JSONObject:
    return {
        "name": info.plural,
        "singularName": info.singular,
        "namespaced": info.namespaced,
        "kind": info.kind,
        "verbs": list(info.verbs),
        **_names(info),
    }


def _names(info: ResourceInfo) -> JSONObject:
    names = {"shortNames": list(info.short_names), "categories": list(info.categories)}
    return {key: value for key, value in names.items() if value}


def _subresource(info: ResourceInfo, name: str) -> JSONObject:
    resource: JSONObject = {
        "name": f"{info.plural}/{name}",
        "singularName": "",
        "namespaced": info.namespaced,
        "kind": info.kind,
        "verbs": list(_SUBRESOURCE_VERBS.get(name, _READ_WRITE)),
    }
    if name in _SUBRESOURCE_KINDS:
        group, version, kind = _SUBRESOURCE_KINDS[name]
        resource |= {"group": group, "version": version, "kind": kind}
    return resource


# The aggregated form -------------------------------------------------------------------------


def _aggregated(registry: Registry, root: str, version: str) -> Response:
    groups = [group for group in registry.groups() if bool(group) == (root == "apis")]
    document: JSONObject = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{_AGGREGATED_GROUP}/{version}",
        "metadata": {},
        "items": [_group_discovery(registry, group) for group in groups],
    }
    content_type = f"application/json;g={_AGGREGATED_GROUP};v={version};as=APIGroupDiscoveryList"
    return _json(document, content_type)


def _group_discovery(registry: Registry, group: str) -> JSONObject:
    return {
        "metadata": {"name": group, "creationTimestamp": None},
        "versions": [
            {
                "version": version,
                "resources": _discoveries(registry.resources(group, version)),
                "freshness": "Current",
            }
            for version in registry.versions(group)
        ],
    }


def _discoveries(found: Iterable[ResourceInfo]) -> list[JSONObject]:
    return [_discovery(info) for info in found]


def _discovery(info: ResourceInfo) -> JSONObject:
    discovery: JSONObject = {
        "resource": info.plural,
        "responseKind": _kind(info.group, info.version, info.kind),
        "scope": "Namespaced" if info.namespaced else "Cluster",
        "singularResource": info.singular,
        "verbs": list(info.verbs),
        **_names(info),
    }
    if info.subresources:
        names = sorted(info.subresources)
        discovery["subresources"] = [_subresource_discovery(info, name) for name in names]
    return discovery


def _subresource_discovery(info: ResourceInfo, name: str) -> JSONObject:
    own = (info.group, info.version, info.kind)
    return {
        "subresource": name,
        "responseKind": _kind(*_SUBRESOURCE_KINDS.get(name, own)),
        "verbs": list(_SUBRESOURCE_VERBS.get(name, _READ_WRITE)),
    }


def _kind(group: str, version: str, kind: str) -> JSONObject:
    return {"group": group, "version": version, "kind": kind}
