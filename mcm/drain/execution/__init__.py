"""The requests of a drain: what is asked for a pod, and what each answer means for it."""

from __future__ import annotations

from mcm.drain.execution.action import Action, Verb
from mcm.drain.execution.attempts import Attempt, Attempts
from mcm.drain.execution.execute import Refusal, execute

__all__ = ["Action", "Attempt", "Attempts", "Refusal", "Verb", "execute"]
