"""What a proxy can do to an exchange, and what it says when it speaks for itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import final


class Harm(Enum):
    """What becomes of an exchange. The word *frames* stands for ``Fate.frames``: how many frames of
    a watch pass unharmed first. A list has no frames: half of its body passes."""

    NONE = auto()
    DELAYED = auto()  # the request arrives late, behind those that were sent after it
    UNHEARD = auto()  # cut before the headers; the server never sees the request
    UNANSWERED = auto()  # cut before the headers; the server has served the request
    HEADERS_ONLY = auto()  # cut after the headers
    CUT_IN_LINE = auto()  # frames, half a frame, cut
    CUT_BETWEEN = auto()  # frames, cut
    ENDED = auto()  # frames, then an end in good order
    TRUNCATED = auto()  # frames, half a frame, then an end in good order
    STALLED = auto()  # frames, a pause, the rest
    REPLAYED = auto()  # frames, then again and again some earlier ones between the others
    SILENT = auto()  # accepted, never answered
    FROZEN = auto()  # frames, then nothing, and no end
    ANSWERED = auto()  # the proxy answers by itself, with ``Fate.code``
    LAST_WORDS = auto()  # frames, ``Fate.line``, then an end in good order


@final
@dataclass(frozen=True, slots=True)
class Fate:
    """``seconds``: of a delay or stall. ``hard``: a cut is a reset rather than an end of file.
    ``retry_after`` goes with an answer, if not empty."""

    harm: Harm = Harm.NONE
    frames: int = 0
    seconds: float = 0.0
    hard: bool = False
    code: int = 0
    retry_after: str = ""
    line: bytes = b""

    def __str__(self) -> str:
        parts = [self.harm.name.lower()]
        parts += [f"frames={self.frames}"] if self.frames else []
        parts += [f"seconds={self.seconds:.3f}"] if self.seconds else []
        parts += [f"code={self.code}"] if self.code else []
        parts += [f"retry_after={self.retry_after}"] if self.retry_after else []
        parts += [f"line={self.line[:40]!r}"] if self.line else []
        return " ".join(parts)


UNHARMED = Fate()


@final
@dataclass(frozen=True, slots=True)
class Exchange:
    """A request as the proxy sees it; ``number`` counts them from 1."""

    number: int
    method: str
    target: str
    headers: Mapping[str, str]

    @property
    def watch(self) -> bool:
        return "watch=1" in self.target


_REASONS = {401: "Unauthorized", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}


def status_document(code: int) -> bytes:
    """Return the Status an API server would send with ``code``."""
    reason = _REASONS.get(code, "")
    return (
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
        b'"message":"made up by a proxy","reason":"%b","code":%d}' % (reason.encode(), code)
    )


def error_event(code: int) -> bytes:
    return b'{"type":"ERROR","object":%b}\n' % status_document(code)


def own_answer(fate: Fate) -> bytes:
    """``line`` is the body, or else a Status."""
    body = fate.line or status_document(fate.code)
    wait = f"Retry-After: {fate.retry_after}\r\n" if fate.retry_after else ""
    head = (
        f"HTTP/1.1 {fate.code} Made Up\r\nContent-Type: application/json\r\n{wait}"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
