"""What ``Progressing`` adds about machines that are updated in place, and wait for somebody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from mcm.api.machine import MachineDeploymentCondition
from mcm.api.names import (
    CONDITION_PROGRESSING,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
)
from mcm.api.strategies import is_orchestrated_by_people
from mcm.controllers.deployment.conditions import Conditions
from mcm.controllers.deployment.in_place_update.standing import Member, Standing, UpdateView
from mcm.wording import first_few

_BEGINS: Final = " (In place: "
_NAMED: Final = 3
_LONGEST_REASON: Final = 200


def with_remark(conditions: Conditions, remark: str) -> Conditions:
    """Let the message of ``Progressing`` end with ``remark``; without one, with none.

    Its times stay: what is remarked is no progress.
    """

    def remarked(condition: MachineDeploymentCondition) -> MachineDeploymentCondition:
        said = condition.message.partition(_BEGINS)[0]
        message = f"{said}{_BEGINS}{remark})" if remark else said
        return msgspec.structs.replace(condition, message=message)

    return tuple(remarked(c) if c.type == CONDITION_PROGRESSING else c for c in conditions)


def remark_on(view: UpdateView) -> str:
    """Say which updates failed and what they wait for; empty if there is nothing to say."""
    if not view.strategy:
        return ""
    return "; ".join(said for said in (_failures(view), _waiting(view)) if said)


def _failures(view: UpdateView) -> str:
    failed = sorted(
        (m for m in view.members.values() if m.standing is Standing.FAILED), key=lambda m: m.name
    )
    if not failed:
        return ""
    told = first_few([f"machine {m.name}: {_reason(m)}" for m in failed], _NAMED)
    remedy = f"taking {LABEL_UPDATE_RESULT} off a Node tries it again"
    return f"{_counted(failed, 'update')} failed ({told}; {remedy})"


def _reason(member: Member) -> str:
    marks = member.marks
    said = marks.failed_reason if marks is not None else ""
    text = " ".join((said or member.machine.status.last_operation.description).split())
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"


def _waiting(view: UpdateView) -> str:
    if not (view.going_on and is_orchestrated_by_people(view.snapshot.deployment.spec)):
        return ""
    waiting = [
        m for m in view.members.values() if view.is_old(m) and m.standing is Standing.AT_REST
    ]
    if not waiting:
        return ""
    verb = "waits" if len(waiting) == 1 else "wait"
    return f"{_counted(waiting, 'machine')} {verb} for the label {LABEL_SELECTED_FOR_UPDATE}"


def _counted(items: Sequence[Member], noun: str) -> str:
    return f"{len(items)} {noun}" if len(items) == 1 else f"{len(items)} {noun}s"
