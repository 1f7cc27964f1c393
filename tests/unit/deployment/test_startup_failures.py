from __future__ import annotations

import json
from datetime import datetime

import msgspec
import pytest

from mcm.api.core import NodeCondition
from mcm.api.machine import CurrentStatus, LastOperation, Machine, MachineSet, MachineStatus
from mcm.api.meta import ObjectMeta
from mcm.api.names import ANNOTATION_FAILING_SINCE, ANNOTATION_STARTUP_FAILURES
from mcm.controllers.deployment.startup_failures import failing_since, startup_failures
from mcm.controllers.replicas.joining import fails_to_come_up, has_never_joined
from mcm.controllers.replicas.startup_note import note_change, read_note
from tests.unit.deployment.objects import NOW, ago, owned_set

CREATE = LastOperation(type="Create", state="Failed", description="no image", error_code="Internal")
PASSING = msgspec.structs.replace(CREATE, error_code="Unavailable")
NO_CODE = msgspec.structs.replace(CREATE, error_code="")
HEALTH = LastOperation(type="HealthCheck", state="Failed", description="not ready")
NOTHING = LastOperation()


def machine(
    phase: str, done: LastOperation = NOTHING, *, name: str = "m", ready: str = ""
) -> Machine:
    conditions = (NodeCondition(type="Ready", status=ready),) if ready else ()
    status = MachineStatus(
        current_status=CurrentStatus(phase=phase), last_operation=done, conditions=conditions
    )
    return Machine(metadata=ObjectMeta(name=name, namespace="ns", uid=name), status=status)


@pytest.mark.parametrize(
    ("subject", "never", "fails"),
    [
        (machine(""), True, False),
        (machine("Pending"), True, False),
        (machine("CrashLoopBackOff", CREATE), True, True),
        (machine("CrashLoopBackOff", PASSING), True, False),
        (machine("CrashLoopBackOff", NO_CODE), True, True),
        (machine("Failed", CREATE), True, True),
        (machine("Failed", HEALTH), False, True),
        (machine("Failed", CREATE, ready="True"), False, True),
        (machine("Running"), False, False),
        (machine("Unknown", HEALTH, ready="Unknown"), False, False),
        (machine("Terminating"), True, False),
        (machine("Terminating", ready="Unknown"), False, False),
        (machine("InPlaceUpdating"), False, False),
    ],
)
def test_what_a_machine_says_of_its_coming_up(
    subject: Machine, *, never: bool, fails: bool
) -> None:
    assert has_never_joined(subject) is never
    assert fails_to_come_up(subject) is fails


FAILED = machine("Failed", CREATE, name="f")
REFUSED = machine("CrashLoopBackOff", CREATE, name="c")
WAITS = machine("CrashLoopBackOff", PASSING, name="w")
PENDING = machine("Pending", name="p")
RUNS = machine("Running", name="r", ready="True")
NOTE = json.dumps({"machine": "gone", "code": "Internal", "text": "no image", "count": 1})
SINCE = "2026-01-01T11:00:00Z"


@pytest.mark.parametrize(
    ("machines", "annotations", "rolling", "since"),
    [
        ((PENDING,), {}, True, None),
        ((WAITS,), {}, True, None),
        ((REFUSED,), {}, True, NOW),
        ((REFUSED,), {}, False, None),
        ((REFUSED, RUNS), {}, True, None),
        ((REFUSED, FAILED, RUNS), {}, True, NOW),
        ((PENDING,), {ANNOTATION_STARTUP_FAILURES: NOTE}, True, NOW),
        ((PENDING, RUNS), {ANNOTATION_STARTUP_FAILURES: NOTE}, True, None),
        ((REFUSED, RUNS), {ANNOTATION_STARTUP_FAILURES: NOTE}, True, NOW),
        ((PENDING,), {ANNOTATION_STARTUP_FAILURES: "{"}, True, None),
        ((PENDING, RUNS), {ANNOTATION_FAILING_SINCE: SINCE}, True, ago(3600)),
        ((RUNS,), {ANNOTATION_FAILING_SINCE: SINCE}, True, None),
        ((), {ANNOTATION_FAILING_SINCE: SINCE}, True, ago(3600)),
        ((PENDING,), {ANNOTATION_FAILING_SINCE: "long ago"}, True, None),
    ],
)
def test_since_when_a_set_fails(
    machines: tuple[Machine, ...],
    annotations: dict[str, str],
    since: datetime | None,
    *,
    rolling: bool,
) -> None:
    subject = owned_set(annotations=annotations)
    assert failing_since(subject, machines, NOW, rolling=rolling) == since


def test_a_set_without_machines_that_wants_none_fails_no_more() -> None:
    subject = owned_set(replicas=0, annotations={ANNOTATION_FAILING_SINCE: SINCE})
    assert failing_since(subject, (), NOW, rolling=True) is None


def test_of_what_fails_now_more_is_said_than_of_what_did() -> None:
    subject = owned_set(annotations={ANNOTATION_STARTUP_FAILURES: NOTE})
    assert [f.machine for f in startup_failures(subject, (REFUSED, RUNS))] == ["c"]
    assert [f.machine for f in startup_failures(subject, (PENDING,))] == ["gone"]


# ---- the note on a set ---------------------------------------------------------------------------


def noted(subject: MachineSet, machines: tuple[Machine, ...], *doomed: Machine) -> MachineSet:
    change = note_change(subject, machines, doomed)
    if not change:
        return subject
    text = change["metadata"]["annotations"][ANNOTATION_STARTUP_FAILURES]  # type: ignore[index]
    return owned_set(annotations={ANNOTATION_STARTUP_FAILURES: str(text)} if text else {})


def test_who_is_given_up_before_it_joined_is_noted_and_counted_once() -> None:
    once = noted(owned_set(replicas=1), (FAILED,), FAILED)
    note = read_note(once)
    assert note is not None
    assert (note.machine, note.code, note.text, note.count) == ("f", "Internal", "no image", 1)
    assert note_change(once, (FAILED,), (FAILED,)) == {}
    again = read_note(noted(once, (PENDING,), machine("Failed", CREATE, name="g")))
    assert again is not None
    assert (again.machine, again.count) == ("g", 2)


def test_a_machine_that_had_joined_is_not_noted() -> None:
    lost = machine("Failed", HEALTH, ready="Unknown")
    assert note_change(owned_set(), (lost,), (lost,)) == {}


def test_the_note_goes_when_all_have_joined() -> None:
    bearing = {ANNOTATION_STARTUP_FAILURES: NOTE}
    one = owned_set(replicas=1, annotations=bearing)
    assert note_change(one, (PENDING,), ()) == {}
    assert note_change(one, (RUNS,), ()) != {}
    assert note_change(owned_set(replicas=2, annotations=bearing), (RUNS,), ()) == {}
