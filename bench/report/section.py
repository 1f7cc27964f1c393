"""What the page says of one bench: its question, numbers, tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from bench.report.charts import Picture, number


@dataclass(frozen=True, slots=True)
class Headline:
    """A number for the table at the top of the page. ``aim`` is the bound on its good side."""

    what: str
    value: float
    unit: str
    better: Literal["less", "more"]
    aim: float | None = None

    @property
    def met(self) -> bool | None:
        if self.aim is None:
            return None
        return self.value <= self.aim if self.better == "less" else self.value >= self.aim


@dataclass(frozen=True, slots=True)
class Table:
    """The first column is text, the others are numbers."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        rule = ["---", *("--:" for _ in self.headers[1:])]
        lines = [self.headers, rule, *self.rows]
        text = "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)
        return f"{self.title}\n\n{text}\n"


@dataclass(frozen=True, slots=True)
class Section:
    """``asks``: what was measured, and what better means, for who never heard of it."""

    title: str
    asks: str
    headlines: Sequence[Headline] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = field(default=())


def plain(title: str, asks: str, results: Mapping[str, Any]) -> Section:
    """Return a section of nothing but the numbers, of whatever shape they are."""
    rows = [(name, number(value)) for name, value in _leaves(results)]
    return Section(title, asks, tables=(Table("", ("number", "value"), rows),) if rows else ())


def _leaves(value: object, path: str = "") -> list[tuple[str, float]]:
    if isinstance(value, bool):
        return []
    if isinstance(value, int | float):
        return [(path, value)]
    if isinstance(value, dict):
        inner = ((f"{path}, {name}" if path else str(name), v) for name, v in value.items())
        return [leaf for name, v in inner for leaf in _leaves(v, name.replace("_", " "))]
    return []


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
