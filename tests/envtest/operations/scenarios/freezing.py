"""Far too many machines: a set freezes, shows it, and is unfrozen in each documented way."""

from __future__ import annotations

import json

from tests.envtest.operations.person import API_VERSION, Manifest, Person

_HOLD = "example.com/hold"
_NUMBER = 6


def surplus_machines_freeze_a_set_until_few_are_left(person: Person) -> None:
    target = _freeze(person)
    assert person.row("mcd", "-o", "wide")["FROZEN"] == "True"
    (of_set,) = person.table("mcs", "-o", "wide")
    assert of_set["FROZEN"] == "True"
    told = person.describe()
    assert "freeze=True" in told and "OverShootingReplicaCount" in told
    status, reason, message = person.condition("Frozen", target)
    assert (status, reason) == ("True", "OverShootingReplicaCount")
    assert "4 or more machines freeze it" in message and "3 or fewer" in message
    assert "safety.machine.sapcloud.io/unfreeze" in message
    person("delete", "mc", *_surplus_names(person), "--wait=false")
    _release(person)
    person.until(lambda: person.row("mcd", "-o", "wide")["FROZEN"] == "", what="it is unfrozen")
    person.wait_until_rolled_out(machines=1)
    assert [row["FROZEN"] for row in person.table("mcs", "-o", "wide")] == [""]
    assert [person.condition("Frozen", t)[0] for t in ("", target)] == ["", ""]
    _told_once(person, target)


def a_person_lifts_a_freeze(person: Person) -> None:
    target = _freeze(person)
    person("annotate", "mcd", person.name, "safety.machine.sapcloud.io/unfreeze=please")
    person.until(lambda: person.condition("Frozen")[0] == "", what="it is unfrozen")
    person.until(lambda: person.condition("Frozen", target)[0] == "", what="the set is, too")
    assert "unfreeze" not in person.field(".metadata.annotations")
    assert person.field(".metadata.labels.freeze", target) == ""
    (event,) = [e for e in person.events(target) if e.reason == "UnfrozeMachineSet"]
    assert "by request: frozen again soon if there are 4 or more" in event.message
    _release(person)
    person.wait_until_rolled_out(machines=1)


def a_freeze_set_by_hand_is_no_switch(person: Person) -> None:
    person.create(replicas=1)
    person.wait_until_rolled_out(machines=1)
    (machine_set,) = person.names("mcs")
    person("label", "mcs", machine_set, "freeze=True")
    target = f"mcs/{machine_set}"
    person.until(
        lambda: any(e.reason == "UnfrozeMachineSet" for e in person.events(target)),
        what="it is told that it is no switch",
    )
    (event,) = [e for e in person.events(target) if e.reason == "UnfrozeMachineSet"]
    assert event.message == (
        "Unfrozen with 1 machine, those leaving included: 3 or fewer end a freeze, whoever set it"
    )
    assert person.field(".metadata.labels.freeze", target) == ""
    person.scale(2)
    person.wait_until_rolled_out(machines=2)


def _freeze(person: Person) -> str:
    """Make machines by hand in the name of a set, which stay until they are released."""
    person.create(replicas=1)
    person.wait_until_rolled_out(machines=1)
    (machine_set,) = person.names("mcs")
    shown = json.loads(person("get", "mcs", machine_set, "-o", "json"))
    surplus = [_surplus(name, shown) for name in _surplus_names(person)]
    person("create", "-f", "-", stdin=surplus)
    person.wait_for_condition("Frozen", "OverShootingReplicaCount", f"mcs/{machine_set}")
    person.wait("condition=Frozen")
    return f"mcs/{machine_set}"


def _surplus_names(person: Person) -> list[str]:
    return [f"{person.name}-surplus-{number}" for number in range(_NUMBER)]


def _surplus(name: str, machine_set: Manifest) -> Manifest:
    meta, spec = machine_set["metadata"], machine_set["spec"]
    assert isinstance(meta, dict)
    assert isinstance(spec, dict)
    owner = {
        "apiVersion": API_VERSION,
        "kind": "MachineSet",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "Machine",
        "metadata": {
            "name": name,
            "labels": spec["template"]["metadata"]["labels"],
            "ownerReferences": [owner],
            "finalizers": [_HOLD],
        },
        "spec": spec["template"]["spec"],
    }


def _release(person: Person) -> None:
    for name in _surplus_names(person):
        found = json.loads(person("get", "mc", name, "-o", "json"))["metadata"]["finalizers"]
        left = [finalizer for finalizer in found if finalizer != _HOLD]
        person.patch({"metadata": {"finalizers": left}}, target=f"mc/{name}")


def _told_once(person: Person, target: str) -> None:
    of_set = [e.reason for e in person.events(target) if "roze" in e.reason]
    assert of_set == ["FrozeMachineSet", "UnfrozeMachineSet"]
    of_all = [e.reason for e in person.events() if "roze" in e.reason]
    assert of_all == ["FrozeMachineDeployment", "UnfrozeMachineDeployment"]
