"""What an API server would do to objects by our schemas: refuse or prune none that is good.

Beside the tests stands as much of the server's validation and pruning as structural schemas need.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import msgspec
import orjson
import pytest
from msgspec import inspect

from mcm.api import codec
from mcm.api.crds import root_schema
from mcm.api.machine import (
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineClass,
    MachineDeployment,
    MachineSet,
)
from mcm.api.meta import JSONObject, KubeObject, Resource
from mcm.api.timestamps import parse_rfc3339

TYPES: dict[str, type[msgspec.Struct]] = {
    "Machine": Machine,
    "MachineClass": MachineClass,
    "MachineDeployment": MachineDeployment,
    "MachineSet": MachineSet,
}
_LIMITS = {"int32": 2**31, "int64": 2**63}
_BASE = {"apiVersion": "machine.sapcloud.io/v1alpha1", "metadata": {"name": "x"}}

Schema = Mapping[str, object]


def _inner(schema: Schema, key: str) -> Schema:
    inner = schema.get(key, {})
    assert isinstance(inner, dict)
    return inner


def _faults(value: object, schema: Schema, path: str = "") -> Iterator[str]:
    """Validate, as an API server does before it stores an object."""
    if value is None:
        if not schema.get("nullable"):
            yield f"{path}: null"
    elif schema.get("x-kubernetes-int-or-string"):
        yield from _scalar_faults(value, {**schema, "type": type(value).__name__}, path)
    elif isinstance(value, dict) and schema["type"] == "object":
        yield from _object_faults(value, schema, path)
    elif isinstance(value, list) and schema["type"] == "array":
        for index, item in enumerate(value):
            yield from _faults(item, _inner(schema, "items"), f"{path}[{index}]")
    else:
        yield from _scalar_faults(value, schema, path)


def _object_faults(value: JSONObject, schema: Schema, path: str) -> Iterator[str]:
    required = schema.get("required", [])
    assert isinstance(required, list)
    yield from (f"{path}.{name}: missing" for name in required if name not in value)
    properties = _inner(schema, "properties")
    for name, item in value.items():
        inner = properties.get(name, schema.get("additionalProperties"))
        if isinstance(inner, dict):
            yield from _faults(item, inner, f"{path}.{name}")


def _scalar_faults(value: object, schema: Schema, path: str) -> Iterator[str]:
    names = {"str": "string", "int": "integer", "bool": "boolean"}
    kind = names.get(type(value).__name__, type(value).__name__)
    if kind != names.get(str(schema["type"]), schema["type"]):
        yield f"{path}: {kind}"
    elif isinstance(value, str):
        if not re.search(str(schema.get("pattern", "")), value):
            yield f"{path}: pattern"
        if schema.get("format") == "date-time":
            parse_rfc3339(value)
    elif isinstance(value, int) and abs(value) >= _LIMITS.get(str(schema.get("format")), 2**63):
        yield f"{path}: out of range"


def _pruned(value: object, schema: Schema) -> object:
    """Drop what the schema does not name, as an API server does."""
    if isinstance(value, list):
        return [_pruned(item, _inner(schema, "items")) for item in value]
    if not isinstance(value, dict):
        return value
    properties, rest = _inner(schema, "properties"), schema.get("additionalProperties")
    result: JSONObject = {}
    for name, item in value.items():
        inner = properties.get(name, rest)
        if isinstance(inner, dict):
            result[name] = _pruned(item, inner)
        elif schema.get("x-kubernetes-preserve-unknown-fields"):
            result[name] = item
    return result


def _stored(obj: JSONObject, schema: Schema) -> object:
    """Prune an object with its metadata, which the server handles apart."""
    pruned = _pruned(obj, schema)
    assert isinstance(pruned, dict)
    return {**pruned, "metadata": obj["metadata"]}


@pytest.mark.parametrize("resource", [MACHINES, MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINE_SETS])
def test_recorded_objects_are_valid_and_lose_nothing(
    recorded: Callable[[str], list[codec.WatchFrame]], resource: Resource[KubeObject]
) -> None:
    schema = root_schema(TYPES[resource.kind])
    frames = recorded(resource.plural)
    assert frames
    for frame in frames:
        obj = orjson.loads(bytes(frame.object))
        assert list(_faults(obj, schema)) == []
        assert _stored(obj, schema) == obj


def _sample(kind: inspect.Type) -> object:
    """A value of a type with all its fields set to something other than their defaults."""
    match kind:
        case inspect.StructType():
            return {f.encode_name: _sample(f.type) for f in kind.fields}
        case inspect.VarTupleType():
            return [_sample(kind.item_type)]
        case inspect.DictType():
            return {"cpu": _sample(kind.value_type)}
        case inspect.UnionType():
            return _sample(kind.types[0])
        case inspect.StrType() | inspect.IntType():
            return "7" if isinstance(kind, inspect.StrType) else 7
        case inspect.BoolType():
            return True
        case inspect.DateTimeType():
            return "2026-11-21T04:51:33Z"
        case _:
            return {"carried": [None, {"deeply": 1}]}


@pytest.mark.parametrize("kind", TYPES)
def test_no_field_that_a_type_declares_is_pruned(kind: str) -> None:
    full = _sample(inspect.type_info(TYPES[kind]))
    assert isinstance(full, dict)
    if kind in ("MachineSet", "MachineDeployment"):
        machine = _sample(inspect.type_info(Machine))
        assert isinstance(machine, dict)
        full["spec"]["template"]["spec"] = machine["spec"]
    schema = root_schema(TYPES[kind])
    assert list(_faults(full, schema)) == []
    assert _stored(full, schema) == full
    msgspec.convert(full, TYPES[kind])


@pytest.mark.parametrize(
    ("kind", "obj", "stored"),
    [
        ("Machine", {"spec": {"wrong": 1}}, {"spec": {}}),
        (
            "Machine",
            {"spec": {"nodeTemplate": {"metadata": {"new": {"a": None}}, "spec": {"new": 1}}}},
            {"spec": {"nodeTemplate": {"metadata": {"new": {"a": None}}, "spec": {}}}},
        ),
        (
            "MachineClass",
            {"providerSpec": {"a": {"b": [None]}}, "nodeTemplate": {"new": 1}, "other": 1},
            {"providerSpec": {"a": {"b": [None]}}, "nodeTemplate": {"new": 1}},
        ),
    ],
)
def test_unknown_fields_go_where_nobody_carries_them(
    kind: str, obj: JSONObject, stored: JSONObject
) -> None:
    assert _stored({**_BASE, **obj}, root_schema(TYPES[kind])) == {**_BASE, **stored}


_CAPACITY = {"cpu": 4, "gpu": "0", "memory": "1.5Gi"}
_NODE = {"instanceType": "s", "region": "r", "zone": "z"}


@pytest.mark.parametrize(
    ("kind", "obj", "faults"),
    [
        ("MachineClass", {"providerSpec": {}}, []),
        ("MachineClass", {}, [".providerSpec: missing"]),
        (
            "MachineClass",
            {"providerSpec": {}, "nodeTemplate": {**_NODE, "capacity": _CAPACITY}},
            [],
        ),
        (
            "MachineClass",
            {"providerSpec": {}, "nodeTemplate": {**_NODE, "capacity": {"cpu": "four"}}},
            [".nodeTemplate.capacity.cpu: pattern"],
        ),
        (
            "MachineClass",
            {"providerSpec": {}, "nodeTemplate": _NODE},
            [".nodeTemplate.capacity: missing"],
        ),
        ("MachineDeployment", {"spec": {"replicas": 3}}, [".spec.template: missing"]),
        (
            "MachineDeployment",
            {"spec": {"replicas": 2**31, "template": {}}},
            [".spec.replicas: out of range"],
        ),
        (
            "MachineDeployment",
            {
                "spec": {
                    "template": {},
                    "rollbackTo": None,
                    "strategy": {"type": "Anything", "rollingUpdate": {"maxSurge": "25%"}},
                },
                "status": {"failedMachines": None, "collisionCount": None},
            },
            [],
        ),
        ("Machine", {"spec": {"drainTimeout": 5}}, [".spec.drainTimeout: integer"]),
        (
            "Machine",
            {"status": {"conditions": [{"type": "Ready"}]}},
            [".status.conditions[0].status: missing"],
        ),
        (
            "Machine",
            {"status": {"currentStatus": {"lastUpdateTime": None, "preserveExpiryTime": None}}},
            [],
        ),
        (
            "MachineSet",
            {"status": {"failedMachines": None, "replicas": None}},
            [".status.replicas: null"],
        ),
    ],
)
def test_bad_objects_are_refused_and_good_ones_are_not(
    kind: str, obj: JSONObject, faults: list[str]
) -> None:
    assert list(_faults({**_BASE, **obj}, root_schema(TYPES[kind]))) == faults
