"""A class that never works: what is said of it, and the ways out."""

from __future__ import annotations

from tests.envtest.operations.person import Person, rolling

_NO_IMAGE = {
    "verb": "create",
    "code": "InvalidArgument",
    "message": "no image ubuntu-99",
    "times": 999,
}


def a_broken_class_stops_the_update_and_says_why(person: Person) -> None:
    person.create(replicas=2, strategy=rolling(surge=1, unavailable=1))
    person.create_class("broken", failures=[_NO_IMAGE])
    person.wait_until_rolled_out(machines=2)
    before = person.names("mc")
    person.edit_class("broken")
    person.wait_for_condition("Progressing", "NewMachinesFailing")
    status, _, message = person.condition("Progressing")
    assert status == "False"
    assert "InvalidArgument" in message
    assert "no image ubuntu-99" in message
    assert "mend what they say, or take the former template back" in message
    kept = set(before) & set(person.staying("mc"))
    assert kept, "what maxUnavailable allowed was gone before it was known, and no more"
    assert "no image ubuntu-99" in person.describe()
    assert len([e for e in person.events() if e.reason == "NewMachinesFailing"]) == 1
    broken = next(n for n in person.names("mc") if n not in before)
    assert "no image ubuntu-99" in person.describe(f"mc/{broken}")

    person.edit_class("small")
    person.wait_until_rolled_out(machines=2)
    assert kept <= set(person.names("mc"))
    assert person.condition("Progressing")[:2] == ("True", "NewMachineSetAvailable")
    assert len([e for e in person.events() if e.reason == "NewMachinesFailing"]) == 1
    assert person.field(".status.failedMachines") == ""


def a_broken_class_is_mended_and_the_update_goes_on(person: Person) -> None:
    person.create(replicas=1)
    person.create_class("broken", failures=[_NO_IMAGE])
    person.wait_until_rolled_out(machines=1)
    (before,) = person.names("mc")
    person.edit_class("broken")
    person.wait_for_condition("Progressing", "NewMachinesFailing")
    assert before in person.names("mc")
    person.create_class("broken", failures=[])
    person.wait_until_rolled_out(machines=1)
    assert person.condition("Progressing")[:2] == ("True", "NewMachineSetAvailable")
    assert before not in person.names("mc")


def a_failing_update_is_rolled_back_where_that_is_asked_for(person: Person) -> None:
    person.create(replicas=2)
    person.create_class("broken", failures=[_NO_IMAGE])
    person("annotate", "mcd", person.name, "deployment.machine.sapcloud.io/rollback-after=3s")
    person.wait_until_rolled_out(machines=2)
    before = person.names("mc")
    person.edit_class("broken")
    person.wait("condition=RolledBack")
    assert person.field(".spec.template.spec.class.name") == f"{person.name}-small"
    person.wait_until_rolled_out(machines=2)
    assert person.names("mc") == before
    message = person.condition("RolledBack")[2]
    assert message.startswith("Rolled back from revision 2 ")
    assert "no image ubuntu-99" in message
    assert "take the former template back" not in message, "that was done"
    told = [e.reason for e in person.events() if e.type == "Warning"]
    assert told == ["NewMachinesFailing", "AutomaticRollback"]
