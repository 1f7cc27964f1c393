"""Comparing objects of one resource: by resource version, and by what we use of them.

Versions are comparable if they are decimal numbers without a leading zero, of any length
(Kubernetes promises so since 1.35; every server did before). Anything else is merely equal or not.
"""

from __future__ import annotations

import msgspec

from mcm.api.meta import KubeObject, ObjectMeta

_METADATA_FIELDS = tuple(
    name for name in ObjectMeta.__struct_fields__ if name != "resource_version"
)


def comparable(version: str) -> bool:
    """Tell whether ``version`` has a place in an order ("" and "0" have none)."""
    return version.isdecimal() and version.isascii() and version[0] != "0"


def newer(version: str, than: str) -> bool:
    """Tell whether ``version`` is provably later than ``than``; False if they do not compare."""
    later = (len(version), version) > (len(than), than)
    return later and comparable(version) and comparable(than)


def same_content(one: KubeObject, other: KubeObject) -> bool:
    """Tell whether two states differ at most in ``metadata.resourceVersion``."""
    if not (isinstance(one, msgspec.Struct) and type(one) is type(other)):
        return one == other
    # Backwards: the status, which changes most, comes last.
    for name in reversed(one.__struct_fields__):
        if name != "metadata" and getattr(one, name) != getattr(other, name):
            return False
    left, right = one.metadata, other.metadata
    return all(getattr(left, name) == getattr(right, name) for name in _METADATA_FIELDS)
