"""Another template: its update step by step, paused, rolled back, and its history."""

from __future__ import annotations

import re

from tests.envtest.operations.person import Person, rolling

_CLASS = ".spec.template.spec.class.name"


def an_edit_of_class_and_labels_replaces_all_machines(person: Person) -> None:
    person.create(replicas=3, strategy=rolling(surge=1, unavailable=1))
    person.create_class("large")
    person.wait_until_rolled_out(machines=3)
    before, (old,) = person.names("mc"), person.names("mcs")
    person.edit_class("large")
    person.wait_until_rolled_out(machines=3)
    after = person.names("mc")
    assert not set(before) & set(after)
    classes = person("get", "mc", *after, "-o", "jsonpath={.items[*].spec.class.name}").split()
    assert classes == [f"{person.name}-large"] * 3
    (new,) = set(person.names("mcs")) - {old}
    sizes = {row["NAME"]: (row["DESIRED"], row["READY"]) for row in person.table("mcs")}
    assert sizes == {old: ("0", "0"), new: ("3", "3")}
    _steps_were_told(person, old, new)
    told = person.describe()
    assert re.search(r"Reason: +NewMachineSetAvailable", told)
    assert f'MachineSet "{new}" has successfully progressed.' in told

    person.patch({"spec": {"template": {"metadata": {"labels": {"colour": "blue"}}}}})
    person.wait_until_rolled_out(machines=3)
    assert not set(after) & set(person.names("mc"))
    assert len(person("get", "mc", "-l", "colour=blue", "-o", "name").split()) == 3
    assert person.condition("Available")[0] == "True"


def _steps_were_told(person: Person, old: str, new: str) -> None:
    """Each step of three machines, once."""
    events = [e for e in person.events() if e.reason == "ScalingMachineSet"]
    assert len(events) <= 7
    up = [e.message for e in events if e.message.startswith(f"Scaled up machine set {new} ")]
    down = [e.message for e in events if e.message.startswith(f"Scaled down machine set {old} ")]
    assert up[-1].endswith(" to 3")
    assert down[-1].endswith(" to 0")
    assert len(set(up)) == len(up)
    assert len(set(down)) == len(down)


def a_paused_deployment_scales_and_updates_later(person: Person) -> None:
    person.create(replicas=2)
    person.create_class("large")
    person.wait_until_rolled_out(machines=2)
    before = person.names("mc")
    person.patch({"spec": {"paused": True}})
    person.wait("condition=Paused")
    person.edit_class("large")
    person.scale(3)
    person.wait_for_field(".status.availableReplicas", 3)
    assert set(before) < set(person.names("mc"))
    assert len(person.names("mcs")) == 1
    assert person.condition("Progressing") == (
        "Unknown",
        "DeploymentPaused",
        "Deployment is paused",
    )
    assert "nothing is rolled out; scaling" in person.describe()
    person.patch({"spec": {"paused": None}})
    person.wait_until_rolled_out(machines=3)
    assert not set(before) & set(person.names("mc"))
    assert person.condition("Paused") == ("", "", "")


def rollback_to_finds_earlier_templates(person: Person) -> None:
    person.create(replicas=1)
    person.wait_until_rolled_out(machines=1)
    for name in ("medium", "large"):
        person.create_class(name)
        person.edit_class(name)
        person.wait_until_rolled_out(machines=1)
    for revision, expected in ((0, "medium"), (1, "small")):
        person.patch({"spec": {"rollbackTo": {"revision": revision}}})
        person.wait_for_field(_CLASS, f"{person.name}-{expected}")
        person.wait_until_rolled_out(machines=1)
        assert person.field(".spec.rollbackTo") == ""
    person.patch({"spec": {"rollbackTo": {"revision": 77}}})
    person.until(
        lambda: any(e.reason == "DeploymentRollbackRevisionNotFound" for e in person.events()),
        what="it is told that there is no such revision",
    )
    told = [e.message for e in person.events() if e.reason.startswith("DeploymentRollback")]
    assert told == [
        "Rolled back to revision 2",
        "Rolled back to revision 1",
        "Cannot roll back: no machine set has revision 77; there are 3, 4, 5",
    ]
    assert person.field(".spec.rollbackTo") == ""
    assert person.field(_CLASS) == f"{person.name}-small"


def the_history_keeps_as_many_sets_as_asked_for(person: Person) -> None:
    person.create(replicas=1, revisionHistoryLimit=1)
    person.wait_until_rolled_out(machines=1)
    (first,) = person.names("mcs")
    for name in ("medium", "large"):
        person.create_class(name)
        person.edit_class(name)
        person.wait_until_rolled_out(machines=1)
    person.wait("delete", f"mcs/{first}")
    assert sorted(row["DESIRED"] for row in person.table("mcs")) == ["0", "1"]
