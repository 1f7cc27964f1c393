from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import pytest

from mcm.api.core import Node
from mcm.api.machine import Machine
from mcm.client.requests import PatchType
from mcm.controllers.machine.draining.mark import Mark, mark_patch, unmark_patch
from mcm.controllers.machine.draining.request import (
    MachineDrain,
    before_deletion,
    mode_at,
    of_a_node_that_stays,
)
from mcm.controllers.machine.settings import settings_of
from mcm.controllers.settings import ControllerSettings
from mcm.drain.mode import Force
from mcm.drain.request import Purpose
from tests.unit.machine.objects import BORN, READY, after, machine, node

DEFAULTS = ControllerSettings()
OURS = {"node.machine.sapcloud.io/cordoned-by-mcm": "in-place-update"}


def cordoned(subject: Node) -> Node:
    spec = msgspec.structs.replace(subject.spec, unschedulable=True)
    return msgspec.structs.replace(subject, spec=spec)


def test_a_cordon_for_an_update_is_recorded_as_ours_in_the_same_write() -> None:
    patch = mark_patch(Mark.CORDON_FOR_UPDATE, node())
    assert patch is not None
    assert patch.kind is PatchType.MERGE
    assert patch.body == {
        "metadata": {"annotations": OURS, "uid": "uid-n", "resourceVersion": "9"},
        "spec": {"unschedulable": True},
    }
    assert mark_patch(Mark.CORDON_FOR_UPDATE, cordoned(node(annotations=OURS))) is None


def test_a_users_cordon_is_not_claimed_and_not_lifted() -> None:
    users = cordoned(node())
    assert mark_patch(Mark.CORDON_FOR_UPDATE, users) is None
    assert unmark_patch(Mark.CORDON_FOR_UPDATE, users) is None


def test_our_cordon_is_lifted_and_of_one_lifted_by_others_only_the_record_goes() -> None:
    ours = unmark_patch(Mark.CORDON_FOR_UPDATE, cordoned(node(annotations=OURS)))
    lifted = unmark_patch(Mark.CORDON_FOR_UPDATE, node(annotations=OURS))
    assert ours is not None
    assert lifted is not None
    assert ours.body["spec"] == {"unschedulable": False}
    assert "spec" not in lifted.body
    for patch in (ours, lifted):
        metadata = patch.body["metadata"]
        assert metadata == {"annotations": dict.fromkeys(OURS), "uid": "uid-n"}


def test_the_cordon_of_a_node_that_goes_is_for_good() -> None:
    assert mark_patch(Mark.CORDON, node()) is not None
    assert unmark_patch(Mark.CORDON, cordoned(node())) is None


def test_a_node_that_its_asker_marks_is_left_as_it_is() -> None:
    assert mark_patch(Mark.BY_THE_ASKER, node()) is None
    assert unmark_patch(Mark.BY_THE_ASKER, cordoned(node(annotations=OURS))) is None


def wanted(subject: Machine, start: datetime = BORN) -> MachineDrain:
    return of_a_node_that_stays(
        subject,
        settings_of(subject, DEFAULTS),
        start=start,
        purpose=Purpose.IN_PLACE_UPDATE,
        mark=Mark.CORDON_FOR_UPDATE,
    )


@pytest.mark.parametrize(
    ("label", "force"),
    [
        ("True", Force.LABEL),
        ("true", Force.NONE),
        ("1", Force.NONE),
        ("", Force.NONE),
        (None, Force.NONE),
    ],
)
def test_only_the_exact_label_forces_the_drain_of_a_node_that_stays(
    label: str | None, force: Force
) -> None:
    asked = wanted(machine(labels={} if label is None else {"force-drain": label}))
    assert asked.tolerant is False
    assert mode_at(BORN, asked.request, node(conditions=(READY,))).force is force


def test_the_time_of_such_a_drain_counts_from_its_own_start() -> None:
    asked = wanted(machine(deleted=None), start=after(days=9)).request
    early, late = after(days=9, hours=2), after(days=9, hours=2, seconds=1)
    assert mode_at(early, asked, node(conditions=(READY,))).force is Force.NONE
    assert mode_at(late, asked, node(conditions=(READY,))).force is Force.TIMEOUT


def test_a_label_of_deletions_does_not_force_it() -> None:
    asked = wanted(machine(labels={"force-deletion": "true"})).request
    assert mode_at(BORN, asked, None).force is Force.NONE


def test_a_deletion_drains_by_its_own_label_from_its_own_time() -> None:
    going = machine(labels={"force-deletion": "t"}, deleted=after(days=1))
    asked = before_deletion(going, settings_of(going, DEFAULTS), after(days=3))
    assert asked.tolerant
    assert asked.request.force_asked
    assert asked.request.start == after(days=1)
    assert asked.request.deadline == after(days=1, hours=2)
    assert asked.request.node == going.node_name


def test_the_flags_for_volumes_are_limits_of_the_drain() -> None:
    flags = ControllerSettings(
        pv_detach_timeout=timedelta(seconds=7), pv_reattach_timeout=timedelta(seconds=8)
    )
    subject = machine()
    limits = settings_of(subject, flags).drain_limits
    assert (limits.detach, limits.reattach) == (timedelta(seconds=7), timedelta(seconds=8))
    assert limits.lane_width == 1
