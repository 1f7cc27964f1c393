"""From a body to the document it holds: JSON, or YAML, neither bigger nor deeper than is good.

A short body can mean a huge document: YAML aliases multiply, and nesting costs a stack what it
does not cost the sender. Both are measured before anything is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, final

import orjson
import yaml

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.errors import bad_request
from mcm.sandbox.apiserver.limits import DEEPEST, LARGEST_BODY, MOST_YAML_VALUES, is_too_deep

try:
    from yaml import CSafeLoader as _SafeLoader
except ImportError:  # built without libyaml: the same, ten times slower
    from yaml import SafeLoader as _SafeLoader  # type: ignore[assignment]

_TOO_DEEP = f"exceeded max depth of {DEEPEST}"

# What the library raises where a tag does not fit its value ("!!int abc").
_YAML_ERRORS = (yaml.YAMLError, TypeError, ValueError, LookupError, AttributeError)


class _Loader(_SafeLoader):
    """YAML as JSON has it: what looks like a time stays text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def decode_object(body: bytes) -> JSONObject:
    """Decode a JSON object, or a YAML one if it is no JSON. Raises StatusError (400)."""
    value = decode_document(body)
    if not isinstance(value, dict):
        raise bad_request("the request body must be an object")
    return cast(JSONObject, value)


def decode_document(body: bytes) -> object:
    """Decode JSON, or YAML if it is no JSON. Raises StatusError (400)."""
    if not body:
        raise bad_request("the request has no body")
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if body.lstrip()[:1] in (b"{", b"["):
            raise bad_request(f"error decoding the body: {error}") from None
    else:
        # Counting brackets is cheap, and nearly always enough.
        brackets = body.count(b"{") + body.count(b"[")
        if brackets > DEEPEST and is_too_deep(value):
            raise bad_request(f"error decoding the body: {_TOO_DEEP}")
        return value
    try:
        return _decode_yaml(body)
    except _YAML_ERRORS as error:
        raise bad_request(f"error decoding the body: yaml: {error}") from None


def _decode_yaml(body: bytes) -> object:
    """Decode the first document of a YAML body, as upstream does; raises one of _YAML_ERRORS."""
    _measure(body)
    for value in yaml.load_all(body, Loader=_Loader):
        # There and back: what JSON cannot say (other keys than text, huge numbers) ends here.
        return cast(object, orjson.loads(orjson.dumps(value)))
    return None


@final
class _Size:
    """What a value comes to with its aliases expanded. ``depth`` counts the value itself."""

    __slots__ = ("anchor", "characters", "depth", "values")

    def __init__(self, anchor: str | None, *, characters: int, depth: int) -> None:
        self.anchor = anchor
        self.values = 1
        self.characters = characters
        self.depth = depth

    def add(self, child: _Size) -> None:
        self.values += child.values
        self.characters += child.characters
        self.depth = max(self.depth, child.depth + 1)


def _measure(body: bytes) -> None:
    """Raise ValueError for a first document that is too big or too deep; builds nothing."""
    around: list[_Size] = []
    anchored: dict[str | None, _Size | None] = {}
    aliases = False
    for event in yaml.parse(body, Loader=_Loader):
        match event:
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                anchored[event.anchor] = None  # not complete yet
                around.append(_Size(event.anchor, characters=2, depth=1))
                if len(around) > DEEPEST:
                    raise ValueError(_TOO_DEEP)
                continue
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                whole = around.pop()
            case yaml.ScalarEvent():
                whole = _Size(event.anchor, characters=len(event.value) + 1, depth=0)
            case yaml.AliasEvent():
                aliases = True
                whole = _aliased(anchored, event.anchor)
            case yaml.DocumentEndEvent():
                return
            case _:
                continue
        anchored[whole.anchor] = whole
        if around:
            around[-1].add(whole)
            _check(around[-1], len(around), aliases=aliases)


def _check(size: _Size, level: int, *, aliases: bool) -> None:
    if level - 1 + size.depth > DEEPEST:
        raise ValueError(_TOO_DEEP)
    if aliases and (size.values > MOST_YAML_VALUES or size.characters > LARGEST_BODY):
        raise ValueError("document contains excessive aliasing")
    if size.values > MOST_YAML_VALUES:
        raise ValueError(f"document holds more than {MOST_YAML_VALUES} values; send JSON")


def _aliased(anchored: Mapping[str | None, _Size | None], anchor: str | None) -> _Size:
    if anchor not in anchored:
        raise ValueError(f"unknown anchor '{anchor}' referenced")
    found = anchored[anchor]
    if found is None:
        raise ValueError(f"anchor '{anchor}' value contains itself")
    return found
