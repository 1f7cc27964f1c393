"""Whether a write that failed has happened, has not, or may have."""

from __future__ import annotations

from mcm.client.errors import (
    Conflict,
    KubeError,
    NotSent,
    ProtocolError,
    ServerError,
    TooManyRequests,
    TransportError,
)


def may_have_happened(error: KubeError) -> bool:
    """Tell whether a write that ended in ``error`` may have been carried out all the same."""
    if isinstance(error, NotSent):
        return False
    return isinstance(error, TransportError | ServerError | ProtocolError)


def is_refusal(error: KubeError) -> bool:
    """Tell whether the server has considered a write and will not have it: the next try, with the
    same knowledge, ends the same way. Not so a lost race, overload, or a lost answer."""
    passing = Conflict | TooManyRequests | TransportError | ServerError | ProtocolError
    return not isinstance(error, passing)
