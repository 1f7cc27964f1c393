"""The table of metric families, ``families.yaml``, and the page that is made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

FILE: Final = Path(__file__).parent / "families.yaml"

HEAD: Final = Path(__file__).parent / "head_of_the_page.md"


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row. ``go``: the Go original has it; ``differs``: wherein ours is not the same."""

    name: str
    type: str
    labels: tuple[str, ...]
    meaning: str
    go: bool = False
    differs: str = ""


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Families that answer the same questions; ``look`` says when to look at them."""

    group: str
    look: str
    families: tuple[Family, ...]


def groups() -> Sequence[Group]:
    return msgspec.yaml.decode(FILE.read_bytes(), type=tuple[Group, ...])


def families() -> dict[str, Family]:
    return {family.name: family for group in groups() for family in group.families}


def page() -> str:
    """Return ``docs/metrics.md``."""
    return "\n".join([HEAD.read_text(), *_sections()])


def _sections() -> Iterator[str]:
    for group in groups():
        yield f"## {group.group}\n\nLook at them when {group.look}\n"
        yield "| family | type | labels | meaning |\n|---|---|---|---|"
        yield from map(_row, group.families)
        yield ""


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    origin = " *Go*" if family.go else ""
    differs = f" **Differs**: {family.differs}." if family.differs else ""
    return f"| `{family.name}`{origin} | {family.type} | {labels} | {family.meaning}{differs} |"
