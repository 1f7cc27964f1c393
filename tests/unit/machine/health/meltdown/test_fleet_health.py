from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.machine import (
    Machine,
    MachineClassNodeTemplate,
    MachinePhase,
    NodeTemplateSpec,
)
from mcm.controllers.machine.health.meltdown.fleet_health import (
    FleetHealth,
    is_member,
)
from mcm.controllers.machine.health.meltdown.hold import Counts
from mcm.controllers.machine.own_conditions import OwnCondition, with_own
from mcm.controllers.machine.zone import zone_of
from mcm.informers import Change
from tests.unit.machine.objects import BORN, after, class_, condition, machine, node

SILENT = condition("Ready", "Unknown", reason="NodeStatusUnknown")
LABEL, OLD_LABEL = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"


def template(zone: str) -> NodeTemplateSpec:
    return msgspec.convert({"metadata": {"labels": {LABEL: zone}}}, NodeTemplateSpec)


@pytest.mark.parametrize(
    ("on_node", "in_template", "in_class", "zone"),
    [
        ({LABEL: "n"}, "t", "c", "n"),
        ({OLD_LABEL: "old"}, "t", "c", "old"),
        ({LABEL: ""}, "t", "c", "t"),
        (None, "t", "c", "t"),
        (None, "", "c", "c"),
        ({}, "", "", ""),
    ],
)
def test_who_tells_a_machines_zone(
    on_node: dict[str, str] | None, in_template: str, in_class: str, zone: str
) -> None:
    subject = machine(template=template(in_template))
    seen = None if on_node is None else node(labels=on_node)
    made_of = msgspec.structs.replace(
        class_(), node_template=MachineClassNodeTemplate(zone=in_class)
    )
    assert zone_of(subject, seen, made_of) == zone


def test_a_machine_without_node_template_or_class_is_of_no_zone() -> None:
    assert zone_of(machine(), None, None) == ""
    assert zone_of(machine(), None, class_()) == ""


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        (machine(phase="Running"), True),
        (machine(phase="Unknown"), True),
        (machine(phase="InPlaceUpdating"), True),
        (machine(phase="InPlaceUpdateFailed"), True),
        (machine(phase=""), False),
        (machine(phase="Pending"), False),
        (machine(phase="CrashLoopBackOff"), False),
        (machine(phase="Failed"), False),
        (machine(phase="Terminating"), False),
        (machine(phase="Running", deleted=BORN), False),
        (machine(phase="Unknown", preserved=after(hours=1)), False),
    ],
)
def test_whose_health_says_something_about_the_others(subject: Machine, *, expected: bool) -> None:
    assert is_member(subject) is expected


def test_a_machine_that_may_be_unhealthy_for_ever_says_nothing() -> None:
    spec = msgspec.structs.replace(machine().spec, disable_health_timeout=True)
    assert not is_member(msgspec.structs.replace(machine(phase="Unknown"), spec=spec))


def test_a_zone_that_nobody_tells_any_more_is_remembered() -> None:
    zones = {"m": "a"}
    fleet = FleetHealth(locate=lambda m: zones.get(m.metadata.name, ""), changed=lambda: None)
    fleet.note(Change(None, machine(phase="Running")))
    zones.clear()
    fleet.note(Change(machine(phase="Running"), machine(phase="Unknown")))
    assert fleet.zones == {"a": Counts(1, 1)}
    fleet.note(Change(machine(phase="Unknown"), None))
    assert fleet.zones == {}
    assert fleet.zone(machine()) == ""


def test_who_shows_to_be_held_is_known_until_it_does_not() -> None:
    calls: list[None] = []
    fleet = FleetHealth(locate=lambda _: "", changed=lambda: calls.append(None))
    free = machine(phase="Unknown")
    held = shows(free, "False")
    fleet.note(Change(None, held))
    assert set(fleet.held) == {"ns/m"}
    assert len(calls) == 2
    fleet.note(Change(held, shows(free, "True")))
    assert set(fleet.held) == set()
    fleet.note(Change(free, held))
    fleet.note(Change(held, None))
    assert set(fleet.held) == set()


def test_what_changes_no_count_wakes_nobody() -> None:
    calls: list[None] = []
    fleet = FleetHealth(locate=lambda _: "a", changed=lambda: calls.append(None))
    running = machine(phase="Running")
    fleet.note(Change(None, running))
    calls.clear()
    fleet.note(Change(running, machine(phase="Running", labels={"x": "y"})))
    fleet.note(Change(running, running, resync=True))
    assert not calls


def shows(subject: Machine, status: str) -> Machine:
    shown = with_own(subject.status, OwnCondition.REPLACEABLE, status, "R", "because", after())
    return msgspec.structs.replace(subject, status=shown)


machines = st.builds(
    machine,
    st.sampled_from(["a-0", "a-1", "b-0", "b-1", "-0"]),
    phase=st.sampled_from([MachinePhase.RUNNING, MachinePhase.UNKNOWN, MachinePhase.FAILED, ""]),
    conditions=st.sampled_from([(), (SILENT,)]),
    deleted=st.sampled_from([None, BORN]),
)
histories = st.lists(st.tuples(st.booleans(), st.booleans(), machines), max_size=40)


@given(histories)
def test_counting_changes_gives_what_counting_all_would(
    history: list[tuple[bool, bool, Machine]],
) -> None:
    """Of machines that come, change, go, and come again as another object."""
    fleet = FleetHealth(locate=_zone_in_name, changed=lambda: None)
    there: dict[str, Machine] = {}
    for gone, again, subject in history:
        name = subject.metadata.name
        old = there.pop(name, None)
        if again and old is not None:
            fleet.note(Change(old, None, tombstone=True))
            subject, old = with_uid(subject, f"{old.metadata.uid}'"), None
        elif old is not None:
            subject = with_uid(subject, old.metadata.uid)
        if not gone:
            there[name] = subject
            fleet.note(Change(old, subject))
        elif old is not None:
            fleet.note(Change(old, None))
        assert fleet.all == _counted(there, None)
        wanted = {zone: _counted(there, zone) for zone in ("a", "b")}
        assert fleet.zones == {zone: c for zone, c in wanted.items() if c.members}


def with_uid(subject: Machine, uid: str) -> Machine:
    meta = msgspec.structs.replace(subject.metadata, uid=uid)
    return msgspec.structs.replace(subject, metadata=meta)


def _zone_in_name(subject: Machine) -> str:
    return subject.metadata.name.partition("-")[0]


def _counted(there: Mapping[str, Machine], zone: str | None) -> Counts:
    members = [m for m in there.values() if is_member(m) and zone in (None, _zone_in_name(m))]
    sick = [m for m in members if m.phase == MachinePhase.UNKNOWN]
    return Counts(len(members), len(sick), sum(SILENT in m.status.conditions for m in sick))
