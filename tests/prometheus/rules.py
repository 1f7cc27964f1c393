"""The alerts as they are shipped, and as a test can wait for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

FILE: Final = Path(__file__).parents[2] / "charts" / "mcm" / "files" / "alerts" / "mcm.yaml"
WINDOW: Final = "10s"
_NAMES: Final = r"\b(?:mcm|rest_client|leader_election|process|python)_[a-z_]+"


class Rule(msgspec.Struct, frozen=True, rename={"for_": "for"}, forbid_unknown_fields=True):
    """One alert."""

    alert: str
    expr: str
    for_: str
    labels: dict[str, str]
    annotations: dict[str, str]


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Alerts that are evaluated one after the other."""

    name: str
    rules: tuple[Rule, ...]


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    groups: tuple[Group, ...]


def shipped() -> Sequence[Rule]:
    found = msgspec.yaml.decode(FILE.read_bytes(), type=Rules)
    return [rule for group in found.groups for rule in group.rules]


def shortened(text: str) -> str:
    """Return rules, or an expression, in seconds: every window is :data:`WINDOW`, and no alert
    waits longer than one second. Nothing else is changed."""
    text = re.sub(r"(?m)^( *for:).*$", r"\1 1s", text)
    return re.sub(r"\[[0-9a-z]+\]", f"[{WINDOW}]", text)


def metrics_in(expression: str) -> Iterator[str]:
    """Yield the names of the metrics that an expression reads."""
    yield from re.findall(_NAMES, expression)
