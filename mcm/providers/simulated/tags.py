"""Which tags of a VM, its interface or its disk to set and which to take away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def tag_changes(
    present: Mapping[str, str], wanted: Mapping[str, str], known: Iterable[Mapping[str, str]]
) -> dict[str, str | None]:
    """Return the merge patch that brings ``present`` to ``wanted``; empty if it is.

    Only what is among ``known``, tags that a class had before, is taken away (None): all else was
    put there by others.
    """
    once_ours = {key for tags in known for key in tags}
    changes: dict[str, str | None] = {
        key: value for key, value in wanted.items() if present.get(key) != value
    }
    changes |= {key: None for key in once_ours if key in present and key not in wanted}
    return changes
