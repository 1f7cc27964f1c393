"""The eighteen machine codes a provider may answer with; a sibling of gRPC's, with one more."""

from __future__ import annotations

from enum import IntEnum


class Code(IntEnum):
    """Numbers and texts are wire values: they show in ``status.lastOperation.errorCode``."""

    OK = 0
    CANCELED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16
    UNINITIALIZED = 17

    @property
    def text(self) -> str:
        """The name as statuses and error texts spell it, e.g. ``DeadlineExceeded``."""
        return _TEXTS[self]

    @property
    def transient(self) -> bool:
        """Whether trying again soon may help without anybody changing anything."""
        return self in _TRANSIENT

    @classmethod
    def from_text(cls, text: str) -> Code:
        """Return the code spelled ``text``; names nobody knows mean ``UNKNOWN``."""
        return _BY_TEXT.get(text, cls.UNKNOWN)


_TEXTS = {
    code: "OK" if code is Code.OK else "".join(part.capitalize() for part in code.name.split("_"))
    for code in Code
}
_BY_TEXT = {text: code for code, text in _TEXTS.items()}
_TRANSIENT = frozenset({Code.UNKNOWN, Code.DEADLINE_EXCEEDED, Code.ABORTED, Code.UNAVAILABLE})
