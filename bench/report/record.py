"""One run of one bench as it is kept: what was printed, and under which conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import orjson

from bench.report.surroundings import Surroundings

RAW: Final = "raw"


@dataclass(frozen=True, slots=True)
class Record:
    """``results`` are the bench's own; ``failure`` says in a line why there are none, or what a
    bench found wrong with them."""

    bench: str
    command: tuple[str, ...]
    seconds: float
    surroundings: Surroundings
    parameters: Mapping[str, Any] = field(default_factory=dict)
    results: Mapping[str, Any] = field(default_factory=dict)
    failure: str = ""


class Unreadable(Exception):
    """Output that is no result; the text says why."""


def parsed(output: bytes) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return parameters and results of what a bench printed. Raises Unreadable."""
    try:
        found = orjson.loads(output)
    except orjson.JSONDecodeError as e:
        raise Unreadable(f"printed no JSON: {e}") from e
    if not isinstance(found, dict) or not isinstance(found.get("results"), dict):
        raise Unreadable("printed JSON without an object 'results'")
    return found.get("parameters") or {}, found["results"]


def keep(record: Record, folder: Path) -> Path:
    """Write the record into the folder of a run."""
    raw = folder / RAW
    raw.mkdir(parents=True, exist_ok=True)
    path = raw / f"{record.bench}.json"
    path.write_bytes(orjson.dumps(asdict(record), option=orjson.OPT_INDENT_2) + b"\n")
    return path


def read(folder: Path) -> list[Record]:
    """Return the records of a run. Raises Unreadable, naming the file."""
    found = []
    for path in sorted((folder / RAW).glob("*.json")):
        try:
            found.append(msgspec.json.decode(path.read_bytes(), type=Record))
        except msgspec.MsgspecError as e:
            raise Unreadable(f"{path}: {e}") from e
    return found
