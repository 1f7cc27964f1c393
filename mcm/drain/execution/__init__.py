"""The requests of a drain: what is asked for a pod, and what each answer means for it.

:class:`PodRequests` is one for a cluster and process: it lets drains ask in turn, keeps account of
the disruptions under way, and knows whether there is an eviction API at all. What follows from an
answer is the plan's to decide.
"""

from __future__ import annotations

from mcm.drain.execution.action import Action, Step, Verb
from mcm.drain.execution.answers import Answer, AnswerKind, answer_to
from mcm.drain.execution.eviction_api import EvictionAPI
from mcm.drain.execution.requests import Answered, Listener, PodRequests
from mcm.drain.execution.turns import Turns

__all__ = [
    "Action",
    "Answer",
    "AnswerKind",
    "Answered",
    "EvictionAPI",
    "Listener",
    "PodRequests",
    "Step",
    "Turns",
    "Verb",
    "answer_to",
]
