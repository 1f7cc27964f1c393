"""How big and how deep the server lets a thing be."""

from __future__ import annotations

LARGEST_BODY = 3 * 1024 * 1024
"""Bytes of a request's body, and of what its YAML aliases or a JSON patch's copies come to."""

LARGEST_ANNOTATIONS = 256 * 1024
"""Bytes of all annotations' keys and values."""

DEEPEST = 200
"""Levels of objects and arrays. Upstream it is 10000, but the JSON library here writes 254; the
rest is for what the server puts around an object and into its managedFields."""

_OWNERSHIP = 5
"""Levels by which managedFields nest deeper than the object whose fields they name."""

MOST_YAML_VALUES = 50_000
"""Values of a YAML body, aliases expanded: some seconds' work. JSON has no such limit."""


def is_deeper_than(value: object, levels: int) -> bool:
    """Tell whether objects and arrays nest more than ``levels`` deep. Does not recurse."""
    layer = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        if not layer:
            return False
        layer = [
            child
            for container in layer
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, dict | list)
        ]
    return bool(layer)


def is_too_deep(document: object) -> bool:
    """Tell whether a document that a client sent, or a patch made, nests deeper than is kept.

    An object of the deepest comes back from its readers with managedFields that are deeper still.
    """
    if not is_deeper_than(document, DEEPEST):
        return False
    return is_deeper_than(document, DEEPEST + _OWNERSHIP) or is_deeper_than(
        _unmanaged(document), DEEPEST
    )


def _unmanaged(document: object) -> object:
    meta = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(meta, dict):
        return document
    rest = {name: value for name, value in meta.items() if name != "managedFields"}
    return {**document, "metadata": rest}
