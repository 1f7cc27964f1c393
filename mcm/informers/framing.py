"""From chunks of bytes, cut anywhere, to lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

from mcm.client.errors import ProtocolError

LONGEST_LINE = 32 * 1024 * 1024
"""Bytes; an API server stores no object that is even a tenth of this."""


class LineTooLong(ProtocolError):
    """The peer sends something that is not lines."""


@final
class LineSplitter:
    r"""Splits on ``\n`` only: U+0085, U+2028 and ``\r`` are content. Empty lines are dropped."""

    __slots__ = ("_held", "_longest", "_parts")

    def __init__(self, *, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._held = 0

    @property
    def torn(self) -> bool:
        """Whether the stream, if it ended here, would end in the middle of a line."""
        return any(part.strip() for part in self._parts)

    def feed(self, chunk: bytes) -> Sequence[bytes]:
        """Return the lines that ``chunk`` completes. Raises LineTooLong."""
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if lines and self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts.clear()
            self._held = 0
        if rest:
            self._hold(rest)
        if b"" in lines or b"\r" in lines:
            return [line for line in lines if line not in (b"", b"\r")]
        return lines

    def _hold(self, rest: bytes) -> None:
        self._parts.append(rest)
        self._held += len(rest)
        if self._held > self._longest:
            raise LineTooLong(f"a line of more than {self._longest} bytes")
