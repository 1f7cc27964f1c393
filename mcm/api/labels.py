"""The syntax of label keys and values, and of objects' names."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(
    r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*"
)


def is_label_key(text: str) -> bool:
    """A name of at most 63 characters, optionally after a DNS prefix and a slash."""
    prefix, slash, name = text.rpartition("/")
    if slash and not (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix)):
        return False
    return _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Empty, or at most 63 characters of the same alphabet as a key's name."""
    return not text or _NAME.fullmatch(text) is not None


def is_object_name(text: str) -> bool:
    """A DNS subdomain of at most 253 characters, as most kinds want it."""
    return len(text) <= 253 and _SUBDOMAIN.fullmatch(text) is not None
