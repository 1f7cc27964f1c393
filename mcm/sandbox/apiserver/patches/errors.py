"""The one error of all kinds of patches."""

from __future__ import annotations


class PatchError(Exception):
    """A patch that is malformed (400), too large (413) or does not apply to the object (422)."""

    def __init__(self, message: str, code: int) -> None:
        self.message = message
        self.code = code
        super().__init__(message)
