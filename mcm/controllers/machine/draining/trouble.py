"""Which pods keep a drain from going on, in words: for people to mend, or likely to pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from mcm.api.core import Pod
from mcm.controllers.wording import first_few
from mcm.drain import Attempt, Snapshot, stuck

_PATIENCE = 3
"""A pod refused so many times is worth an event; once or twice is how budgets work."""
_NAMED = 3


@final
@dataclass(frozen=True, slots=True)
class Trouble:
    """What keeps a gentle drain from going on."""

    lasting: tuple[str, ...]
    """For people to mend: shown on the machine."""
    patient: tuple[str, ...]
    """Likely to pass: shown in an event, once it takes long."""
    held_back_in: frozenset[str]
    """The namespaces of pods that were refused: a change of budgets there may help."""


def trouble_of(snapshot: Snapshot) -> Trouble:
    held = [
        (pod, attempt)
        for pod in snapshot.arrangement.taken
        if (attempt := snapshot.attempts.get(pod.metadata.uid)) and attempt.accepted_at is None
    ]
    late = (f"pod {p.metadata.key}: its grace period is over" for p in stuck(snapshot))
    return Trouble(
        lasting=tuple(_words(pod, attempt) for pod, attempt in held if attempt.obstructed),
        patient=(*(_words(pod, a) for pod, a in held if _is_patient(a)), *late),
        held_back_in=frozenset(pod.metadata.namespace for pod, _ in held),
    )


def listed(texts: Sequence[str]) -> str:
    """Join the first few in a stable order, and count the rest."""
    return first_few(sorted(texts), _NAMED, separator="; ")


def _is_patient(attempt: Attempt) -> bool:
    return not attempt.obstructed and attempt.tries >= _PATIENCE


def _words(pod: Pod, attempt: Attempt) -> str:
    return f"pod {pod.metadata.key}: {attempt.refusal}"
