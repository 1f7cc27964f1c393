"""Call stacks as plain values, of threads and of coroutines that wait."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import AsyncGeneratorType, CodeType, CoroutineType, FrameType, GeneratorType
from typing import Final, final

_ROOT: Final = f"{Path(__file__).resolve().parents[2]}/"
_DEEPEST: Final = 128


@final
@dataclass(frozen=True, slots=True)
class Frame:
    """One call: the function's qualified name, its file, the line under way, its first line."""

    function: str
    file: str
    line: int
    first_line: int

    def __str__(self) -> str:
        return f"{self.function} ({self.file}:{self.line})"


Stack = tuple[Frame, ...]
"""Innermost call first."""


def stack_of(frame: FrameType | None) -> Stack:
    """Return the calls that led to ``frame``, at most so many."""
    found: list[Frame] = []
    while frame is not None and len(found) < _DEEPEST:
        found.append(_frame(frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def stack_of_thread(ident: int) -> Stack:
    """Return where a thread is; empty if it has ended."""
    return stack_of(sys._current_frames().get(ident))


def stack_of_task(task: asyncio.Task[object]) -> Stack:
    """Return the awaits that led to what ``task`` waits for; empty if it has ended."""
    return tuple(reversed([*_awaits(task.get_coro())]))[-_DEEPEST:]


def _awaits(awaited: object) -> Iterator[Frame]:
    """Yield the calls from the outermost on; what awaits in C says nothing of itself."""
    for _ in range(_DEEPEST):
        match awaited:
            case CoroutineType():
                code, frame, awaited = awaited.cr_code, awaited.cr_frame, awaited.cr_await
            case GeneratorType():
                code, frame, awaited = awaited.gi_code, awaited.gi_frame, awaited.gi_yieldfrom
            case AsyncGeneratorType():
                code, frame, awaited = awaited.ag_code, awaited.ag_frame, awaited.ag_await
            case _:
                return
        if frame is not None:
            yield _frame(code, frame.f_lineno)


def _frame(code: CodeType, line: int | None) -> Frame:
    return Frame(_name(code), _short(code.co_filename), line or 0, code.co_firstlineno)


def _name(code: CodeType) -> str:
    module = _short(code.co_filename).removesuffix(".py").removesuffix("/__init__")
    return f"{module.replace('/', '.')}.{code.co_qualname}"


def _short(file: str) -> str:
    """Name a file from its package on."""
    _, _, packaged = file.rpartition("/site-packages/")
    if packaged:
        file = packaged
    library = f"/python{sys.version_info[0]}.{sys.version_info[1]}/"
    _, _, standard = file.rpartition(library)
    return (standard or file).removeprefix(_ROOT)
