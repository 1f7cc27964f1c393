"""The schema of each kind as OpenAPI documents publish it."""

from __future__ import annotations

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.kinds import OBJECT_META, builtin_schema
from mcm.sandbox.apiserver.registry import ResourceInfo

_META_NAME = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
V3_PREFIX = "#/components/schemas/"

_API_VERSION: JSONObject = {
    "type": "string",
    "description": "The group and version of this representation of the object.",
}
_KIND: JSONObject = {
    "type": "string",
    "description": "What the object is; with apiVersion, how to read it.",
}


def component_name(info: ResourceInfo) -> str:
    """Name a kind's schema: its group's parts reversed, its version, the kind."""
    if info.builtin:
        family = info.group.partition(".")[0] or "core"
        return f"io.k8s.api.{family}.{info.version}.{info.kind}"
    reversed_group = ".".join(reversed(info.group.split(".")))
    return f"{reversed_group}.{info.version}.{info.kind}"


def component_of(info: ResourceInfo, prefix: str = V3_PREFIX) -> JSONObject:
    """Return a kind's schema with what all objects have, and the kinds it belongs to.

    ``prefix`` is where references point: schemas lie elsewhere in version 2.
    """
    own = info.schema if info.schema is not None else builtin_schema(info.group, info.kind) or {}
    properties = own.get("properties")
    return {
        "type": "object",
        **own,
        "properties": {
            **(properties if isinstance(properties, dict) else {}),
            "apiVersion": _API_VERSION,
            "kind": _KIND,
            "metadata": {
                "description": "Standard object metadata.",
                "allOf": [{"$ref": f"{prefix}{_META_NAME}"}],
            },
        },
        "x-kubernetes-group-version-kind": [
            {"group": info.group, "version": info.version, "kind": info.kind}
        ],
    }


def shared_components() -> JSONObject:
    """Return the schemas that others refer to."""
    return {_META_NAME: OBJECT_META}
