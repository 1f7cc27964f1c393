"""Sets of field paths: what an object consists of, and what a write changed.

A path is a tuple of elements written as in ``fieldsV1``: ``f:name`` a member of an object,
``k:{"name":"x"}`` an element of a list that is a map, ``v:"x"`` an element of a list that is a set.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import final

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.fields.equality import same_json
from mcm.sandbox.apiserver.fields.types import FieldType, ListType

Path = tuple[str, ...]
FieldSet = frozenset[Path]

EMPTY: FieldSet = frozenset()
_ABSENT = object()


class FieldError(Exception):
    """A value that does not fit its type's list keys, so that its parts have no names."""


# fieldsV1 ------------------------------------------------------------------------------------


def encode(paths: Iterable[Path]) -> JSONObject:
    """Write a set as ``fieldsV1``: nested objects, ``.`` where a path with children is a member."""
    root: JSONObject = {}
    for path in sorted(paths):
        node = root
        for element in path:
            child = node.setdefault(element, {})
            assert isinstance(child, dict)  # made here
            node = child
        node["."] = {}
    return _leaves_closed(root)


def _leaves_closed(node: JSONObject) -> JSONObject:
    if node.keys() == {"."}:
        return {}
    return {k: _leaves_closed(v) for k, v in node.items() if isinstance(v, dict)}


def decode(fields: object) -> FieldSet:
    """Read ``fieldsV1``; what is no object counts as nothing."""
    return frozenset(_decoded(fields, ())) if isinstance(fields, dict) else EMPTY


def _decoded(node: Mapping[str, object], path: Path) -> Iterator[Path]:
    for element, child in node.items():
        if element == ".":
            yield path
        elif isinstance(child, dict) and child:
            yield from _decoded(child, (*path, element))
        else:
            yield (*path, element)


def display(path: Path) -> str:
    """Write a path for people: ``.spec.containers[name="x"].image``."""
    return "".join(map(_displayed, path))


def _displayed(element: str) -> str:
    kind, _, text = element.partition(":")
    if kind == "k":
        keys = ",".join(f"{k}={json.dumps(v)}" for k, v in json.loads(text).items())
        return f"[{keys}]"
    if kind == "v":
        return f"[={text}]"
    return f".{text}"


# The paths of an object ----------------------------------------------------------------------


def list_element(item: object, kind: FieldType) -> str:
    """Return the path element of one item of a set or map list.

    Raises:
        FieldError: the item lacks a key (without a default), or is of the wrong form.
    """
    if kind.list_type is ListType.SET:
        return f"v:{_compact(item)}"
    if not isinstance(item, dict):
        raise FieldError("an element of a list with keys must be an object")
    keys: dict[str, object] = {}
    for name in sorted(kind.list_keys):
        value = item.get(name, kind.element.child(name).default)
        if value is None:
            raise FieldError(f"a list element omits its key field {name!r}")
        keys[name] = value
    return f"k:{_compact(keys)}"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def paths_of(value: object, kind: FieldType) -> FieldSet:
    """Return what somebody who sends ``value`` claims: leaves, list elements and map entries."""
    return frozenset(_claimed(value, kind, ()))


def _claimed(value: object, kind: FieldType, path: Path) -> Iterator[Path]:
    if isinstance(value, dict) and not kind.is_atomic_object:
        for key, child in value.items():
            below = (*path, f"f:{key}")
            yield from _claimed(child, kind.child(key), below)
            if child is None or child == {} or not kind.names(key):
                yield below
    elif value and isinstance(value, list) and kind.list_type is not ListType.ATOMIC:
        for item in value:
            below = (*path, list_element(item, kind))
            if isinstance(item, dict):
                yield from _claimed(item, kind.element, below)
            yield below
    elif path:
        yield path


def with_named_fields(paths: Iterable[Path], root: FieldType) -> FieldSet:
    """Add to a set every field of a type (not: entry of a map, or element) that leads to it."""
    found = set(paths)
    for path in tuple(found):
        kind = root
        for depth, element in enumerate(path[:-1], start=1):
            mark, _, name = element.partition(":")
            if mark == "f":
                if kind.names(name):
                    found.add(path[:depth])
                kind = kind.child(name)
            else:
                kind = kind.element
    return frozenset(found)


# Comparison ----------------------------------------------------------------------------------


@final
@dataclass(slots=True)
class Comparison:
    """Which paths a write added, changed and removed."""

    added: set[Path] = field(default_factory=set)
    modified: set[Path] = field(default_factory=set)
    removed: set[Path] = field(default_factory=set)

    @property
    def written(self) -> FieldSet:
        return frozenset(self.added | self.modified)


def compare(old: object, new: object, kind: FieldType) -> Comparison:
    """Compare two objects; subtrees that are the same object are not looked at."""
    found = Comparison()
    _compare(old, new, kind, (), found)
    return found


def _compare(old: object, new: object, kind: FieldType, path: Path, found: Comparison) -> None:
    if old is new:
        return
    if not path:
        _compare_parts(old, new, kind, path, found)
    elif old is _ABSENT:
        _compare_parts(old, new, kind, path, found)
        found.added.add(path)
    elif new is _ABSENT:
        _compare_parts(old, new, kind, path, found)
        found.removed.add(path)
    elif type(old) is not type(new) and not same_json(old, new):
        # What was below is gone, what is below is new, and the value itself is another one.
        _compare_parts(old, _ABSENT, kind, path, found)
        _compare_parts(_ABSENT, new, kind, path, found)
        found.modified.add(path)
    elif not _compare_parts(old, new, kind, path, found) and not same_json(old, new):
        found.modified.add(path)


def _compare_parts(
    old: object, new: object, kind: FieldType, path: Path, found: Comparison
) -> bool:
    """Compare two values of one form member by member; return whether they have members."""
    sample = old if new is _ABSENT else new
    if isinstance(sample, dict) and not kind.is_atomic_object:
        before, after = _members(old), _members(new)
        types = {key: kind.child(key[2:]) for key in before | after}
    elif isinstance(sample, list) and kind.list_type is not ListType.ATOMIC:
        before, after = _elements(old, kind), _elements(new, kind)
        types = dict.fromkeys(before | after, kind.element)
    else:
        return False
    for element, child_type in types.items():
        left, right = before.get(element, _ABSENT), after.get(element, _ABSENT)
        _compare(left, right, child_type, (*path, element), found)
    return bool(types)


def _members(value: object) -> dict[str, object]:
    return {f"f:{k}": v for k, v in value.items()} if isinstance(value, dict) else {}


def _elements(value: object, kind: FieldType) -> dict[str, object]:
    if not isinstance(value, list):
        return {}
    try:
        return {list_element(item, kind): item for item in value}
    except FieldError:
        return {}
