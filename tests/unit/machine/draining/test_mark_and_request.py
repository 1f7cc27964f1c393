from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from mcm.api.core import Node
from mcm.client.requests import PatchType
from mcm.controllers.machine.draining.mark import Mark, mark_patch, unmark_patch
from mcm.controllers.machine.draining.request import DrainRequest, mode_at, of_a_node_that_stays
from mcm.drain import Force
from tests.unit.machine.objects import BORN, READY, after, machine, node

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


def request(value: str | None) -> DrainRequest:
    subject = machine(labels={} if value is None else {"force-drain": value})
    return of_a_node_that_stays(
        subject, start=BORN, timeout=timedelta(hours=2), mark=Mark.CORDON_FOR_UPDATE
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
    asked = request(label)
    assert asked.tolerant is False
    assert mode_at(BORN, asked, machine(), node(conditions=(READY,))).force is force


def test_the_time_of_such_a_drain_counts_from_its_own_start() -> None:
    old = machine(deleted=None)
    asked = of_a_node_that_stays(
        old, start=after(days=9), timeout=timedelta(hours=2), mark=Mark.CORDON_FOR_UPDATE
    )
    early, late = after(days=9, hours=2), after(days=9, hours=2, seconds=1)
    assert mode_at(early, asked, old, node(conditions=(READY,))).force is Force.NONE
    assert mode_at(late, asked, old, node(conditions=(READY,))).force is Force.TIMEOUT


def test_a_label_of_deletions_does_not_force_it() -> None:
    subject = machine(labels={"force-deletion": "true"})
    asked = of_a_node_that_stays(
        subject, start=BORN, timeout=timedelta(hours=2), mark=Mark.BY_THE_ASKER
    )
    assert mode_at(BORN, asked, subject, None).force is Force.NONE
