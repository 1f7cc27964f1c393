"""The JSONPath of printer columns: members, indices, wildcards and comparisons.

``.spec.nodeName``, ``.metadata.labels['a.b/c']``, ``.metadata.labels.a\\.b/c``, ``.items[0]``,
``.items[-1]``, ``.items[*].name``, ``.status.conditions[?(@.type=="Ready")].status``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from mcm.sandbox.apiserver.fields.equality import same_json

Step = Callable[[object], Iterator[object]]
"""Takes one value, yields those the step selects in it."""

_MEMBER = re.compile(r"\.((?:\\.|[^.\[\\])+)")
_QUOTED = re.compile(r"""\[\s*(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)")\s*\]""")
_INDEX = re.compile(r"\[\s*(-?\d+)\s*\]")
_WILDCARD = re.compile(r"\[\s*\*\s*\]|\.\*")
_FILTER = re.compile(
    r"\[\s*\?\(\s*@((?:\\.|[^=!<>\s\\)])*)\s*(?:(==|!=|>=|<=|>|<)\s*(.+?)\s*)?\)\]"
)
_ESCAPE = re.compile(r"\\(.)")


class PathError(ValueError):
    """Text that is no path of this form."""


def find_all(path: str, value: object) -> list[object]:
    """Return everything the path selects; missing members select nothing.

    Raises:
        PathError: the path cannot be read.
    """
    found = [value]
    for step in compile_path(path):
        found = [result for item in found for result in step(item)]
    return found


@lru_cache(maxsize=1024)
def compile_path(path: str) -> tuple[Step, ...]:
    """Read a path, with or without the braces around it and the ``$`` before it."""
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    text = text.removeprefix("$")
    if text and text[0] not in ".[":
        text = f".{text}"
    if text == ".":
        return ()
    steps: list[Step] = []
    at = 0
    while at < len(text):
        step, at = _next_step(text, at)
        steps.append(step)
    return tuple(steps)


def _next_step(text: str, at: int) -> tuple[Step, int]:
    if match := _WILDCARD.match(text, at):
        return _everything, match.end()
    if match := _MEMBER.match(text, at):
        return _member(_unescaped(match[1])), match.end()
    if match := _QUOTED.match(text, at):
        return _member(_unescaped(match[1] if match[1] is not None else match[2])), match.end()
    if match := _INDEX.match(text, at):
        return _element(int(match[1])), match.end()
    if match := _FILTER.match(text, at):
        return _filter(match[1], match[2], match[3]), match.end()
    if text.startswith(".[", at):
        return _next_step(text, at + 1)
    raise PathError(f"cannot read the path {text!r} from {text[at:]!r} on")


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(r"\1", text)


def _member(name: str) -> Step:
    def step(value: object) -> Iterator[object]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _element(index: int) -> Step:
    def step(value: object) -> Iterator[object]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _everything(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _filter(path: str, operator: str | None, literal: str | None) -> Step:
    inner = compile_path(path or ".")
    wanted = _literal(literal) if literal is not None else None

    def holds(item: object) -> bool:
        found = [item]
        for step in inner:
            found = [result for f in found for result in step(f)]
        if operator is None:
            return bool(found)
        return bool(found) and _compare(found[0], operator, wanted)

    def step(value: object) -> Iterator[object]:
        yield from (item for item in _everything(value) if holds(item))

    return step


def _literal(text: str) -> object:
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return _unescaped(text[1:-1])
    try:
        return json.loads(text)
    except ValueError:
        raise PathError(f"{text!r} is neither a quoted text, a number, true nor false") from None


def _compare(left: object, operator: str, right: object) -> bool:
    if operator in ("==", "!="):
        return same_json(left, right) is (operator == "==")
    numbers = isinstance(left, int | float) and isinstance(right, int | float)
    if not numbers and not (isinstance(left, str) and isinstance(right, str)):
        return False
    order = (left > right) - (left < right)  # type: ignore[operator]
    return order in {">": (1,), "<": (-1,), ">=": (0, 1), "<=": (0, -1)}[operator]
