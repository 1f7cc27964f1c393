"""Every field has a rule, or is said to have none, and whatever stands in it is told by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from mcm.api.codec import DecodeError, decode_object, read_object
from mcm.api.machine import (
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    MachineSpec,
)
from mcm.api.meta import JSONObject, LabelSelector, Resource
from mcm.api.nulls import is_opaque
from mcm.api.validation import Examined, describe, errors_among, examine
from mcm.sandbox.apiserver.patches import apply_merge_patch
from tests.unit.api.test_validation_warnings import CLASS, MACHINE, POOL, SET

PAGE = Path(__file__).parents[3] / "docs" / "validation.md"
BODIES: dict[Resource[Examined], JSONObject] = {
    MACHINES: MACHINE,
    MACHINE_CLASSES: CLASS,
    MACHINE_SETS: SET,
    MACHINE_DEPLOYMENTS: POOL,
}
_AS_A_WHOLE = (LabelSelector,)
_NOT_OURS = ("metadata", "status")


def fields_of(kind: type, path: str = "") -> Iterator[str]:
    """Yield the path of each field that users write, as deep as our types go."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        if not path and field.encode_name in _NOT_OURS:
            continue
        below = f"{path}.{field.encode_name}".removeprefix(".")
        inner = _struct_in(field.type)
        if inner is None or inner in _AS_A_WHOLE or below == "spec.machineClass":
            yield below
            if inner in _AS_A_WHOLE:
                yield from fields_of(inner, below)
        else:
            yield from fields_of(inner, below)


def _struct_in(kind: inspect.Type) -> type | None:
    options = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    found = [option.cls for option in options if isinstance(option, inspect.StructType)]
    return found[0] if found and not is_opaque(kind) else None


def test_the_page_has_a_rule_for_every_field() -> None:
    documented = set(re.findall(r"^\| `([^`]+)` \|", PAGE.read_text(), flags=re.MULTILINE))
    fields = {path for resource in BODIES for path in fields_of(resource.type)}
    fields |= {f"spec.{path}" for path in fields_of(MachineSpec)}
    assert fields == documented


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "5%", "101%", "-1", "1h", "pool", "small", "True", "MachineClass"])
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
_paths = st.sampled_from(
    [(resource, path) for resource in BODIES for path in fields_of(resource.type)]
    + [
        (resource, f"spec.template.{path}")
        for resource in (MACHINE_SETS, MACHINE_DEPLOYMENTS)
        for path in (
            "metadata.labels",
            "metadata.annotations",
            "metadata.finalizers",
            *(f"spec.{inner}" for inner in fields_of(MachineSpec)),
        )
    ]
    + [(resource, f"metadata.{name}") for resource in BODIES for name in ("labels", "annotations")]
)


def put(body: JSONObject, path: str, value: object) -> JSONObject:
    head, _, rest = path.partition(".")
    inner = body.get(head)
    below = put(inner if isinstance(inner, dict) else {}, rest, value) if rest else value
    return {**body, head: below}


def read(resource: Resource[Examined], body: JSONObject) -> Examined | None:
    raw = msgspec.json.encode(body)
    try:
        return decode_object(resource, raw)
    except DecodeError:
        try:
            return read_object(resource, raw)
        except DecodeError:
            return None


_BY_SIBLINGS = (
    ("spec.template.metadata", "spec.selector"),
    ("spec.selector", "spec.template.metadata"),
    ("spec.template", "spec.selector"),
    ("spec.strategy", "spec.strategy"),
    ("spec.replicas", "spec.strategy"),
    ("spec.progressDeadlineSeconds", "spec.minReadySeconds"),
    ("spec.minReadySeconds", "spec.progressDeadlineSeconds"),
    ("spec.class", "spec.class"),
    ("spec.template.spec.class", "spec.template.spec.class"),
    ("nodeTemplate", "nodeTemplate"),
)
"""Whose value decides, and what may be complained of then."""


def is_told_of(field: str, path: str) -> bool:
    """Tell whether a finding at ``field`` may come of what stands at ``path``."""
    if field.startswith(path) or path.startswith(field):
        return True
    return any(path.startswith(a) and field.startswith(b) for a, b in _BY_SIBLINGS)


@given(where=_paths, value=_json)
def test_whatever_stands_in_a_field_only_that_field_is_complained_of(
    where: tuple[Resource[Examined], str], value: object
) -> None:
    resource, path = where
    obj = read(resource, put(BODIES[resource], path, value))
    if obj is None:
        return
    found = examine(obj)
    assert len(describe(found)) < 100_000
    for each in found:
        assert each.detail
        assert is_told_of(each.field, path), (each, path)


@given(resource=st.sampled_from(sorted(BODIES, key=lambda r: r.kind)), data=st.data())
def test_objects_of_garbage_never_make_it_raise(
    resource: Resource[Examined], data: st.DataObject
) -> None:
    paths = sorted(fields_of(resource.type))
    body = BODIES[resource]
    for path in data.draw(st.lists(st.sampled_from(paths), max_size=6)):
        body = put(body, path, data.draw(_json))
    obj = read(resource, body)
    if obj is not None:
        assert all(str(found) for found in examine(obj))


@pytest.mark.parametrize("resource", BODIES, ids=lambda r: r.kind)
def test_every_fault_of_form_names_its_path(resource: Resource[Examined]) -> None:
    for path in fields_of(resource.type):
        obj = read(resource, put(BODIES[resource], path, [["x"]]))
        assert obj is not None
        said = [error.field for error in errors_among(examine(obj))]
        anything = path.startswith("providerSpec") or path == "spec.class"
        assert anything or any(f.startswith(path) or path.startswith(f) for f in said), (path, said)


def test_what_is_put_is_there() -> None:
    assert put({"a": {"b": 1, "c": 2}}, "a.b", 3) == {"a": {"b": 3, "c": 2}}
    assert apply_merge_patch(POOL, {}) == POOL and orjson.dumps(POOL)
