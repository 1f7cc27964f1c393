from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from mcm.api.core import Node
from mcm.api.machine import MachinePhase, MachineSpec
from mcm.api.meta import ObjectMeta
from mcm.api.names import ANNOTATION_LAST_APPLIED_PRESERVE, ANNOTATION_PRESERVE
from mcm.controllers.machineset.preservation.protection import protected_until
from tests.unit.machineset.objects import NOW, ago, machine

HOUR = timedelta(hours=1)


def node(value: str | None) -> Node:
    annotations = {} if value is None else {ANNOTATION_PRESERVE: value}
    return Node(metadata=ObjectMeta(name="n", annotations=annotations))


def test_a_stamped_end_decides_alone() -> None:
    stamped = machine(phase=MachinePhase.FAILED, preserved_until=ago(5))
    assert protected_until(stamped, node("now"), preserve_timeout=HOUR) == ago(5)


@pytest.mark.parametrize(
    ("on_machine", "last_applied", "on_node", "kept"),
    [
        ("now", None, None, True),
        ("when-failed", None, None, True),
        ("auto-preserved", None, None, True),
        ("false", None, None, False),
        ("tomorrow", None, None, False),
        (None, None, None, False),
        (None, None, node("now"), True),
        ("now", None, node("false"), False),
        ("now", None, node(None), True),
        ("now", "now", node(None), False),  # the node's word was taken back
        ("now", "now", None, True),  # the node is not known: the machine's own word counts
    ],
)
def test_a_request_protects_from_the_failure_on_until_it_could_be_over(
    on_machine: str | None, last_applied: str | None, on_node: Node | None, kept: bool
) -> None:
    annotations = {
        ANNOTATION_PRESERVE: on_machine,
        ANNOTATION_LAST_APPLIED_PRESERVE: last_applied,
    }
    subject = machine(
        phase=MachinePhase.FAILED,
        annotations={k: v for k, v in annotations.items() if v is not None},
        changed=ago(60),
    )
    wanted = ago(60) + HOUR if kept else None
    assert protected_until(subject, on_node, preserve_timeout=HOUR) == wanted


@pytest.mark.parametrize(
    ("own", "until"), [("2h", NOW + 2 * HOUR), ("often", NOW + HOUR), (None, NOW + HOUR)]
)
def test_the_machine_may_say_how_long(own: str | None, until: datetime) -> None:
    subject = machine(
        phase=MachinePhase.FAILED,
        annotations={ANNOTATION_PRESERVE: "now"},
        spec=MachineSpec(machine_preserve_timeout=own),
    )
    assert protected_until(subject, None, preserve_timeout=HOUR) == until
