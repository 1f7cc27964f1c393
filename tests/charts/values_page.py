"""The page of the chart's values, made from ``values.yaml`` and its comments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import yaml

VALUES = Path(__file__).parents[2] / "charts" / "mcm" / "values.yaml"

_HEAD = """\
# Values of the chart

Made by `make generate` from `charts/mcm/values.yaml`; [chart.md](chart.md) says what they are for.
A value that is not listed here, or has another form, is refused.

| value | default | meaning |
|---|---|---|
"""
_KEY = re.compile(r"( *)([A-Za-z][A-Za-z0-9]*):(.*)")


def values_page() -> str:
    """Return ``docs/chart-values.md``."""
    text = VALUES.read_text()
    defaults = yaml.safe_load(text)
    rows = [
        f"| `{path}` | {_shown(_at(defaults, path))} | {meaning} |"
        for path, meaning in documented(text)
    ]
    return _HEAD + "\n".join(rows) + "\n"


def documented(text: str) -> Iterator[tuple[str, str]]:
    """Yield path and meaning of each value: a comment is about the key under it, and the keys below
    one that has a value of its own kind are part of it. Raises ValueError for a value without
    one."""
    parents: list[tuple[int, str]] = []
    comment, about_whole = "", -1
    for line in text.splitlines():
        if line.lstrip().startswith("#"):
            comment = f"{comment} {line.lstrip()[1:].strip()}".strip()
            continue
        key = _KEY.fullmatch(line)
        if key is None:
            continue
        depth = len(key[1])
        parents = [(d, name) for d, name in parents if d < depth]
        if about_whole >= 0 and depth > about_whole:
            continue
        about_whole = -1
        parents.append((depth, key[2]))
        path = ".".join(name for _, name in parents)
        if key[3].strip():
            if not comment:
                raise ValueError(f"values.yaml: {path} has no comment")
            yield path, comment
        elif path in _WHOLE:
            yield path, comment
            about_whole = depth
        elif comment:
            yield path, comment
        comment = ""


_WHOLE = frozenset({"resources", "metrics.dashboard.labels"})
"""Values whose default has keys that are not the chart's."""


def _at(values: Mapping[str, Any], path: str) -> object:
    found: Any = values
    for name in path.split("."):
        found = found[name]
    return found if not isinstance(found, dict) or not found or path in _WHOLE else None


def _shown(value: object) -> str:
    if value is None or value == "":
        return ""
    return f"`{orjson.dumps(value).decode()}`" if not isinstance(value, str) else f"`{value}`"
