from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.machine import LastOperation, Machine
from mcm.controllers.safety.controller import class_to_look_at
from mcm.controllers.safety.orphans import (
    GRACE,
    GRACE_OF_NAMELESS,
    Collected,
    Unclaimed,
    Vm,
    is_claimed,
    vms_in,
)
from mcm.informers import Change
from tests.unit.machine.objects import BORN, machine

VM = Vm("p-1", "m")


@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        (None, False),
        (machine(provider_id="p-1", phase="Running"), True),
        (machine(provider_id="p-2", phase="Running"), False),
        (machine(provider_id="p-2", phase="Failed"), False),
        (machine(provider_id="p-2", phase=""), True),
        (machine(provider_id="p-2", phase="CrashLoopBackOff"), True),
        (machine(provider_id="", phase="Failed"), True),
        (machine(provider_id="p-2", phase="Terminating", deleted=BORN), True),
    ],
)
def test_a_vm_is_an_orphan_only_if_its_machine_clearly_has_another(
    owner: Machine | None, *, expected: bool
) -> None:
    assert is_claimed(VM, owner) is expected


def test_an_orphan_is_due_after_the_grace_and_not_before() -> None:
    seen = Unclaimed()
    assert seen.look([VM], 0.0) == ()
    assert seen.next_due(0.0) == GRACE
    assert seen.look([VM], GRACE - 1) == ()
    assert seen.look([VM], GRACE) == (VM,)


def test_who_was_claimed_in_between_starts_anew() -> None:
    seen = Unclaimed()
    seen.look([VM], 0.0)
    seen.look([], 100.0)
    assert seen.look([VM], GRACE) == ()
    assert seen.next_due(GRACE) == GRACE


def test_what_was_collected_is_forgotten() -> None:
    seen = Unclaimed()
    seen.look([VM], 0.0)
    seen.forget(VM)
    assert seen.next_due(1.0) is None


@given(st.lists(st.tuples(st.floats(1, 200), st.booleans()), max_size=30))
def test_nothing_is_due_that_was_not_unclaimed_all_the_time(
    looks: list[tuple[float, bool]],
) -> None:
    seen, now = Unclaimed(), 0.0
    since: float | None = None
    for step, unclaimed in looks:
        now += step
        since = (now if since is None else since) if unclaimed else None
        due = seen.look([VM] if unclaimed else [], now)
        assert bool(due) is (since is not None and now >= since + GRACE)


def test_vms_come_in_a_stable_order() -> None:
    assert list(vms_in({"b": "x", "a": "y"})) == [Vm("a", "y"), Vm("b", "x")]


AMBIGUOUS = machine(operation=LastOperation(description="code = [OutOfRange] message = [two]"))


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (Change(machine(), None), "ns/c"),
        (Change(None, machine()), ""),
        (Change(machine(), machine(phase="Running")), ""),
        (Change(machine(), AMBIGUOUS), "ns/c"),
        (Change(AMBIGUOUS, AMBIGUOUS), ""),
    ],
)
def test_a_class_is_looked_at_when_a_machine_ends_or_has_several_vms(
    change: Change[Machine], key: str
) -> None:
    assert class_to_look_at(change) == key


def test_a_nameless_vm_is_due_when_no_creation_can_still_claim_it() -> None:
    seen, nameless = Unclaimed(), Vm("p-2", "")
    seen.look([VM, nameless], 0.0)
    assert seen.look([VM, nameless], GRACE) == (VM,)
    assert seen.look([VM, nameless], GRACE_OF_NAMELESS) == (VM, nameless)
    assert seen.vms == (VM, nameless)


def test_a_vm_that_was_collected_is_not_so_again_while_the_cloud_may_still_list_it() -> None:
    collected = Collected()
    collected.add(VM, 10.0)
    assert collected.holds(VM, 10.0 + GRACE - 1)
    assert collected.holds(Vm(VM.provider_id, "another name"), 11.0)
    assert not collected.holds(Vm("p-2", VM.machine_name), 11.0)
    assert not collected.holds(VM, 10.0 + GRACE)
    collected.discard(VM)
    assert not collected.holds(VM, 11.0)
