"""Finds the documents: in files, in the files of folders, or on standard input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from mcm.api.validation import FieldError
from mcm.client.errors import ConfigurationError
from mcm.manifest_files import STANDARD_INPUT, documents
from mcm.validate.finding import Document, Finding, Place

_MANIFESTS: Final = frozenset({".json", ".yaml", ".yml"})


def found_in(paths: Iterable[Path], *, recursive: bool) -> Iterator[Document | Finding]:
    """Yield each object in order, and a finding for each file that cannot be read (to its end)."""
    for path in paths:
        for file in _files(path, recursive=recursive):
            yield from _found_in(file)


def _files(path: Path, *, recursive: bool) -> Iterator[Path]:
    if path == STANDARD_INPUT or not path.is_dir():
        yield path
        return
    within = path.rglob("*") if recursive else path.iterdir()
    yield from sorted(p for p in within if p.suffix in _MANIFESTS and p.is_file())


def _found_in(file: Path) -> Iterator[Document | Finding]:
    number = 0
    try:
        for number, body in enumerate(documents(file), start=1):
            yield Document(Place(str(file), number), body)
    except ConfigurationError as error:
        yield _unreadable(file, str(error).removeprefix(f"{file}: "))
    except RecursionError:
        yield _unreadable(file, "is nested too deep")


def _unreadable(file: Path, why: str) -> Finding:
    return Finding(Place(str(file)), FieldError("", why))
