"""Sizes: scaled up and down, what tables show meanwhile, and sizes that cannot be meant."""

from __future__ import annotations

from tests.envtest.operations.person import Person

_OF_DEPLOYMENT = ("READY", "DESIRED", "UP-TO-DATE", "AVAILABLE")
_OF_SET = ("DESIRED", "CURRENT", "READY")


def numbers_are_shown_from_the_first_moment(person: Person) -> None:
    person.create(replicas=2)
    person.until(lambda: bool(person.names("mcs")), what="a set is made")
    person.wait_for_field(".status.observedGeneration", 1)
    seen = person.row("mcd")
    assert all(seen[column].isdecimal() for column in _OF_DEPLOYMENT), seen
    person.until(lambda: _no_blanks(person), what="the set shows numbers")
    person.wait("condition=Available")
    person.wait_until_rolled_out(machines=2)
    assert _numbers(person.row()) == ["2", "2", "2", "2"]

    person.scale(4)
    person.wait_until_rolled_out(machines=4)
    machines = person.table("mc", "-o", "wide")
    assert [row["STATUS"] for row in machines] == ["Running"] * 4
    assert all(row["NODE"] and row["PROVIDERID"].startswith("simulated://") for row in machines)
    assert person.field(".status.readyReplicas") == "4"

    person.scale(0)
    person.wait_until_rolled_out(machines=0)
    assert _numbers(person.row()) == ["0", "0", "0", "0"]
    (of_set,) = person.table("mcs")
    assert [of_set[column] for column in _OF_SET] == ["0", "0", "0"]
    (name,) = person.names("mcs")
    told = [e.message for e in person.events() if e.reason == "ScalingMachineSet"]
    assert told == [
        f"Scaled up machine set {name} to 2",
        f"Scaled up machine set {name} to 4",
        f"Scaled down machine set {name} to 0",
    ]
    person("delete", "mcd", person.name, "--timeout=25s")
    assert "NotFound" in person.fails("get", "mcd", person.name)


def sizes_that_cannot_be_meant_are_refused_in_words(person: Person) -> None:
    person.create(replicas=1)
    person.wait_until_rolled_out(machines=1)
    (before,) = person.names("mc")
    person.scale(1_000_000_000)
    person.wait_for_condition("Progressing", "InvalidSpec")
    said = (
        "spec.replicas: Invalid value 1000000000: must be at most 100000, "
        "which --max-replicas allows"
    )
    assert person.condition("Progressing") == ("False", "InvalidSpec", said)
    assert person.names("mc") == [before]
    assert [e.message for e in person.events() if e.reason == "InvalidSpec"] == [said]
    assert said in person.describe()
    complaint = person.fails("scale", "mcd", person.name, "--replicas=-1")
    assert "must be greater than or equal to 0" in complaint
    person.scale(2)
    person.wait_until_rolled_out(machines=2)
    assert person.condition("Progressing")[0] == "True"


def a_machine_counts_after_min_ready_seconds(person: Person) -> None:
    person.create(replicas=1, minReadySeconds=8)
    person.wait_for_field(".status.readyReplicas", 1)
    first = person.row()
    assert (first["READY"], first["AVAILABLE"]) == ("1", "0")
    assert person.condition("Available")[:2] == ("False", "MinimumReplicasUnavailable")
    person.wait("condition=Available")
    person.wait_for_field(".status.availableReplicas", 1)
    assert person.row()["AVAILABLE"] == "1"


def _numbers(row: dict[str, str]) -> list[str]:
    return [row[column] for column in _OF_DEPLOYMENT]


def _no_blanks(person: Person) -> bool:
    return all(row[column] for row in person.table("mcs") for column in _OF_SET)
