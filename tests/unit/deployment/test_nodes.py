from __future__ import annotations

import pytest

from mcm.api.core import Node, NodeSpec, Taint
from mcm.api.machine import Machine
from mcm.api.meta import JSONObject, ObjectMeta
from mcm.api.names import (
    ANNOTATION_NOT_MANAGED_BY_MCM,
    ANNOTATION_PREFER_NO_SCHEDULE,
    ANNOTATION_SCALE_DOWN_DISABLED,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    LABEL_NODE_MACHINE_NAME,
)
from mcm.controllers.deployment.nodes import (
    PREFER_NO_SCHEDULE,
    NodeMarks,
    marks_for,
    node_changes,
)
from mcm.controllers.node_ownership import NodeOwners
from mcm.informers.store import Store
from tests.unit.deployment.objects import owned_set
from tests.unit.machine import objects
from tests.unit.machineset.objects import ago, machine

FOREIGN = Taint(key="dedicated", value="x", effect="NoSchedule")
OURS = {ANNOTATION_SCALE_DOWN_DISABLED: "true", ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM: "true"}
TAINT = {
    "key": ANNOTATION_PREFER_NO_SCHEDULE,
    "value": "True",
    "effect": "PreferNoSchedule",
}
OTHER_TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}


def node(*taints: Taint, annotations: dict[str, str] | None = None) -> Node:
    named = {LABEL_NODE_MACHINE_NAME: "m"}
    return Node(
        metadata=ObjectMeta(name="n", labels=named, annotations=annotations or {}),
        spec=NodeSpec(taints=taints),
    )


def on_node(**more: object) -> Machine:
    return machine("m", labels={"node": "n"}, **more)  # type: ignore[arg-type]


def change(marks: NodeMarks, present: Node, subject: Machine | None = None) -> JSONObject:
    nodes = {"n": present}
    found = list(node_changes([(marks, [subject or on_node()])], lambda m: nodes.get(m.node_name)))
    return found[0][1] if found else {}


TAINTED, UNTAINTED = NodeMarks(tainted=True), NodeMarks(tainted=False)


@pytest.mark.parametrize(
    ("marks", "present", "taints"),
    [
        (TAINTED, node(FOREIGN), [OTHER_TAINT, TAINT]),
        (TAINTED, node(PREFER_NO_SCHEDULE, FOREIGN), "unchanged"),
        (
            TAINTED,
            node(Taint(key=PREFER_NO_SCHEDULE.key, value="no", effect=PREFER_NO_SCHEDULE.effect)),
            [TAINT],
        ),
        (UNTAINTED, node(PREFER_NO_SCHEDULE, FOREIGN), [OTHER_TAINT]),
        (UNTAINTED, node(PREFER_NO_SCHEDULE), None),
        (UNTAINTED, node(FOREIGN), "unchanged"),
        (NodeMarks(), node(PREFER_NO_SCHEDULE), "unchanged"),
    ],
)
def test_the_taint_comes_and_goes_and_others_stay(
    marks: NodeMarks, present: Node, taints: object
) -> None:
    wanted = {} if taints == "unchanged" else {"spec": {"taints": taints}}
    assert change(marks, present) == wanted


KEPT, FREE = NodeMarks(kept_from_autoscaler=True), NodeMarks(kept_from_autoscaler=False)


@pytest.mark.parametrize(
    ("marks", "present", "annotations"),
    [
        pytest.param(KEPT, {}, OURS, id="kept"),
        pytest.param(KEPT, OURS, None, id="kept already"),
        pytest.param(
            KEPT, {ANNOTATION_SCALE_DOWN_DISABLED: "true"}, None, id="kept by somebody else"
        ),
        pytest.param(KEPT, {ANNOTATION_SCALE_DOWN_DISABLED: "false"}, OURS, id="overruled"),
        pytest.param(FREE, OURS, dict.fromkeys(OURS), id="given back"),
        pytest.param(
            FREE, {ANNOTATION_SCALE_DOWN_DISABLED: "true"}, None, id="not ours to give back"
        ),
        pytest.param(FREE, {}, None, id="free already"),
    ],
)
def test_nodes_are_kept_from_the_autoscaler_and_given_back(
    marks: NodeMarks, present: dict[str, str], annotations: object
) -> None:
    wanted = {} if annotations is None else {"metadata": {"annotations": annotations}}
    assert change(marks, node(annotations=present)) == wanted


def test_a_preserved_machine_stays_kept_from_the_autoscaler() -> None:
    assert change(FREE, node(annotations=OURS), on_node(preserved_until=ago(-60))) == {}


def test_taint_and_annotations_are_one_patch() -> None:
    both = NodeMarks(tainted=True, kept_from_autoscaler=True)
    assert change(both, node()) == {
        "metadata": {"annotations": OURS},
        "spec": {"taints": [TAINT]},
    }


def test_a_node_that_its_machine_has_yet_to_name_is_kept_by_that_and_given_back_by_us() -> None:
    fresh = objects.node("n")
    assert change(KEPT, fresh) == {}
    assert change(TAINTED, fresh) == {"spec": {"taints": [TAINT]}}
    assert change(FREE, objects.node("n", annotations=OURS)) == {
        "metadata": {"annotations": dict.fromkeys(OURS)}
    }
    nobodys = objects.node("n", annotations={ANNOTATION_NOT_MANAGED_BY_MCM: "1"})
    assert change(KEPT, nobodys) == {"metadata": {"annotations": OURS}}


def test_the_node_of_a_machine_that_goes_is_left_as_it_is() -> None:
    both = NodeMarks(tainted=True, kept_from_autoscaler=True)
    assert change(both, node(), on_node(deleted=True)) == {}
    assert change(FREE, node(annotations=OURS), on_node(deleted=True)) == {}


def test_machines_without_a_known_node_are_left_out() -> None:
    wanted = [(TAINTED, [machine("a"), machine("b", labels={"node": "x"})])]
    nodes: dict[str, Node] = {}
    assert list(node_changes(wanted, lambda m: nodes.get(m.node_name))) == []


def test_a_node_that_two_machines_name_is_left_alone() -> None:
    pair = [machine(name, labels={"node": "n"}) for name in ("a", "b")]
    machines: Store[Machine] = Store()
    nodes: Store[Node] = Store()
    nodes.put(objects.node("n"))
    find = NodeOwners(machines, nodes, "ns").own_node
    machines.put(pair[0])
    assert len(list(node_changes([(TAINTED, pair[:1])], find))) == 1
    machines.put(pair[1])
    assert list(node_changes([(TAINTED, pair)], find)) == []


MARKED = owned_set(annotations={ANNOTATION_PREFER_NO_SCHEDULE: "True"})


@pytest.mark.parametrize(
    ("is_new", "marked", "tainting", "updating", "complete", "annotating", "marks"),
    [
        (False, False, True, True, False, True, NodeMarks(True, True)),
        (True, False, True, True, False, True, NodeMarks(None, True)),
        (True, True, True, True, False, True, NodeMarks(False, True)),
        (False, False, False, True, False, True, NodeMarks(None, True)),
        (False, False, True, True, False, False, NodeMarks(True, None)),
        (True, False, False, False, True, True, NodeMarks(False, False)),
        (True, False, False, False, False, True, NodeMarks(None, None)),
        (True, True, False, False, False, False, NodeMarks(False, None)),
    ],
)
def test_what_a_set_wishes_for_its_nodes(
    is_new: bool,
    marked: bool,
    tainting: bool,
    updating: bool,
    complete: bool,
    annotating: bool,
    marks: NodeMarks,
) -> None:
    result = marks_for(
        MARKED if marked else owned_set(),
        is_new=is_new,
        tainting=tainting,
        updating=updating,
        complete=complete,
        annotating=annotating,
    )
    assert result == marks
