"""Is a machine to be kept, from annotations, phase and clock: keep on, end, or leave as it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import final

from mcm.api import names
from mcm.api.core import Node
from mcm.api.machine import Machine, MachinePhase
from mcm.api.names import (
    ANNOTATION_LAST_APPLIED_PRESERVE,
    ANNOTATION_PRESERVE,
    PRESERVE_FALSE,
    PRESERVE_VALUES,
)
from mcm.controllers.machine.preservation.node_condition import says_preserved
from mcm.controllers.replicas.deletion_order import preserved_until
from mcm.controllers.replicas.preserve_request import preserve_request

_SHOWN = 64
_ALLOWED = ", ".join(sorted(PRESERVE_VALUES))


class Verdict(Enum):
    """What is to become of a machine's preservation."""

    NONE = auto()
    """It is not kept, and bears no marks."""
    KEEP = auto()
    """Have it marked, drained if it failed, and timed."""
    END = auto()
    """Take our marks away; what was asked for stands, and may begin again."""
    END_AND_FORGET = auto()
    """Take our marks and the request away: its time is over, or it was not a user's to keep."""
    LEAVE = auto()
    """Change nothing before the time is over: nobody knows what is wanted."""


@final
@dataclass(frozen=True, slots=True)
class Decision:
    """``request`` is the value that counts, one of the four or empty. ``complaint`` says which
    annotation cannot be read; empty: none."""

    verdict: Verdict
    request: str = ""
    complaint: str = ""


def decide(
    machine: Machine, node: Node | None, now: datetime, *, ambiguous: bool = False
) -> Decision:
    """Decide about a machine that nobody has deleted.

    ``node`` is its Node; None: there is none. ``ambiguous``: it cannot be told whose Node it is,
    so that its word and its marks are nobody's business.
    """
    until = preserved_until(machine)
    over = until is not None and now >= until
    complaint = _complaint(machine, node)
    if ambiguous or (node is not None and not _is_readable(node)):
        if over:
            return Decision(Verdict.END, complaint=complaint)
        return Decision(Verdict.NONE if until is None else Verdict.LEAVE, complaint=complaint)
    request = preserve_request(machine, node)
    if request not in PRESERVE_VALUES:
        request = ""
    verdict = _verdict(request, failed=machine.phase == MachinePhase.FAILED, over=over)
    active = until is not None or (node is not None and says_preserved(node))
    if verdict is Verdict.END and not active:
        verdict = Verdict.NONE
    return Decision(verdict, request, complaint)


def _verdict(request: str, *, failed: bool, over: bool) -> Verdict:
    match request:
        case names.PRESERVE_NOW:
            return Verdict.END_AND_FORGET if over else Verdict.KEEP
        case names.PRESERVE_WHEN_FAILED:
            if over:
                return Verdict.END_AND_FORGET
            return Verdict.KEEP if failed else Verdict.END
        case names.PRESERVE_AUTO:
            return Verdict.KEEP if failed and not over else Verdict.END_AND_FORGET
        case _:
            return Verdict.END


def annotations_to_write(
    machine: Machine, node: Node | None, decision: Decision
) -> Mapping[str, str | None]:
    """Return the changes to the machine's annotations; None takes one away.

    Once the Node has spoken, the machine's own word is taken off, and the Node's remembered: else
    its removal could not be told from its never having been there.
    """
    present = machine.metadata.annotations
    wanted = {
        name: present[name]
        for name in (ANNOTATION_PRESERVE, ANNOTATION_LAST_APPLIED_PRESERVE)
        if name in present
    }
    before = dict(wanted)
    if decision.verdict is Verdict.END_AND_FORGET:
        wanted.clear()
    elif node is not None and _is_readable(node) and _counts(node, machine):
        on_node = node.metadata.annotations.get(ANNOTATION_PRESERVE)
        wanted = {ANNOTATION_LAST_APPLIED_PRESERVE: on_node} if on_node else {}
    return {
        name: wanted.get(name)
        for name in (*before, *wanted)
        if before.get(name) != wanted.get(name)
    }


def _is_readable(node: Node) -> bool:
    return node.metadata.annotations.get(ANNOTATION_PRESERVE, PRESERVE_FALSE) in PRESERVE_VALUES


def _counts(node: Node, machine: Machine) -> bool:
    """Tell whether the Node's word, or its being taken back, makes the machine's own void."""
    followed = machine.metadata.annotations.get(ANNOTATION_LAST_APPLIED_PRESERVE)
    return bool(node.metadata.annotations.get(ANNOTATION_PRESERVE) or followed)


def _complaint(machine: Machine, node: Node | None) -> str:
    on_machine = machine.metadata.annotations.get(ANNOTATION_PRESERVE, "")
    if node is not None and not _is_readable(node):
        value = node.metadata.annotations[ANNOTATION_PRESERVE]
        return _not_a_value(value, f"node {node.metadata.name}", "nothing changes until it is")
    if node is not None and _counts(node, machine):
        return ""
    if on_machine and on_machine not in PRESERVE_VALUES:
        return _not_a_value(on_machine, "the machine", "it counts as absent until it is")
    return ""


def _not_a_value(value: str, where: str, until_then: str) -> str:
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
    return f"{ANNOTATION_PRESERVE}={shown!r} on {where} is none of {_ALLOWED}: {until_then}"
