"""Comparing objects of one resource: by resource version, and by what we use of them.

Versions are comparable if they are decimal numbers without a leading zero, of any length
(Kubernetes promises so since 1.35; every server did before). Anything else is merely equal or not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter

from mcm.api.meta import KubeObject, ObjectMeta

# Getters, as they take many fields out in one call: each event goes through here.
_content_of_metadata = attrgetter(
    *(name for name in ObjectMeta.__struct_fields__ if name != "resource_version")
)


def comparable(version: str) -> bool:
    """Tell whether ``version`` has a place in an order ("" and "0" have none)."""
    return version.isdecimal() and version.isascii() and version[0] != "0"


def newer(version: str, than: str) -> bool:
    """Tell whether ``version`` is provably later than ``than``; False if they do not compare."""
    longer = len(version) - len(than)
    later = version > than if longer == 0 else longer > 0
    return later and comparable(version) and comparable(than)


def same_content(one: KubeObject, other: KubeObject) -> bool:
    """Tell whether two states differ at most in ``metadata.resourceVersion``."""
    rest_of = _rest_of(type(one))
    return (
        type(one) is type(other)
        and rest_of(one) == rest_of(other)
        and _content_of_metadata(one.metadata) == _content_of_metadata(other.metadata)
    )


@cache
def _rest_of(kind: type[KubeObject]) -> Callable[[KubeObject], object]:
    """Return what takes all but the metadata out of an object of that type."""
    # Backwards: the status, which changes most, comes last.
    names = [name for name in reversed(kind.__struct_fields__) if name != "metadata"]
    return attrgetter(*names) if names else lambda _: None
