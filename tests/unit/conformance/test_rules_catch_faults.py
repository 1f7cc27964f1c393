"""Each rule of the conformance kit finds what it is there to find, and passes what keeps it."""

from __future__ import annotations

import asyncio
import dataclasses
from datetime import UTC, datetime

import pytest

from mcm.api.machine import MachineClass
from mcm.api.meta import ObjectMeta
from mcm.clock import LoopClock
from mcm.conformance import RULES, NotApplicable, Refusal, Rule, Subject, Violation
from mcm.driver import Code
from mcm.simulation.virtualtime import run_virtual
from tests.unit.conformance.faulty_driver import PASSWORD, Cloud, FaultyDriver

FAULTS = {
    "create-names-the-vm-and-its-node": [
        "names no ID",
        "names a long node",
        "answers nothing",
        "raises anything",
        "cancels itself",
        "changes its request",
        "logs the secret",
        "remembers the secret",
        "deletes nothing",
    ],
    "status-finds-a-vm-by-its-machines-name": ["finds by ID only", "names nothing"],
    "list-names-a-vms-machine": ["lists without names"],
    "status-of-what-never-was-is-not-found": ["finds anything", "calls nothing internal"],
    "a-deleted-vm-is-gone": ["deletes nothing"],
    "a-vm-is-deleted-by-its-machines-name": ["deletes by ID only"],
    "an-orphan-is-deleted-by-its-provider-id": ["deletes by class only"],
    "status-and-list-change-nothing": ["touches what it looks at"],
    "a-repeated-create-adopts-the-vm": ["never adopts"],
    "another-processes-create-adopts-the-vm": ["knows only its own"],
    "a-name-can-be-used-again": ["never reuses a name"],
    "deletes-of-what-is-not-there-succeed": ["misses what is gone"],
    "an-initialization-can-be-repeated": ["initializes once"],
    "an-initialized-vm-is-called-so": ["never gets initialized"],
    "what-is-not-there-is-not-initialized": ["initializes nothing"],
    "a-fleet-is-made-at-once": ["shares one ID"],
    "two-creates-of-one-machine-make-one-vm": ["looks, waits, makes"],
    "two-deletes-of-one-machine-succeed": ["fights over a deletion"],
    "no-call-blocks-the-loop": ["blocks"],
    "a-cancelled-create-can-be-resumed": ["swallows its cancellation"],
    "a-cancelled-create-leaves-nothing-that-delete-misses": [
        "forgets halves and makes in two steps"
    ],
    "a-cancelled-delete-can-be-resumed": ["deletes in two steps"],
    "refusals-have-the-code-that-fits": [
        "takes any secret",
        "calls all internal",
        "refuses too late",
    ],
    "an-uninitialized-vm-is-named": ["names nothing"],
    "a-neighbours-vm-is-not-listed": ["sees all clusters"],
    "a-neighbours-vm-is-not-deleted": ["sees all clusters"],
    "an-update-to-the-same-is-harmless": ["must know what was"],
    "an-update-can-be-repeated-and-taken-back": ["never goes back"],
    "what-is-not-there-is-not-updated": ["updates nothing"],
    "no-volume-has-no-id": ["invents volumes"],
    "volumes-that-it-does-not-know-are-left-out": ["stumbles over volumes"],
    "a-volume-has-its-id": ["invents volumes"],
    "a-class-of-an-older-kind-becomes-a-machine-class": [
        "renames what it migrates",
        "migrates to nothing",
        "migrates anew",
    ],
}
BY_NAME = {rule.name: rule for rule in RULES}


def class_of(cluster: str) -> MachineClass:
    meta = ObjectMeta(name="c", namespace="default")
    return MachineClass(metadata=meta, provider_spec={"cluster": cluster})


def check(rule: Rule, subject: Subject) -> None:
    """A standstill of the loop shows in real time only; all else needs no waiting."""
    if rule.name == "no-call-blocks-the-loop":
        asyncio.run(rule.check_on(subject))
    else:
        clock = LoopClock(datetime(2026, 1, 1, tzinfo=UTC))
        run_virtual(lambda: rule.check_on(dataclasses.replace(subject, clock=clock)))


def subject(*faults: str) -> Subject:
    cloud = Cloud()
    return Subject(
        new_driver=lambda: FaultyDriver(cloud, frozenset(faults)),
        machine_class=class_of("ours"),
        neighbour=class_of("theirs"),
        changed_class=class_of("ours"),
        secret={"password": PASSWORD},
        refusals=[
            Refusal(
                when="the password is wrong",
                codes=frozenset({Code.UNAUTHENTICATED}),
                secret={"password": b"wrong"},
            )
        ],
        cuts=20,
        older_classes={"MemoryMachineClass": {"spec": {"cluster": "ours"}}},
        volumes={"vol-1": {"csi": {"driver": "memory", "volumeHandle": "vol-1"}}},
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_driver_that_keeps_the_contract_passes(rule: Rule) -> None:
    check(rule, subject())


@pytest.mark.parametrize(
    ("name", "fault"), [(name, fault) for name, faults in FAULTS.items() for fault in faults]
)
def test_a_driver_with_a_fault_violates_the_rule(name: str, fault: str) -> None:
    with pytest.raises(Violation):
        check(BY_NAME[name], subject(*fault.split(" and ")))


def test_every_rule_has_a_fault_that_it_finds_and_a_text() -> None:
    assert FAULTS.keys() == BY_NAME.keys()
    assert all(rule.text.endswith(".") for rule in RULES)


def test_what_is_left_behind_is_told_beside_the_violation() -> None:
    faulty = subject("shares one ID", "misses what is gone")
    with pytest.raises(Violation) as caught:
        check(BY_NAME["a-fleet-is-made-at-once"], faulty)
    assert "could not be deleted in the end" in caught.value.__notes__[0]


def test_a_rule_that_lacks_something_says_what() -> None:
    cloud = Cloud()
    bare = Subject(new_driver=lambda: FaultyDriver(cloud), machine_class=class_of("a"), secret={})
    for name in (
        "refusals-have-the-code-that-fits",
        "a-volume-has-its-id",
        "a-class-of-an-older-kind-becomes-a-machine-class",
    ):
        with pytest.raises(NotApplicable, match="the subject names no"):
            check(BY_NAME[name], bare)
