"""Writes a profile in pprof's format (gzipped protobuf), for ``go tool pprof`` and others."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from typing import Final

from mcm.profiling.profile import Profile
from mcm.profiling.stacks import Frame

_NANO: Final = 1_000_000_000
_VARINT, _LENGTH = 0, 2


def encode(profile: Profile) -> bytes:
    """Return ``profile`` as ``profile.proto`` of github.com/google/pprof describes it."""
    return gzip.compress(b"".join(_Writer().message(profile)), mtime=0)


class _Writer:
    """Numbers strings, functions and places in the code, as the format refers to them."""

    def __init__(self) -> None:
        self._strings: dict[str, int] = {"": 0}
        self._functions: dict[tuple[str, str, int], int] = {}
        self._places: dict[Frame, int] = {}

    def message(self, profile: Profile) -> Iterable[bytes]:
        for measure in profile.measures:
            yield _field(1, self._value_type(measure.kind, measure.unit))
        for stack, values in profile.samples.items():
            places = b"".join(_varint(self._place(frame)) for frame in stack)
            yield _field(2, _field(1, places) + _field(2, b"".join(map(_varint, values))))
        for frame, number in self._places.items():
            function = self._function(frame)
            line = _number(1, function) + _number(2, frame.line)
            yield _field(4, _number(1, number) + _field(4, line))
        for (name, file, first), number in self._functions.items():
            called = self._string(name)
            yield _field(
                5,
                _number(1, number)
                + _number(2, called)
                + _number(3, called)
                + _number(4, self._string(file))
                + _number(5, first),
            )
        for text in self._strings:
            yield _field(6, text.encode())
        yield _number(9, int(profile.started_at * _NANO))
        yield _number(10, int(profile.seconds * _NANO))

    def _value_type(self, kind: str, unit: str) -> bytes:
        return _number(1, self._string(kind)) + _number(2, self._string(unit))

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _place(self, frame: Frame) -> int:
        return self._places.setdefault(frame, len(self._places) + 1)

    def _function(self, frame: Frame) -> int:
        key = (frame.function, frame.file, frame.first_line)
        return self._functions.setdefault(key, len(self._functions) + 1)


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1  # negative numbers, as protobuf has them
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    return bytes(written)


def _number(field: int, number: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(number)


def _field(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | _LENGTH) + _varint(len(content)) + content
