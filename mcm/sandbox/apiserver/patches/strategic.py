"""Strategic merge patches: a merge patch that knows which lists merge, and by which key.

The directives are those of Kubernetes' patch format: ``$patch`` (replace, merge, delete),
``$retainKeys``, ``$setElementOrder/<list>`` and ``$deleteFromPrimitiveList/<list>``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.fields.types import FieldType, root_type
from mcm.sandbox.apiserver.patches.errors import PatchError

_PATCH = "$patch"
_RETAIN_KEYS = "$retainKeys"
_ORDER_PREFIX = "$setElementOrder/"
_DELETE_PREFIX = "$deleteFromPrimitiveList/"

KeyOf = Callable[[object], object]
"""Tells list elements apart: the merge key's value, or the scalar itself."""


def apply_strategic_patch(document: JSONObject, patch: JSONObject, *, kind: str) -> JSONObject:
    """Return ``document`` with ``patch`` merged in by the rules of the built-in ``kind``.

    Raises:
        PatchError: code 400 for a directive that makes no sense, or a list element without its
            merge key.
    """
    group, _, _ = str(document.get("apiVersion", "")).rpartition("/")
    return _merge_object(document, patch, root_type(None, group=group, kind=kind))


def _merge_object(original: JSONObject, patch: JSONObject, kind: FieldType) -> JSONObject:
    if _PATCH in patch:
        return _directed(original, patch, kind)
    result = dict(original)
    _retain_keys(result, patch)
    deletions, orders, plain = _sorted_by_purpose(patch)
    for key, value in plain.items():
        _merge_member(result, key, value, kind)
    for key, scalars in deletions.items():
        current = result.get(key)
        if isinstance(current, list):
            result[key] = [item for item in current if item not in scalars]
    for key, order in orders.items():
        _reorder(result, key, order, original.get(key), kind.child(key))
    return result


def _directed(original: JSONObject, patch: JSONObject, kind: FieldType) -> JSONObject:
    directive = patch[_PATCH]
    rest = {k: v for k, v in patch.items() if k != _PATCH}
    if directive == "replace":
        return rest
    if directive == "delete":
        return {}
    if directive == "merge":
        return _merge_object(original, rest, kind)
    raise PatchError(f"unknown patch directive {directive!r}", 400)


def _sorted_by_purpose(
    patch: JSONObject,
) -> tuple[dict[str, list[object]], dict[str, list[object]], JSONObject]:
    """Split a patch into deletions of scalars, element orders and plain members, by field."""
    deletions: dict[str, list[object]] = {}
    orders: dict[str, list[object]] = {}
    plain: JSONObject = {}
    for key, value in patch.items():
        if key.startswith(_DELETE_PREFIX):
            deletions[key.removeprefix(_DELETE_PREFIX)] = _list_directive(key, value)
        elif key.startswith(_ORDER_PREFIX):
            orders[key.removeprefix(_ORDER_PREFIX)] = _list_directive(key, value)
        elif key != _RETAIN_KEYS:
            plain[key] = value
    return deletions, orders, plain


def _list_directive(key: str, value: object) -> list[object]:
    if not isinstance(value, list):
        raise PatchError(f"the directive {key} takes a list", 400)
    return value


def _retain_keys(result: JSONObject, patch: JSONObject) -> None:
    if _RETAIN_KEYS not in patch:
        return
    kept = _list_directive(_RETAIN_KEYS, patch[_RETAIN_KEYS])
    for key, value in patch.items():
        if value is not None and not key.startswith("$") and key not in kept:
            raise PatchError(f"{_RETAIN_KEYS} must name every member of the patch: {key!r}", 400)
    for key in [k for k in result if k not in kept]:
        del result[key]


def _merge_member(result: JSONObject, key: str, value: object, parent: FieldType) -> None:
    if value is None:
        result.pop(key, None)
        return
    current = result.get(key)
    kind = parent.child(key)
    if isinstance(current, dict) and isinstance(value, dict):
        replaces = "replace" in kind.patch_strategies
        result[key] = _plain(value) if replaces else _merge_object(current, value, kind)
    elif isinstance(current, list) and isinstance(value, list):
        merges = "merge" in kind.patch_strategies
        result[key] = _merge_list(current, value, kind) if merges else value
    else:
        result[key] = _plain(value)


def _plain(value: object) -> object:
    """Return a patch value that meets nothing: without directives, and objects without nulls."""
    if isinstance(value, dict):
        if value.get(_PATCH) == "delete":
            return {}
        return {k: _plain(v) for k, v in value.items() if v is not None and k[:1] != "$"}
    if isinstance(value, list):
        return [_plain(item) for item in value if not _is_directive(item)]
    return value


def _is_directive(item: object) -> bool:
    return isinstance(item, dict) and _PATCH in item


# Lists ---------------------------------------------------------------------------------------


def _merge_list(current: list[object], patch: list[object], kind: FieldType) -> list[object]:
    if not kind.patch_merge_key:
        merged = _distinct([*current, *patch])
        return _ordered(merged, patch, current, lambda item: item)
    key_of = _by_key(kind.patch_merge_key)
    directives = [item for item in patch if _is_directive(item)]
    elements = [item for item in patch if not _is_directive(item)]
    if any(_directive(item) == "replace" for item in directives):
        return [_plain(item) for item in elements]
    gone = [key_of(item) for item in directives if _directive(item) == "delete"]
    kept = [item for item in current if _key(item, kind.patch_merge_key) not in gone]
    merged = _merge_elements(kept, elements, kind, key_of)
    return _ordered(merged, elements, kept, key_of)


def _directive(item: object) -> object:
    directive = item.get(_PATCH) if isinstance(item, dict) else None
    if directive not in ("replace", "delete"):
        raise PatchError(f"unknown patch directive {directive!r} in a list", 400)
    return directive


def _merge_elements(
    kept: list[object], elements: list[object], kind: FieldType, key_of: KeyOf
) -> list[object]:
    merged = list(kept)
    for element in elements:
        key = key_of(element)
        assert isinstance(element, dict)  # key_of refuses everything else
        at = next((i for i, m in enumerate(merged) if _same_key(m, key, kind)), None)
        if at is None:
            merged.append(_plain(element))
            continue
        target = merged[at]
        assert isinstance(target, dict)  # it has a key
        merged[at] = _merge_object(target, element, kind.element)
    return merged


def _same_key(item: object, key: object, kind: FieldType) -> bool:
    return isinstance(item, dict) and item.get(kind.patch_merge_key) == key


def _by_key(merge_key: str) -> KeyOf:
    def key_of(item: object) -> object:
        if not isinstance(item, dict) or merge_key not in item:
            raise PatchError(f"a list element of the patch lacks its merge key {merge_key!r}", 400)
        return item[merge_key]

    return key_of


def _key(item: object, merge_key: str) -> object:
    return item.get(merge_key) if isinstance(item, dict) else None


def _distinct(items: Iterable[object]) -> list[object]:
    found: list[object] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found


def _reorder(
    result: JSONObject, key: str, order: Sequence[object], original: object, kind: FieldType
) -> None:
    """Obey ``$setElementOrder``; a list that neither side has stays absent."""
    items = result.get(key)
    if not isinstance(items, list):
        return
    before = original if isinstance(original, list) else []
    merge_key = kind.patch_merge_key
    key_of: KeyOf = (lambda item: _key(item, merge_key)) if merge_key else (lambda item: item)
    result[key] = _ordered(items, order, before, key_of)


def _ordered(
    merged: Sequence[object], wanted: Sequence[object], before: Sequence[object], key_of: KeyOf
) -> list[object]:
    """Put elements named in ``wanted`` in its order, and the others where they stood before.

    An element that the patch does not name goes in front of the first named one that it preceded
    in ``before``, and to the end if there is none.
    """
    ranks = [key_of(item) for item in wanted]
    places = [key_of(item) for item in before]
    named = sorted(
        (item for item in merged if key_of(item) in ranks), key=lambda i: ranks.index(key_of(i))
    )
    others = [item for item in merged if key_of(item) not in ranks]
    result: list[object] = []
    for item in named:
        place = _place(key_of(item), places)
        while others and 0 <= _place(key_of(others[0]), places) < place:
            result.append(others.pop(0))
        result.append(item)
    return result + others


def _place(key: object, places: Sequence[object]) -> int:
    return places.index(key) if key in places else -1
