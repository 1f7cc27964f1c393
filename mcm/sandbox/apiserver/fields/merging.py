"""The merge of server-side apply: an applied configuration over a live object."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import final

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.fields.equality import same_json
from mcm.sandbox.apiserver.fields.sets import (
    FieldError,
    FieldSet,
    Path,
    list_element,
    with_named_fields,
)
from mcm.sandbox.apiserver.fields.types import FieldType, ListType


def merge(live: JSONObject, applied: JSONObject, kind: FieldType) -> JSONObject:
    """Return ``live`` with every field that ``applied`` names set to its value.

    Raises:
        FieldError: a list in ``applied`` names an element twice, or one without its keys.
    """
    return _merged_object(live, applied, kind)


def _merged_object(live: JSONObject, applied: JSONObject, kind: FieldType) -> JSONObject:
    result = dict(live)
    for key, value in applied.items():
        result[key] = _merged(live.get(key), value, kind.child(key))
    return live if same_json(result, live) else result


def _merged(live: object, applied: object, kind: FieldType) -> object:
    if isinstance(applied, dict) and not kind.is_atomic_object:
        return _merged_object(live if isinstance(live, dict) else {}, applied, kind)
    if isinstance(applied, list) and kind.list_type is not ListType.ATOMIC:
        return _merged_list(live if isinstance(live, list) else [], applied, kind)
    return live if same_json(live, applied) else applied


def _merged_list(live: list[object], applied: list[object], kind: FieldType) -> list[object]:
    """Merge by key. Applied elements come in their order; each live one that is not applied comes
    before the applied ones that it preceded."""
    wanted = _by_element(applied, kind)
    current = [(_name_or_none(item, kind), item) for item in live]
    existing = {name: item for name, item in current if name is not None}
    shared = deque(name for name in wanted if name in existing)
    pending = deque(wanted)
    result: list[object] = []

    def take(name: str) -> None:
        result.append(_merged(existing.get(name), wanted[name], kind.element))

    for name, item in current:
        if name not in wanted:
            result.append(item)
        elif shared and name == shared[0]:
            shared.popleft()
            while (following := pending.popleft()) != name:
                take(following)
            take(following)
    for name in pending:
        take(name)
    return result


def _by_element(items: list[object], kind: FieldType) -> dict[str, object]:
    found: dict[str, object] = {}
    for item in items:
        name = list_element(item, kind)
        if name in found:
            raise FieldError(f"duplicate entries for key {name[2:]}")
        found[name] = item
    return found


def _name_or_none(item: object, kind: FieldType) -> str | None:
    try:
        return list_element(item, kind)
    except FieldError:
        return None


def surrendered(last: FieldSet, owned: FieldSet, root: FieldType) -> FieldSet:
    """Return the paths to remove: those of a manager's ``last`` configuration that nobody owns now
    (``owned``: everybody's sets, the manager's new one included)."""
    return with_named_fields(last, root) - with_named_fields(owned, root)


@final
@dataclass(frozen=True, slots=True)
class Removal:
    """Which paths go, and which stay even if nothing is left below them."""

    gone: FieldSet
    kept: FieldSet

    def apply(self, value: JSONObject, kind: FieldType) -> JSONObject:
        """Return ``value`` without the paths that go and all that is below them."""
        if not self.gone:
            return value
        return self._object(value, kind, ())

    def _value(self, value: object, kind: FieldType, path: Path) -> object:
        if not any(p[: len(path)] == path for p in self.gone):
            return value
        if isinstance(value, dict) and not kind.is_atomic_object:
            return self._object(value, kind, path)
        if isinstance(value, list) and kind.list_type is not ListType.ATOMIC:
            return self._list(value, kind, path)
        return value

    def _object(self, value: JSONObject, kind: FieldType, path: Path) -> JSONObject:
        result: JSONObject = {}
        for key, member in value.items():
            below = (*path, f"f:{key}")
            if below in self.gone:
                continue
            rest = self._value(member, kind.child(key), below)
            if rest or not member or below in self.kept:
                result[key] = rest
        return result

    def _list(self, value: list[object], kind: FieldType, path: Path) -> list[object]:
        elements = ((item, (*path, _name_or_none(item, kind) or "")) for item in value)
        return [self._value(v, kind.element, p) for v, p in elements if p not in self.gone]
