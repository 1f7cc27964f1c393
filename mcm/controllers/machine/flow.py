"""Which steps a machine is due for, derived from what is observed and from nothing else."""

from __future__ import annotations

from enum import Enum, auto

from mcm.api.machine import Machine, MachinePhase
from mcm.api.names import MACHINE_FINALIZER


class Step(Enum):
    """One kind of work on a machine. A pass does the steps it is due for, in order."""

    CLAIM = auto()
    """Put our finalizer on it: before anything exists that would have to be cleaned up."""
    TEND = auto()
    """Keep its Node as the template says, and judge its health."""
    CREATE = auto()
    """See that its VM exists, and record it."""
    TERMINATE = auto()
    """Take its pods, VM and Node away, then let it go."""


_UNFINISHED = ("", MachinePhase.CRASH_LOOP_BACK_OFF)


def steps_of(machine: Machine, *, has_target: bool) -> tuple[Step, ...]:
    """Return the steps ``machine`` is due for; none when there is nothing to do for it.

    A machine on its way out that lacks our finalizer is somebody else's to finish.
    """
    claimed = MACHINE_FINALIZER in machine.metadata.finalizers
    if machine.metadata.deletion_timestamp is not None:
        return (Step.TERMINATE,) if claimed else ()
    steps: list[Step] = [] if claimed else [Step.CLAIM]
    if has_target and machine.node_name and machine.phase:
        steps.append(Step.TEND)
    if needs_creation(machine):
        steps.append(Step.CREATE)
    return tuple(steps)


def needs_creation(machine: Machine) -> bool:
    """Tell whether the creation flow is not done with ``machine``.

    A Failed machine without VM is not tried again if a set owns it: the set replaces it, and a VM
    made meanwhile would live for seconds. A machine on its own has nobody else to recover it.
    """
    if machine.phase in _UNFINISHED:
        return True
    if machine.spec.provider_id or machine.phase == MachinePhase.TERMINATING:
        return False
    return not (
        machine.phase == MachinePhase.FAILED and machine.metadata.controller_ref() is not None
    )
