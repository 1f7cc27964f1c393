"""Prometheus's text format, line by line, for what the metrics library cannot show.

It takes over a second for the lines of a large fleet, and gives every counter a name that ends in
``_total``, whatever the name is.
"""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.utils import floatToGoString


def head(name: str, kind: str, documentation: str) -> str:
    """Return the two lines that a family begins with."""
    return f"# HELP {name} {documentation}\n# TYPE {name} {kind}\n"


def line(name: str, labels: Mapping[str, str], value: float) -> str:
    """Return the line of one sample, its labels in alphabetical order."""
    shown = ",".join(f'{label}="{_escaped(labels[label])}"' for label in sorted(labels))
    number: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    return f"{name}{{{shown}}} {number}\n" if shown else f"{name} {number}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
