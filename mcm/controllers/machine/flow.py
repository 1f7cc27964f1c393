"""Which steps a machine is due for, in which order, and which of them need which others.

Derived from what is observed and from nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum, auto

from mcm.api.machine import Machine, MachinePhase, OperationType
from mcm.api.names import ANNOTATION_PRESERVE, MACHINE_FINALIZER
from mcm.controllers.machine.class_migration.older_class import older_class_of
from mcm.controllers.machine.initialization import is_recorded_as_uninitialized
from mcm.controllers.machine.own_conditions import OwnCondition, find_own


class Step(StrEnum):
    """One kind of work on a machine."""

    CLAIM = auto()
    """Put our finalizer on it if it may have a VM; one without is claimed by its creation, once the
    provider has answered for it: a class at fault then keeps nothing from going."""
    MIGRATE_CLASS = auto()
    """Have a MachineClass made of the class of an older kind that it names."""
    VALIDATE = auto()
    """Say what is wrong with a machine that exists already."""
    SETTLE_NODE = auto()
    """See that its label names its own Node, or say that nobody knows whose the Node is."""
    DELETE_WITH_NODE = auto()
    """Delete it if somebody deletes its Node."""
    UPDATE_IN_PLACE = auto()
    """Have what its Node runs renewed, as its set and its node agent ask."""
    CHECK_HEALTH = auto()
    """Judge it by its Node's conditions; before anything that a Node's server could hold up."""
    SYNC_NODE = auto()
    """Keep its Node as the template says."""
    PRESERVE = auto()
    """Keep it as it is for somebody to look at, or stop that."""
    KEEP_TOKEN = auto()
    """Keep what its VM joins with valid until it has joined."""
    UPDATE_VM = auto()
    """Bring its VM to what its class says now, while it runs."""
    CREATE = auto()
    """See that its VM exists, and record it."""
    GIVE_UP_CREATION = auto()
    """Fail it if it was not created in time. Needs nothing, so that it happens wherever all else is
    stuck; comes last, so that what can be done now is done before."""
    DELETE = auto()
    """Take its pods, VM and Node away, then let it go."""


NEEDS: Mapping[Step, frozenset[Step]] = {
    Step.DELETE_WITH_NODE: frozenset({Step.CLAIM}),
    Step.SYNC_NODE: frozenset({Step.DELETE_WITH_NODE}),
    Step.UPDATE_IN_PLACE: frozenset({Step.DELETE_WITH_NODE}),
    Step.UPDATE_VM: frozenset({Step.DELETE_WITH_NODE}),
    Step.CREATE: frozenset({Step.CLAIM, Step.DELETE_WITH_NODE}),
}
"""What must not have failed before a step. All others are taken whatever came of the rest: health
is judged even if the Node cannot be patched."""

_ONCE_JOINED = (
    Step.VALIDATE,
    Step.SETTLE_NODE,
    Step.DELETE_WITH_NODE,
    Step.UPDATE_IN_PLACE,
    Step.CHECK_HEALTH,
    Step.SYNC_NODE,
)
_WHILE_JOINING = tuple(step for step in _ONCE_JOINED if step is not Step.UPDATE_IN_PLACE)
_OF_ONE_READ_IN_PART = (
    Step.CLAIM,
    Step.VALIDATE,
    Step.DELETE_WITH_NODE,
    Step.CHECK_HEALTH,
    Step.CREATE,
    Step.GIVE_UP_CREATION,
)
"""What may be done for a machine of which not all could be read. ``CREATE`` says what that is, and
goes no further."""
_PHASE = "status.currentStatus.phase"
_UPDATABLE = (
    MachinePhase.PENDING,
    MachinePhase.AVAILABLE,
    MachinePhase.RUNNING,
    MachinePhase.UNKNOWN,
)
"""What is Failed is replaced, and what is being updated in place has enough on its hands."""
_UNFINISHED = ("", MachinePhase.CRASH_LOOP_BACK_OFF)
_JOINING = (*_UNFINISHED, MachinePhase.PENDING)


def steps_of(machine: Machine, *, has_target: bool) -> tuple[Step, ...]:
    """Return the steps ``machine`` is due for; none when there is nothing to do for it.

    A machine on its way out that lacks our finalizer is somebody else's to finish.
    """
    claimed = MACHINE_FINALIZER in machine.metadata.finalizers
    if machine.metadata.deletion_timestamp is not None:
        return _of_its_end(machine) if claimed else ()
    steps = [Step.CLAIM] if not claimed and may_have_vm(machine) else []
    if _class_is_to_be_migrated(machine):
        steps.append(Step.MIGRATE_CLASS)
    if has_target and machine.phase:
        steps.extend(_of_its_node(machine))
    if machine.phase != MachinePhase.TERMINATING and (
        Step.CHECK_HEALTH in steps or _is_to_be_kept(machine)
    ):
        steps.append(Step.PRESERVE)
    if has_target and machine.node_name and machine.phase == MachinePhase.PENDING:
        steps.append(Step.KEEP_TOKEN)
    if needs_creation(machine):
        steps.append(Step.CREATE)
    elif machine.spec.provider_id and _is_updatable(machine):
        steps.append(Step.UPDATE_VM)
    if is_being_created(machine, has_target=has_target):
        steps.append(Step.GIVE_UP_CREATION)
    if machine.metadata.faults:
        return _of_one_read_in_part(machine, steps)
    return tuple(steps)


def _of_its_end(machine: Machine) -> tuple[Step, ...]:
    """Its VM is deleted by what its class says, so it must have one; nothing waits for that."""
    migrates = older_class_of(machine) is not None and may_have_vm(machine)
    return (Step.MIGRATE_CLASS, Step.DELETE) if migrates else (Step.DELETE,)


def _class_is_to_be_migrated(machine: Machine) -> bool:
    """Tell whether it is, or has been and the machine says otherwise still."""
    told = find_own(machine.status, OwnCondition.CLASS_MIGRATED) is not None
    return told or older_class_of(machine) is not None


def _is_updatable(machine: Machine) -> bool:
    """Tell whether its VM may be updated while it runs, and whoever updates it in place is done."""
    draining = machine.status.last_operation.type == OperationType.DRAIN_NODE
    return machine.phase in _UPDATABLE and not draining


def _is_to_be_kept(machine: Machine) -> bool:
    """Tell whether the machine itself says so, or what was said is complained of; its Node may say
    so as well."""
    if machine.status.current_status.preserve_expiry_time is not None:
        return True
    if find_own(machine.status, OwnCondition.PRESERVATION_APPLIED) is not None:
        return True
    return ANNOTATION_PRESERVE in machine.metadata.annotations


def _of_its_node(machine: Machine) -> tuple[Step, ...]:
    if machine.node_name:
        return _WHILE_JOINING if machine.phase in _JOINING else _ONCE_JOINED
    lost_its_label = bool(machine.spec.provider_id) and not needs_creation(machine)
    return (Step.SETTLE_NODE,) if lost_its_label else ()


def _of_one_read_in_part(machine: Machine, steps: Collection[Step]) -> tuple[Step, ...]:
    """Leave out what would take what was not read for something that is not there."""
    if machine.metadata.is_faulty_at(_PHASE):
        return (Step.VALIDATE,)
    due = tuple(step for step in steps if step in _OF_ONE_READ_IN_PART)
    told = Step.CREATE in due or Step.VALIDATE in due
    return due if told else (*due, Step.VALIDATE)


def next_step(
    machine: Machine,
    *,
    has_target: bool,
    done: Mapping[Step, str],
    failed: Collection[Step],
) -> Step | None:
    """Return the step to take now; None if this pass has nothing left to do."""
    steps = steps_of(machine, has_target=has_target)
    return next_of(steps, machine.metadata.resource_version, done=done, failed=failed)


def next_of(
    steps: Iterable[Step], version: str, *, done: Mapping[Step, str], failed: Collection[Step]
) -> Step | None:
    """Return which of the ``steps`` that a machine is due for, at its ``version``, to take now.

    ``done`` says at which version of the machine a step was last done in this pass: one that has
    not seen what others have written since is due again, as if the write had come from outside.
    """
    for step in steps:
        if done.get(step) == version:
            continue
        if not failed or (step not in failed and not _is_blocked(step, failed)):
            return step
    return None


def _is_blocked(step: Step, failed: Collection[Step]) -> bool:
    return any(n in failed or _is_blocked(n, failed) for n in NEEDS.get(step, ()))


def may_have_vm(machine: Machine) -> bool:
    """Tell whether something about ``machine`` says that there is, or was, a VM."""
    if machine.spec.provider_id or machine.node_name:
        return True
    return machine.phase not in (*_UNFINISHED, MachinePhase.FAILED)


def is_being_created(machine: Machine, *, has_target: bool) -> bool:
    """Tell whether ``machine`` is on its way to a VM that can join, and stuck if that takes long.
    From then on its health check keeps the time."""
    if machine.phase == MachinePhase.PENDING:
        return not (has_target and machine.node_name)
    return machine.phase in _UNFINISHED


def needs_creation(machine: Machine) -> bool:
    """Tell whether the creation flow is not done with ``machine``.

    A Failed machine whose VM is missing, or not initialised, is not tried again if a set owns it:
    the set replaces it, and a VM made meanwhile would live for seconds. A machine on its own has
    nobody else to recover it.
    """
    if machine.metadata.is_faulty_at(_PHASE):
        return False
    if machine.phase in _UNFINISHED:
        return True
    if machine.phase == MachinePhase.TERMINATING:
        return False
    if machine.spec.provider_id and not is_recorded_as_uninitialized(machine):
        return False
    return not (
        machine.phase == MachinePhase.FAILED and machine.metadata.controller_ref() is not None
    )
