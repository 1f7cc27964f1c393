"""Which of several sources is obeyed, flag by flag."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mcm.configuration.given import Given


def merged(sources: Iterable[Mapping[str, Given]]) -> dict[str, Given]:
    """Return of each flag what the first source says that says anything of it."""
    result: dict[str, Given] = {}
    for source in sources:
        for name, given in source.items():
            result.setdefault(name, given)
    return result
