"""The OpenAPI documents, and which of them a path names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import orjson

from mcm.api.meta import JSONObject
from mcm.client.transport import Response
from mcm.sandbox.apiserver.errors import not_acceptable
from mcm.sandbox.openapi.operations import paths_of
from mcm.sandbox.openapi.schemas import component_name, component_of, shared_components
from mcm.sandbox.registry import Registry, ResourceInfo

_INFO: JSONObject = {"title": "Kubernetes", "version": "sandbox"}
_JSON_TYPES = ("application/json", "application/*", "*/*")
_IMMUTABLE = "public, immutable, max-age=31536000"


def openapi_response(
    registry: Registry, path: str, accept: str, query: Mapping[str, str]
) -> Response | None:
    """Answer a GET under ``/openapi``; None if nothing is there.

    A document fetched by the hash that the index gives may be cached for ever.

    Raises:
        StatusError: 406, for a client that takes no JSON.
    """
    match path.strip("/").split("/"):
        case ["openapi", "v2"]:
            document: JSONObject | None = _version_2(registry)
        case ["openapi", "v3"]:
            document = _index(registry)
        case ["openapi", "v3", "api", version]:
            document = _version_3(registry.resources("", version))
        case ["openapi", "v3", "apis", group, version]:
            document = _version_3(registry.resources(group, version))
        case _:
            return None
    if document is None:
        return None
    _require_json(accept)
    headers = {"content-type": "application/json", "vary": "Accept"}
    if query.get("hash"):
        headers["cache-control"] = _IMMUTABLE
    return Response(200, headers, orjson.dumps(document))


def _require_json(accept: str) -> None:
    clauses = (clause.partition(";")[0].strip() for clause in accept.split(","))
    if accept and not any(clause in _JSON_TYPES for clause in clauses):
        raise not_acceptable()


def _index(registry: Registry) -> JSONObject:
    paths: JSONObject = {}
    for group in registry.groups():
        for version in registry.versions(group):
            key = f"apis/{group}/{version}" if group else f"api/{version}"
            digest = _digest(registry.resources(group, version))
            paths[key] = {"serverRelativeURL": f"/openapi/v3/{key}?hash={digest}"}
    return {"paths": paths}


def _digest(resources: Iterable[ResourceInfo]) -> str:
    """Sum up what a document is made of, so that its address changes with it."""
    digest = hashlib.sha256()
    for info in resources:
        parts = (info.plural, info.kind, info.namespaced, info.verbs, sorted(info.subresources))
        digest.update(repr(parts).encode())
        digest.update(orjson.dumps(component_of(info)))
    return digest.hexdigest()[:32].upper()


def _version_3(resources: Iterable[ResourceInfo]) -> JSONObject | None:
    found = tuple(resources)
    if not found:
        return None
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": paths_of(found),
        "components": {
            "schemas": {
                **shared_components(),
                **{component_name(i): component_of(i) for i in found},
            }
        },
    }


def _version_2(registry: Registry) -> JSONObject:
    """All kinds at once, without operations: nobody who can use version 3 asks for those."""
    prefix = "#/definitions/"
    return {
        "swagger": "2.0",
        "info": _INFO,
        "paths": {},
        "definitions": {
            **shared_components(),
            **{component_name(i): component_of(i, prefix) for i in registry},
        },
    }
