"""The OpenAPI documents, and which of them a path names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import orjson

from mcm.api.meta import JSONObject
from mcm.client.transport import Response
from mcm.sandbox.apiserver.errors import not_acceptable
from mcm.sandbox.apiserver.openapi.operations import paths_of
from mcm.sandbox.apiserver.openapi.schemas import component_name, component_of, shared_components
from mcm.sandbox.apiserver.registry import Registry, ResourceInfo

_INFO: JSONObject = {"title": "Kubernetes", "version": "sandbox"}
_JSON_TYPES = ("application/json", "application/*", "*/*")
_IMMUTABLE = "public, immutable, max-age=31536000"
# Clients ask for the second and, up to 1.28, choke on anything but the first in the answer.
_PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_PROTOBUF_V2_TYPES = (_PROTOBUF_V2, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")


def openapi_response(
    registry: Registry, path: str, accept: str, query: Mapping[str, str]
) -> Response | None:
    """Answer a GET under ``/openapi``; None if nothing is there.

    A document fetched by the hash that the index gives may be cached for ever.

    Version 2 in protobuf is a document that names no kind: clients that insist on it only need to
    learn that it cannot tell them anything.

    Raises:
        StatusError: 406, for a client that takes neither.
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
    if not _accepts(accept, _JSON_TYPES):
        if path.startswith("/openapi/v2") and _accepts(accept, _PROTOBUF_V2_TYPES):
            return Response(200, {"content-type": _PROTOBUF_V2, "vary": "Accept"}, _BARE_V2)
        raise not_acceptable()
    headers = {"content-type": "application/json", "vary": "Accept"}
    if query.get("hash"):
        headers["cache-control"] = _IMMUTABLE
    return Response(200, headers, orjson.dumps(document))


def _accepts(accept: str, media_types: Iterable[str]) -> bool:
    clauses = {clause.partition(";")[0].strip() for clause in (accept or "*/*").split(",")}
    return any(media_type in clauses for media_type in media_types)


def _counted(number: int, content: bytes) -> bytes:
    """A length-delimited protobuf field of less than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


_BARE_V2 = (
    _counted(1, b"2.0")
    + _counted(2, _counted(1, b"Kubernetes") + _counted(2, b"sandbox"))
    + _counted(8, b"")
)
"""A version 2 document that names no kind: swagger, info (title, version) and empty paths."""


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
