"""What an answer to a request for a pod means: pure, from the error that the client raised.

The same status says several things. A 429 is a budget's, if its cause says so, and else that the
server has too much to do; a 404 is the pod's, if the Status is about an object, and else that
nothing is served there; a 409 means another pod by that name only where the UID did not match.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final, final

from mcm.client.errors import (
    ApiError,
    Conflict,
    Forbidden,
    KubeError,
    MethodNotAllowed,
    NotFound,
    NotSent,
    ProtocolError,
    ServerTimeout,
    TooManyRequests,
    TransportError,
)
from mcm.drain.execution.action import Verb

_BY_BUDGET: Final = "DisruptionBudget"
_BY_NAMESPACE: Final = "NamespaceTerminating"
_SEVERAL: Final = "more than one PodDisruptionBudget"
_OTHER_UID: Final = re.compile(r"\bUID in (the )?precondition\b")


class AnswerKind(Enum):
    """Named as in logs and metrics."""

    ACCEPTED = "accepted"
    """The pod is on its way out."""
    GONE = "gone"
    REPLACED = "replaced"
    """Another pod bears its name by now: the one that was meant is gone."""
    HELD_BY_BUDGET = "held by budget"
    SEVERAL_BUDGETS = "several budgets"
    SERVER_BUSY = "server busy"
    """Not about this pod: the server, or the way to it, has too much to do."""
    NAMESPACE_ENDS = "namespace ends"
    """Its namespace is being deleted, and takes the pod away."""
    NO_EVICTION_API = "no eviction API"
    """Nothing is served where evictions are to be sent."""
    FORBIDDEN = "forbidden"
    LOST = "lost"
    """Nobody knows whether the server took the request: the pod will show."""
    FAILED = "failed"


_OVER: Final = frozenset({AnswerKind.ACCEPTED, AnswerKind.GONE, AnswerKind.REPLACED})
_LASTING: Final = frozenset({AnswerKind.FORBIDDEN, AnswerKind.SEVERAL_BUDGETS})
_OWN_WORDS: Final = {
    AnswerKind.NAMESPACE_ENDS: "its namespace is being deleted, and will take it away",
    AnswerKind.SERVER_BUSY: "the server has too much to do",
}


@final
@dataclass(frozen=True, slots=True)
class Answer:
    """``code`` is the HTTP status as text; ``<error>`` where there was no answer."""

    kind: AnswerKind
    code: str
    text: str = ""
    retry_after: float | None = None
    """Seconds for which the server wants to be left alone."""

    @property
    def is_over(self) -> bool:
        """Nothing more needs to be asked for this pod."""
        return self.kind in _OVER

    @property
    def lasting(self) -> bool:
        """Waiting alone will not help."""
        return self.kind in _LASTING


def answer_to(verb: Verb, error: KubeError | None) -> Answer:
    """Say what ``error`` (None: success) means for the pod that was asked for."""
    if error is None:
        return Answer(AnswerKind.ACCEPTED, "201" if verb is Verb.EVICT else "200")
    kind = _kind(verb, error)
    text = _OWN_WORDS.get(kind, f"{type(error).__name__}: {error}")
    if not isinstance(error, ApiError):
        return Answer(kind, "<error>", text)
    if kind is AnswerKind.HELD_BY_BUDGET:
        text = "; ".join(c.message for c in error.causes if c.reason == _BY_BUDGET) or text
    return Answer(kind, str(error.code), text, error.retry_after)


def _kind(verb: Verb, error: KubeError) -> AnswerKind:
    match error:
        case NotFound() | MethodNotAllowed() if verb is Verb.EVICT and not error.about:
            return AnswerKind.NO_EVICTION_API
        case NotFound():
            return AnswerKind.GONE
        case Conflict() if _OTHER_UID.search(error.message):
            return AnswerKind.REPLACED
        case TooManyRequests():
            return _too_many(error)
        case Forbidden():
            ends = any(cause.reason == _BY_NAMESPACE for cause in error.causes)
            return AnswerKind.NAMESPACE_ENDS if ends else AnswerKind.FORBIDDEN
        case ServerTimeout():
            return AnswerKind.LOST
        case ApiError() if error.code >= 500 and _SEVERAL in error.message:
            return AnswerKind.SEVERAL_BUDGETS
        case NotSent():
            return AnswerKind.FAILED
        case TransportError() | ProtocolError():
            return AnswerKind.LOST
        case _:
            return AnswerKind.FAILED


def _too_many(error: TooManyRequests) -> AnswerKind:
    by_budget = any(cause.reason == _BY_BUDGET for cause in error.causes)
    return AnswerKind.HELD_BY_BUDGET if by_budget else AnswerKind.SERVER_BUSY
