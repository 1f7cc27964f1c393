"""JSON patch (RFC 6902), by path copying."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.fields.equality import same_json
from mcm.sandbox.apiserver.limits import DEEPEST, LARGEST_BODY, is_deeper_than, is_too_deep
from mcm.sandbox.apiserver.patches.errors import PatchError

MAX_OPERATIONS = 10_000
"""As upstream: a JSON patch with more operations is refused before any is tried."""


@dataclass(frozen=True, slots=True)
class _Operation:
    """One checked operation; ``path`` and ``source`` are unescaped tokens, () is everything."""

    name: str
    path: tuple[str, ...]
    pointer: str
    value: object = None
    source: tuple[str, ...] = ()
    source_pointer: str = ""


Edit = Callable[[object, str], object]
"""Takes a container and the last token; returns the changed copy of the container."""


def apply_json_patch(document: JSONObject, operations: list[object]) -> JSONObject:
    """Apply all operations in order, or none.

    Raises:
        PatchError: code 400 for a malformed operation, 413 for too many of them, 422 where one
            does not apply (a missing path, a failed test, a result that is no object), or where
            the result would be too deep, or copies of copies too big.
    """
    if len(operations) > MAX_OPERATIONS:
        raise PatchError(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, "
            f"got {len(operations)}",
            413,
        )
    result: object = document
    copied = 0
    for operation in [_checked(o) for o in operations]:
        if operation.name == "copy":
            copied += _size_of_copy(result, operation)
            if copied > LARGEST_BODY:
                raise PatchError(f"copies come to more than {LARGEST_BODY} bytes", 422)
        result = _HANDLERS[operation.name](result, operation)
    if is_too_deep(result):
        raise _too_deep()
    if not isinstance(result, dict):
        raise PatchError("the patched document is not an object", 422)
    return result


def _checked(raw: object) -> _Operation:
    if not isinstance(raw, dict):
        raise PatchError("each operation of a JSON patch must be an object", 400)
    name = raw.get("op")
    if name not in _HANDLERS:
        raise PatchError(f"unexpected kind of operation: {name!r}", 400)
    if name in ("add", "replace", "test") and "value" not in raw:
        raise PatchError(f"operation {name!r} lacks a value", 400)
    moves = name in ("move", "copy")
    return _Operation(
        name=str(name),
        path=_tokens(raw, "path"),
        pointer=str(raw.get("path")),
        value=raw.get("value"),
        source=_tokens(raw, "from") if moves else (),
        source_pointer=str(raw.get("from", "")),
    )


def _tokens(raw: Mapping[str, object], member: str) -> tuple[str, ...]:
    pointer = raw.get(member)
    if not isinstance(pointer, str):
        raise PatchError(f"operation {raw.get('op')!r} lacks a {member!r}", 400)
    if pointer == "":
        return ()
    if not pointer.startswith("/"):
        raise PatchError(f"{member} {pointer!r} is no JSON pointer: it must start with '/'", 400)
    return tuple(t.replace("~1", "/").replace("~0", "~") for t in pointer[1:].split("/"))


def _add(document: object, operation: _Operation) -> object:
    return _insert(document, operation, operation.value)


def _remove(document: object, operation: _Operation) -> object:
    return _edit(document, operation.path, operation, _without)


def _replace(document: object, operation: _Operation) -> object:
    def replaced(container: object, token: str) -> object:
        # A member that is not there is set all the same: so do the servers, against the RFC.
        if not isinstance(container, dict):
            _child(container, token, operation)
        return _with(container, token, operation.value)

    if not operation.path:
        return operation.value
    return _edit(document, operation.path, operation, replaced)


def _move(document: object, operation: _Operation) -> object:
    depth = len(operation.source)
    if operation.path == operation.source:
        _find(document, operation.source, operation)
        return document
    if operation.path[:depth] == operation.source:
        raise _inapplicable(operation, "a value cannot move into itself")
    value = _find(document, operation.source, operation)
    return _insert(_edit(document, operation.source, operation, _without), operation, value)


def _copy(document: object, operation: _Operation) -> object:
    return _insert(document, operation, _find(document, operation.source, operation))


def _size_of_copy(document: object, operation: _Operation) -> int:
    """Return the bytes that a copy adds: copies of copies multiply what a short patch says."""
    value = _find(document, operation.source, operation)
    if is_deeper_than(value, DEEPEST):
        raise _too_deep()
    return len(orjson.dumps(value))


def _test(document: object, operation: _Operation) -> object:
    try:
        actual = _find(document, operation.path, operation)
    except PatchError:
        raise PatchError(
            f"testing path {operation.pointer} failed: there is no such value", 422
        ) from None
    if not same_json(actual, operation.value):
        raise PatchError(f"testing value {operation.pointer} failed", 422)
    return document


_HANDLERS: Mapping[object, Callable[[object, _Operation], object]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _insert(document: object, operation: _Operation, value: object) -> object:
    def inserted(container: object, token: str) -> object:
        if isinstance(container, list):
            index = len(container) if token == "-" else _index(token, len(container), operation)
            return [*container[:index], value, *container[index:]]
        if isinstance(container, dict):
            return _with(container, token, value)
        raise _inapplicable(operation, "its parent is neither an object nor an array")

    if not operation.path:
        return value
    return _edit(document, operation.path, operation, inserted)


def _edit(document: object, path: tuple[str, ...], operation: _Operation, edit: Edit) -> object:
    """Return a copy of the containers along ``path``, the innermost one changed by ``edit``."""
    if not path:
        raise _inapplicable(operation, "the whole document cannot be removed")
    if len(path) > DEEPEST:
        raise _too_deep()
    token, *rest = path
    if not rest:
        if edit is _without:
            _child(document, token, operation)
        return edit(document, token)
    inner = _edit(_child(document, token, operation), tuple(rest), operation, edit)
    return _with(document, token, inner)


def _find(document: object, path: tuple[str, ...], operation: _Operation) -> object:
    for token in path:
        document = _child(document, token, operation)
    return document


def _child(container: object, token: str, operation: _Operation) -> object:
    if isinstance(container, list):
        return container[_index(token, len(container) - 1, operation)]
    if isinstance(container, dict) and token in container:
        return container[token]
    raise _inapplicable(operation, f"there is no {token!r}")


def _index(token: str, last: int, operation: _Operation) -> int:
    digits = token.isascii() and token.isdigit()
    if not digits or (len(token) > 1 and token[0] == "0"):
        raise _inapplicable(operation, f"{token!r} is no array index")
    if len(token) > 9 or int(token) > last:
        raise _inapplicable(operation, f"index {token} is out of bounds")
    return int(token)


def _with(container: object, token: str, value: object) -> object:
    if isinstance(container, list):
        return [value if i == int(token) else item for i, item in enumerate(container)]
    assert isinstance(container, dict)  # the callers have looked the token up in it
    return {**container, token: value}


def _without(container: object, token: str) -> object:
    if isinstance(container, list):
        return [item for i, item in enumerate(container) if i != int(token)]
    assert isinstance(container, dict)  # _edit has looked the token up in it
    return {k: v for k, v in container.items() if k != token}


def _too_deep() -> PatchError:
    return PatchError(f"the patched document exceeds the max depth of {DEEPEST}", 422)


def _inapplicable(operation: _Operation, why: str) -> PatchError:
    where = operation.pointer
    if operation.source_pointer:
        where = f"{operation.source_pointer} to {where}"
    return PatchError(f"{operation.name} operation does not apply: {where}: {why}", 422)
