"""JSON that is nested deeper than any parser goes: taken apart, and cut, so that the rest is read.

Works on bytes that are known to be JSON, in time proportional to their length.
"""

from __future__ import annotations

import re
from typing import Final

READABLE: Final = 500
"""Levels of a body that is read as it is. What a parser can take differs with Python's version
(1000 levels less the calls before it, or thousands), and whoever walks what was read ends sooner:
this is less than any of them takes."""

DEEPEST: Final = 100
"""Levels that are kept of a body with more than are readable."""

TOO_DEEP: Final = "(nested too deep to be read)"
"""What stands in the place of what was cut."""

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\],]', re.DOTALL)
_OPENING, _CLOSING = (b"{", b"["), (b"}", b"]")
_NAMES_VALUE = re.compile(rb"\s*:")


def is_readable(body: bytes) -> bool:
    """Tell whether ``body`` has no more levels than are read as they are."""
    if body.count(b"{") + body.count(b"[") <= READABLE:
        return True  # nearly all there is
    depth = 0
    for token in _TOKEN.finditer(body):
        text = token.group()
        if text in _OPENING:
            depth += 1
            if depth > READABLE:
                return False
        elif text in _CLOSING:
            depth -= 1
    return True


def readable(body: bytes) -> bytes:
    """Return ``body``, cut if it has more levels than are read as they are."""
    return body if is_readable(body) else cut(body)


def cut(body: bytes, *, below: int = DEEPEST) -> bytes:
    """Return ``body`` with ``TOO_DEEP`` in place of each value more than ``below`` levels down."""
    kept: list[bytes] = []
    depth, kept_to, cut_from = 0, 0, 0
    for token in _TOKEN.finditer(body):
        text = token.group()
        if text in _OPENING:
            depth += 1
            if depth == below + 1:
                cut_from = token.start()
        elif text in _CLOSING:
            depth -= 1
            if depth == below:
                kept += [body[kept_to:cut_from], b'"%s"' % TOO_DEEP.encode()]
                kept_to = token.end()
    return b"".join((*kept, body[kept_to:]))


def lifted(body: bytes, key: str) -> tuple[bytes, bytes]:
    """Take the value of ``key`` out of the object ``body``; return the object with null in its
    place, and the value (null if there is none)."""
    depth, start = 0, -1
    for token in _TOKEN.finditer(body):
        text = token.group()
        if depth == 1 and start >= 0 and text in (b",", b"}"):
            return body[:start] + b"null" + body[token.start() :], body[start : token.start()]
        if text in _OPENING:
            depth += 1
        elif text in _CLOSING:
            depth -= 1
        elif depth == 1 and start < 0 and text == b'"%s"' % key.encode():
            colon = _NAMES_VALUE.match(body, token.end())
            start = colon.end() if colon else -1
    return body, b"null"


def elements(array: bytes) -> list[bytes]:
    """Return the elements of ``array``; none if it is no array."""
    found: list[bytes] = []
    depth, start = 0, 0
    for token in _TOKEN.finditer(array):
        text = token.group()
        if text in _OPENING:
            depth += 1
            if depth == 1:
                start = token.end()
        elif depth == 1 and text in (b",", b"]"):
            found.append(array[start : token.start()].strip())
            start = token.end()
        if text in _CLOSING:
            depth -= 1
    return [element for element in found if element]


def where_cut(value: object) -> str:
    """Return the path of the field, two levels down at most, in which something was cut; empty: in
    none. ``value`` is what was parsed of the body."""
    if not isinstance(value, dict):
        return ""
    for key, part in value.items():
        if not _holds_cut(part):
            continue
        inner = where_cut(part) if isinstance(part, dict) else ""
        return f"{key}.{inner.partition('.')[0]}".rstrip(".")
    return ""


def _holds_cut(value: object) -> bool:
    left = [value]
    while left:
        part = left.pop()
        if part == TOO_DEEP:
            return True
        if isinstance(part, dict):
            left.extend(part.values())
        elif isinstance(part, list):
            left.extend(part)
    return False
