from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.machine import LastOperation, Machine, MachinePhase
from mcm.controllers.machine.flow import Step, needs_creation, steps_of
from tests.unit.machine.objects import BORN, machine

TERMINATING = MachinePhase.TERMINATING
OF_ITS_NODE = (
    Step.VALIDATE,
    Step.SETTLE_NODE,
    Step.DELETE_WITH_NODE,
    Step.CHECK_HEALTH,
    Step.SYNC_NODE,
    Step.PRESERVE,
)
ONCE_JOINED = (*OF_ITS_NODE[:3], Step.UPDATE_IN_PLACE, *OF_ITS_NODE[3:])


@pytest.mark.parametrize(
    ("subject", "steps"),
    [
        (machine(claimed=False), (Step.CREATE, Step.GIVE_UP_CREATION)),
        (machine(claimed=False, phase="CrashLoopBackOff"), (Step.CREATE, Step.GIVE_UP_CREATION)),
        (machine(claimed=False, provider_id="p"), (Step.CLAIM, Step.CREATE, Step.GIVE_UP_CREATION)),
        (
            machine(claimed=False, phase="CrashLoopBackOff", node="n"),
            (Step.CLAIM, *OF_ITS_NODE, Step.CREATE, Step.GIVE_UP_CREATION),
        ),
        (machine(claimed=False, phase="Failed", owned=True), ()),
        (machine(), (Step.CREATE, Step.GIVE_UP_CREATION)),
        (machine(provider_id="p"), (Step.CREATE, Step.GIVE_UP_CREATION)),
        (machine(phase="CrashLoopBackOff", provider_id="p"), (Step.CREATE, Step.GIVE_UP_CREATION)),
        (
            machine(phase="Pending", node="n", provider_id="p"),
            (*OF_ITS_NODE, Step.KEEP_TOKEN, Step.UPDATE_VM),
        ),
        (
            machine(phase="Pending", provider_id="p"),
            (Step.SETTLE_NODE, Step.UPDATE_VM, Step.GIVE_UP_CREATION),
        ),
        (machine(phase="Running", node="n", provider_id="p"), (*ONCE_JOINED, Step.UPDATE_VM)),
        (machine(phase="Unknown", node="n", provider_id="p"), (*ONCE_JOINED, Step.UPDATE_VM)),
        (machine(phase="InPlaceUpdating", node="n", provider_id="p"), ONCE_JOINED),
        (
            machine(
                phase="Running",
                node="n",
                provider_id="p",
                operation=LastOperation(type="DrainNode", state="Processing"),
            ),
            ONCE_JOINED,
        ),
        (
            machine(phase="CrashLoopBackOff", node="n", provider_id="p"),
            (*OF_ITS_NODE, Step.CREATE, Step.GIVE_UP_CREATION),
        ),
        (
            machine(phase="Running", node="n", claimed=False, provider_id="p"),
            (Step.CLAIM, *ONCE_JOINED, Step.UPDATE_VM),
        ),
        (machine(phase="Running", provider_id="p"), (Step.SETTLE_NODE, Step.UPDATE_VM)),
        (machine(phase="Failed"), (Step.CREATE,)),
        (machine(phase="Failed", owned=True), ()),
        (machine(phase="Failed", owned=True, provider_id="p", node="n"), ONCE_JOINED),
        (machine(deleted=BORN), (Step.DELETE,)),
        (machine(deleted=BORN, phase="Running", node="n"), (Step.DELETE,)),
        (machine(deleted=BORN, claimed=False), ()),
    ],
)
def test_the_steps_follow_from_what_is_observed(subject: Machine, steps: tuple[Step, ...]) -> None:
    assert steps_of(subject, has_target=True) == steps


def test_without_target_cluster_there_is_no_node_to_look_after() -> None:
    subject = machine(phase="Available", provider_id="p", labels={"node": "n"})
    assert steps_of(subject, has_target=False) == (Step.UPDATE_VM,)


def test_a_machine_said_to_terminate_that_nobody_deleted_gets_no_vm() -> None:
    assert not needs_creation(machine(phase=TERMINATING))


@given(phase=st.sampled_from(["", *MachinePhase]), claimed=st.booleans(), owned=st.booleans())
def test_a_machine_on_its_way_out_is_never_made(phase: str, *, claimed: bool, owned: bool) -> None:
    subject = machine(phase=phase, deleted=BORN, claimed=claimed, owned=owned, node="n")
    assert set(steps_of(subject, has_target=True)) <= {Step.DELETE}
