"""Whether a CustomResourceDefinition is accepted, which status it gets, and what it serves.

One is established at once. Deleting a definition gives it a cleanup finalizer: its objects are
deleted first (their own finalizers count), and it is gone when the last of them is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import cast

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.errors import StatusCause, bad_request, invalid, required, wrong_value
from mcm.sandbox.apiserver.registry import (
    STANDARD_VERBS,
    PrinterColumn,
    Registry,
    ResourceInfo,
    ScalePaths,
)
from mcm.sandbox.apiserver.requests.calls import ServerState
from mcm.sandbox.apiserver.store import Stored

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"

_WITHOUT_CREATE = tuple(verb for verb in STANDARD_VERBS if verb != "create")


def _object(value: object) -> JSONObject:
    return cast(JSONObject, value) if isinstance(value, dict) else {}


def _objects(value: object) -> list[JSONObject]:
    return [_object(item) for item in value] if isinstance(value, list) else []


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def prepare_definition(
    state: ServerState, info: ResourceInfo, obj: JSONObject, live: Stored | None
) -> None:
    """Default names, check the definition, and accept it. Raises StatusError (400, 422)."""
    if not isinstance(obj.get("spec") or {}, dict):
        raise bad_request("spec must be an object")
    spec = obj["spec"] = dict(_object(obj.get("spec")))
    names = spec["names"] = dict(_object(spec.get("names")))
    kind = str(names.get("kind", ""))
    names.setdefault("singular", kind.lower())
    names.setdefault("listKind", f"{kind}List")
    spec.setdefault("conversion", {"strategy": "None"})
    meta = cast(JSONObject, obj["metadata"])
    causes = [*_causes(str(meta["name"]), spec), *_immutable_causes(spec, live)]
    if causes:
        raise invalid(info, str(meta["name"]), causes)
    obj["status"] = _status(state, spec, live)


def _causes(name: str, spec: JSONObject) -> Iterator[StatusCause]:
    names, group = _object(spec["names"]), str(spec.get("group", ""))
    for field in ("kind", "plural"):
        if not names.get(field):
            yield required(f"spec.names.{field}")
    if not group:
        yield required("spec.group")
    if name != f"{names.get('plural')}.{group}":
        yield wrong_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    if not spec.get("scope"):
        yield required("spec.scope")
    elif spec["scope"] not in ("Namespaced", "Cluster"):
        yield wrong_value("spec.scope", spec.get("scope"), "must be Cluster or Namespaced")
    versions = _objects(spec.get("versions"))
    if sum(v.get("storage") is True for v in versions) != 1:
        yield wrong_value(
            "spec.versions", len(versions), "must have exactly one version marked as storage"
        )
    for index, version in enumerate(versions):
        if not _schema_of(version):
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")


def _immutable_causes(spec: JSONObject, live: Stored | None) -> Iterator[StatusCause]:
    if live is None:
        return
    before = _object(live.body["spec"])
    for field in ("group", "scope"):
        if spec.get(field) != before.get(field):
            yield wrong_value(f"spec.{field}", spec.get(field), "field is immutable")
    plural = _object(spec["names"]).get("plural")
    if plural != _object(before["names"]).get("plural"):
        yield wrong_value("spec.names.plural", plural, "field is immutable")


def _status(state: ServerState, spec: JSONObject, live: Stored | None) -> JSONObject:
    before = _object(live.body.get("status")) if live is not None else {}
    stored = [
        str(v.get("name")) for v in _objects(spec.get("versions")) if v.get("storage") is True
    ]
    known = [v for v in _texts(before.get("storedVersions")) if v not in stored]
    conditions = before.get("conditions") or [
        _condition(state, "NamesAccepted", "NoConflicts", "no conflicts found"),
        _condition(
            state, "Established", "InitialNamesAccepted", "the initial names have been accepted"
        ),
    ]
    return {
        "conditions": conditions,
        "acceptedNames": spec["names"],
        "storedVersions": [*known, *stored],
    }


def _condition(state: ServerState, kind: str, reason: str, message: str) -> JSONObject:
    return {
        "type": kind,
        "status": "True",
        "lastTransitionTime": state.stamp(),
        "reason": reason,
        "message": message,
    }


def with_cleanup(finalizers: list[str]) -> list[str]:
    """Return a definition's finalizers with the one that its deletion adds."""
    return finalizers if CLEANUP_FINALIZER in finalizers else [*finalizers, CLEANUP_FINALIZER]


def terminating_status(state: ServerState, status: JSONObject) -> JSONObject:
    """Return a definition's status with the Terminating condition, as its deletion sets it."""
    conditions = _objects(status.get("conditions"))
    if any(c.get("type") == "Terminating" for c in conditions):
        return status
    added = _condition(
        state, "Terminating", "InstanceDeletionInProgress", "CustomResource deletion is in progress"
    )
    return {**status, "conditions": [*conditions, added]}


# Serving ----------------------------------------------------------------------------------------


def serve(registry: Registry, definition: JSONObject) -> None:
    """Register every served version of a definition, and drop those no longer served. One that is
    being deleted takes no new objects."""
    infos = resources_of(definition)
    withdraw(registry, definition)
    if "deletionTimestamp" in _object(definition["metadata"]):
        infos = [replace(info, verbs=_WITHOUT_CREATE) for info in infos]
    for info in infos:
        registry.add(info)


def withdraw(registry: Registry, definition: JSONObject) -> None:
    """Stop serving a definition's resource."""
    spec = _object(definition["spec"])
    registry.remove(str(spec["group"]), str(_object(spec["names"])["plural"]))


def resources_of(definition: JSONObject) -> list[ResourceInfo]:
    """Return what a definition serves, one entry a version."""
    spec = _object(definition["spec"])
    versions = _objects(spec.get("versions"))
    storage = next(str(v["name"]) for v in versions if v.get("storage") is True)
    return [_resource(spec, v, storage) for v in versions if v.get("served") is True]


def _resource(spec: JSONObject, version: JSONObject, storage: str) -> ResourceInfo:
    names = _object(spec["names"])
    subresources = _object(version.get("subresources"))
    scale = _object(subresources.get("scale"))
    return ResourceInfo(
        str(spec["group"]),
        str(version["name"]),
        str(names["plural"]),
        str(names["kind"]),
        singular=str(names["singular"]),
        list_kind=str(names["listKind"]),
        namespaced=spec["scope"] == "Namespaced",
        short_names=_texts(names.get("shortNames")),
        categories=_texts(names.get("categories")),
        subresources=frozenset(subresources) & {"status", "scale"},
        printer_columns=tuple(map(_column, _objects(version.get("additionalPrinterColumns")))),
        schema=_schema_of(version),
        scale=_scale_paths(scale) if scale else None,
        field_selectors=MappingProxyType(_selectable(version)),
        initial_status=None,
        storage_version=storage,
    )


def _schema_of(version: JSONObject) -> JSONObject:
    return _object(_object(version.get("schema")).get("openAPIV3Schema"))


def _column(column: JSONObject) -> PrinterColumn:
    return PrinterColumn(
        str(column.get("name", "")),
        str(column.get("type", "string")),
        str(column.get("jsonPath", "")),
        priority=int(cast(int, column.get("priority") or 0)),
        format=str(column.get("format", "")),
        description=str(column.get("description", "")),
    )


def _scale_paths(scale: JSONObject) -> ScalePaths:
    return ScalePaths(
        str(scale.get("specReplicasPath", "")),
        str(scale.get("statusReplicasPath", "")),
        str(scale.get("labelSelectorPath", "")),
    )


def _selectable(version: JSONObject) -> dict[str, str]:
    paths = (
        str(f.get("jsonPath", "")).lstrip(".") for f in _objects(version.get("selectableFields"))
    )
    return {path: path for path in paths if path}
