"""What was applied to a Node last, as its annotations record it; unreadable counts as nothing."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from mcm.api.core import Node

V = TypeVar("V")


def last_applied(node: Node, annotation: str, kind: type[V]) -> V | None:
    """Decode the record; None if there is none."""
    text = node.metadata.annotations.get(annotation, "")
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeError):
        return None
