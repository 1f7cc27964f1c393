"""Counts the bytecode instructions that the manager's code executes: a measure without noise.

What another process does, how fast the machine is and how warm its caches are changes nothing of
it. It sees no time spent inside C (hashing, allocating); of what is dearest there, decoding and
encoding, it counts the calls. What the sandbox and the simulation execute to play the rest of the
world is left out, with all that they call.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final, final

import mcm

_HOME: Final = str(Path(mcm.__file__).parent) + "/"
_PLAYED: Final = ("sandbox/", "simulation/", "providers/simulated/")
_LOOP: Final = "simulation/virtualtime.py"
_CODECS: Final = ("msgspec", "orjson")
_LIBRARY: Final = "libraries"


def _is_codec(function: Any) -> bool:
    """Say whether a function, or the object whose method it is, belongs to a codec."""
    module = function.__module__ or type(getattr(function, "__self__", None)).__module__
    return str(module).partition(".")[0] in _CODECS


class _Kind(Enum):
    OURS = auto()
    PLAYED = auto()
    OTHER = auto()


@cache
def _kind(file: str) -> _Kind:
    inner = file.removeprefix(_HOME)
    if inner in (file, _LOOP):
        return _Kind.OTHER
    played = inner.startswith(_PLAYED)
    return _Kind.PLAYED if played else _Kind.OURS


@cache
def room_of(file: str) -> str:
    """Return the room of a file as people speak of it: ``informers``, ``controllers/machine``."""
    if _kind(file) is _Kind.OTHER:
        return _LIBRARY
    first, *inner = file.removeprefix(_HOME).removesuffix(".py").split("/")
    return f"{first}/{inner[0]}" if first == "controllers" and inner else first


@final
class _Count:
    """Of one function. It is what Python calls for each instruction, so it does little."""

    __slots__ = ("instructions",)

    def __init__(self) -> None:
        self.instructions = 0

    def __call__(self, frame: FrameType, event: str, arg: Any) -> _Count:
        if event == "opcode":
            self.instructions += 1
        return self


@final
class Meter:
    """Counts while :meth:`counting`, in this thread."""

    def __init__(self) -> None:
        self._counts: dict[int, tuple[CodeType, _Count]] = {}
        self.codec_calls = 0

    @property
    def instructions(self) -> int:
        return sum(count.instructions for _, count in self._counts.values())

    def by_room(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for code, count in self._counts.values():
            found[room_of(code.co_filename)] += count.instructions
        return found

    def by_function(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for code, count in self._counts.values():
            found[f"{room_of(code.co_filename)}: {code.co_qualname}"] += count.instructions
        return found

    @contextmanager
    def counting(self) -> Iterator[None]:
        before, profile_before = sys.gettrace(), sys.getprofile()
        # Python 3.12 looks for instructions only if some frame had asked for them before this.
        sys._getframe().f_trace_opcodes = True
        sys.settrace(self._entered)
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(profile_before)
            sys.settrace(before)

    def _called(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "c_call" and isinstance(frame.f_trace, _Count) and _is_codec(arg):
            self.codec_calls += 1

    def _entered(self, frame: FrameType, event: str, arg: Any) -> _Count | None:
        code = frame.f_code
        if not self._is_counted(frame, code):
            frame.f_trace = None  # it may be a coroutine that was counted once
            return None
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        found = self._counts.get(id(code))
        if found is None:
            found = self._counts[id(code)] = (code, _Count())
        return found[1]

    def _is_counted(self, frame: FrameType, code: CodeType) -> bool:
        """Ours is, but for what the rest of the world calls; libraries are when ours calls them."""
        kind = _kind(code.co_filename)
        if kind is _Kind.PLAYED:
            return False
        caller = frame.f_back
        if caller is not None and isinstance(caller.f_trace, _Count):
            return True
        if kind is _Kind.OTHER:
            return False
        while caller is not None and _kind(caller.f_code.co_filename) is _Kind.OTHER:
            caller = caller.f_back
        return caller is None or isinstance(caller.f_trace, _Count)


def counted(work: Callable[[], object]) -> Meter:
    """Return what a call took."""
    meter = Meter()
    with meter.counting():
        work()
    return meter
