"""Updates in place: the agent's part is played with kubectl, as docs/in-place-update.md says."""

from __future__ import annotations

from tests.envtest.operations.person import Manifest, Person

_NODE = "node.machine.sapcloud.io"
_TAINT = "node.gardener.cloud/critical-components-not-ready"


def an_automatic_update_in_place_keeps_the_machines(person: Person) -> None:
    person.create(replicas=2, strategy=_in_place("Auto"))
    person.create_class("large")
    person.wait_until_rolled_out(machines=2)
    before, nodes = person.names("mc"), _nodes(person)
    person.edit_class("large")
    waiting = set(nodes)
    while waiting:
        person.until(lambda: bool(_ready(person, waiting)), what="a Node is ready")
        (node,) = _ready(person, waiting)
        assert all(row["DESIRED"] for row in person.table("mcs")), "no blanks"
        statuses = sorted(row["STATUS"] for row in person.table("mc"))
        assert statuses == ["InPlaceUpdating", "Running"]
        assert "SchedulingDisabled" in person("get", "node", node)
        _succeed(person, node, nodes[node])
        waiting.discard(node)
        if waiting:
            person.wait_for_condition("Progressing", "MachineSetUpdated")
    person.wait_until_rolled_out(machines=2)
    assert person.names("mc") == before
    assert "SchedulingDisabled" not in person("get", "nodes", *nodes)
    moved = [e.message for e in person.events() if e.reason == "MovedMachine"]
    assert len(moved) == 2
    assert all(any(name in message for message in moved) for name in before)


def a_manual_update_in_place_waits_to_be_told(person: Person) -> None:
    person.create(replicas=2, strategy=_in_place("Manual"))
    person.create_class("large")
    person.wait_until_rolled_out(machines=2)
    before, nodes = person.names("mc"), _nodes(person)
    person.edit_class("large")
    for node in nodes:
        _wait_for_reason(person, node, "CandidateForUpdate")
    hint = "(In place: 2 machines wait for the label node.machine.sapcloud.io/selected-for-update)"
    person.until(lambda: hint in person.describe(), what="it is told what is waited for")

    first, second = nodes
    person("label", "node", first, f"{_NODE}/selected-for-update=true")
    _wait_for_reason(person, first, "ReadyForUpdate")
    assert _reason(person, second) == "CandidateForUpdate"
    person("annotate", "node", first, f"{_NODE}/update-failed-reason=kubelet did not start")
    person("label", "node", first, f"{_NODE}/update-result=failed")
    failure = f"1 update failed (machine {nodes[first]}: kubelet did not start;"
    person.until(lambda: failure in person.describe(), what="the deployment says why")
    assert f"taking {_NODE}/update-result off a Node tries it again" in person.describe()
    assert "InPlaceUpdateFailed" in {row["STATUS"] for row in person.table("mc")}

    person("label", "node", first, f"{_NODE}/update-result-")
    _wait_for_reason(person, first, "ReadyForUpdate")
    _succeed(person, first, nodes[first])
    person("label", "node", second, f"{_NODE}/selected-for-update=true")
    _wait_for_reason(person, second, "ReadyForUpdate")
    _succeed(person, second, nodes[second])
    person.wait_until_rolled_out(machines=2)
    assert person.names("mc") == before
    assert "In place" not in person.condition("Progressing")[2]


def _in_place(orchestration: str) -> Manifest:
    numbers = {"orchestrationType": orchestration, "maxSurge": 0, "maxUnavailable": 1}
    return {"type": "InPlaceUpdate", "inPlaceUpdate": numbers}


def _nodes(person: Person) -> dict[str, str]:
    """Return the machines by their Nodes."""
    return {row["NODE"]: row["NAME"] for row in person.table("mc")}


def _ready(person: Person, nodes: set[str]) -> list[str]:
    return [node for node in sorted(nodes) if _reason(person, node) == "ReadyForUpdate"]


def _reason(person: Person, node: str) -> str:
    return person.condition("InPlaceUpdate", f"node/{node}")[1]


def _wait_for_reason(person: Person, node: str, reason: str) -> None:
    person.wait_for_condition("InPlaceUpdate", reason, f"node/{node}")


def _succeed(person: Person, node: str, machine: str) -> None:
    """Report success, then let the critical components come up."""
    person("label", "node", node, f"{_NODE}/update-result=successful")
    person.until(lambda: _TAINT in person("describe", "node", node), what="the taint comes on")
    person("taint", "node", node, f"{_TAINT}-")
    person.wait_for_field(".status.currentStatus.phase", "Running", f"mc/{machine}")
