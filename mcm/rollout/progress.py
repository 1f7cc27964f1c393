"""How far a rollout is, in kubectl's words, when it is over, and which machines hold it up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, final

from mcm.api.machine import (
    Machine,
    MachineDeployment,
    MachinePhase,
    OperationState,
)
from mcm.api.names import (
    CONDITION_FROZEN,
    CONDITION_PROGRESSING,
    REASON_DEADLINE_EXCEEDED,
    STATUS_FALSE,
    STATUS_TRUE,
)
from mcm.controllers.conditions import find
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.revisions.numbers import revision_of
from mcm.controllers.deployment.status.progress import is_complete
from mcm.controllers.overshooting.decision import is_frozen
from mcm.controllers.replicas.held_up_drains import is_held_up, worst_of
from mcm.controllers.replicas.membership import is_terminating

_IN_TROUBLE: Final = frozenset(
    {
        MachinePhase.FAILED,
        MachinePhase.CRASH_LOOP_BACK_OFF,
        MachinePhase.UNKNOWN,
        MachinePhase.IN_PLACE_UPDATE_FAILED,
    }
)


@final
@dataclass(frozen=True, slots=True)
class Progress:
    """One look. ``done`` and ``failure`` (why it will not get on by itself) end the watching.

    ``message`` is kubectl's, ``left`` its part that says what is waited for. ``updated`` of
    ``desired`` machines are of the new template, and ``serving`` of these serve; ``available`` of
    all do, and ``old`` are left to go. ``troubles`` are machines and what is the matter with each.
    """

    message: str
    desired: int
    left: str = ""
    updated: int = 0
    serving: int = 0
    available: int = 0
    old: int = 0
    done: bool = False
    failure: str = ""
    troubles: tuple[tuple[str, str], ...] = ()

    @property
    def over(self) -> bool:
        return self.done or bool(self.failure)


def progress_of(snapshot: DeploymentSnapshot, *, revision: int = 0) -> Progress:
    """Judge what the deployment says of itself. ``revision`` (0: any) is the one that is meant."""
    deployment = snapshot.deployment
    status = deployment.status
    failure = _failure(snapshot, revision)
    done = not failure and is_complete(status, deployment)
    new = snapshot.new
    return Progress(
        message=_message(deployment, done=done),
        desired=deployment.spec.replicas,
        left=_what_is_left(deployment),
        updated=status.updated_replicas,
        serving=new.status.available_replicas if new else 0,
        available=status.available_replicas,
        old=max(0, status.replicas - status.updated_replicas),
        done=done,
        failure=failure,
        troubles=tuple(_troubles(m for owned in snapshot.machines.values() for m in owned)),
    )


def _message(deployment: MachineDeployment, *, done: bool) -> str:
    name = deployment.metadata.name
    if done:
        return f'deployment "{name}" successfully rolled out'
    if not _observed(deployment):
        return "Waiting for deployment spec update to be observed..."
    what = _what_is_left(deployment)
    paused = " (paused: `mcm rollout resume` lets it go on)" if deployment.spec.paused else ""
    return f'Waiting for deployment "{name}" rollout to finish: {what}...{paused}'


def _what_is_left(deployment: MachineDeployment) -> str:
    status, desired = deployment.status, deployment.spec.replicas
    if status.updated_replicas < desired:
        return f"{status.updated_replicas} out of {desired} new machines have been updated"
    if status.replicas > status.updated_replicas:
        old = status.replicas - status.updated_replicas
        return f"{old} old machines are pending termination"
    if status.replicas > desired:
        return f"{status.replicas - desired} surplus machines are pending termination"
    return f"{status.available_replicas} of {desired} updated machines are available"


def _failure(snapshot: DeploymentSnapshot, revision: int) -> str:
    deployment = snapshot.deployment
    name = deployment.metadata.name
    if deployment.metadata.deletion_timestamp is not None:
        return f'deployment "{name}" is being deleted'
    running = revision_of(deployment.metadata.annotations)
    if revision and running != revision:
        return f"desired revision ({revision}) is different from the running revision ({running})"
    if not _observed(deployment) or is_complete(deployment.status, deployment):
        return ""
    progressing = find(deployment.status.conditions, CONDITION_PROGRESSING)
    if progressing is not None and progressing.status == STATUS_FALSE:
        said = f" ({progressing.message})" if progressing.message else ""
        if progressing.reason == REASON_DEADLINE_EXCEEDED:
            return f'deployment "{name}" exceeded its progress deadline{said}'
        return f'deployment "{name}" does not get on: {progressing.reason}{said}'
    return _frozen(deployment) if _may_be_held_by_a_freeze(snapshot) else ""


def _may_be_held_by_a_freeze(snapshot: DeploymentSnapshot) -> bool:
    """Tell whether the new set is frozen and lacks machines, or may be, as it cannot be seen. An
    old set that is frozen goes on shrinking."""
    new = snapshot.new
    if new is None:
        return not snapshot.sets
    staying = sum(not is_terminating(m) for m in snapshot.machines[new.metadata.uid])
    return is_frozen(new.metadata) and staying < new.spec.replicas


def _frozen(deployment: MachineDeployment) -> str:
    condition = find(deployment.status.conditions, CONDITION_FROZEN)
    by_condition = condition is not None and condition.status == STATUS_TRUE
    if not by_condition and not is_frozen(deployment.metadata):
        return ""
    said = f" ({condition.message})" if condition is not None and condition.message else ""
    return f'deployment "{deployment.metadata.name}" is frozen{said}'


def _observed(deployment: MachineDeployment) -> bool:
    return deployment.status.observed_generation >= deployment.metadata.generation


def _troubles(machines: Iterable[Machine]) -> Iterator[tuple[str, str]]:
    for machine in sorted(machines, key=lambda m: m.metadata.name):
        failing = machine.status.last_operation.state == OperationState.FAILED
        if failing or machine.phase in _IN_TROUBLE or is_held_up(machine):
            yield machine.metadata.name, trouble_of(machine)


def trouble_of(machine: Machine) -> str:
    """Say of a machine in one line what is the matter: phase, its own error code, its own text."""
    operation = machine.status.last_operation
    if is_held_up(machine) and operation.state != OperationState.FAILED:
        return f"{machine.phase}: its drain is held up: {worst_of(machine)}"
    code = f" [{operation.error_code}]" if operation.error_code else ""
    text = " ".join(operation.description.split())
    return f"{machine.phase or 'new'}{code}{': ' if text else ''}{text}"
