"""For each question whose answer has commands: a fleet that has it, and what must come of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tests.integration.faq.reader import Reader

_EXPIRED: Final = {"code": "Unauthenticated", "message": "the token has expired", "times": 999}
_NO_CAPACITY: Final = {
    "verb": "create",
    "code": "ResourceExhausted",
    "message": "no capacity for sim.small",
    "times": 999,
}


def events_tell_why_a_machine_went(reader: Reader) -> None:
    person = reader.person
    (first,) = reader.fleet(1)
    person("delete", "node", reader.node_of(first))
    person.wait_until_rolled_out(machines=1)
    shown = reader.type(0, MACHINE=first)
    assert "NodeDeleted" in shown and "VMDeleted" in shown
    (second,) = person.names("mc")
    person.scale(0)
    person.until(lambda: not person.names("mc"), what="all machines are gone")
    (machine_set,) = person.names("mcs")
    assert second in person.describe(f"mcs/{machine_set}")
    assert "NodeDeleted" not in reader.type(0, MACHINE=second)


def what_is_missing_is_told(reader: Reader) -> None:
    assert "0 problems" in reader.type(0)


def a_rollout_keeps_to_its_numbers(reader: Reader) -> None:
    reader.fleet(3)
    reader.person.create_class("other")
    plan = reader.type(0)
    assert "at most 5 may exist, at least 3 must serve" in plan
    assert "Complete after" in plan


def who_has_the_least_priority_goes(reader: Reader) -> None:
    person = reader.person
    reader.fleet(2)
    older = person.names("mc")
    person.scale(3)
    person.wait_until_rolled_out(machines=3)
    (youngest,) = set(person.names("mc")) - set(older)
    reader.type(0, MACHINE=youngest)
    person.until(lambda: person.names("mc") == older, what=f"{youngest} is gone, and no other")


def force_asks_no_budget(reader: Reader) -> None:
    (machine,) = reader.fleet(1)
    reader.hold_with_a_budget()
    reader.type(0, MACHINE=machine)
    reader.person.wait_until_rolled_out(machines=1)
    assert machine not in reader.person.names("mc")


def a_pause_stops_an_update_that_goes_on_afterwards(reader: Reader) -> None:
    person = reader.person
    before = set(reader.fleet(2))
    person.create_class("other", bootLatency="1500ms")
    person.edit_class("other")
    person.until(lambda: len(person.names("mc")) == 3, what="the update begins")
    reader.type(0)
    person.wait("condition=Paused")
    (new,) = set(person.names("mc")) - before
    person.wait_for_field(".status.currentStatus.phase", "Running", f"mc/{new}")
    person.wait_for_field(".status.updatedReplicas", 1)
    assert before < set(person.staying("mc"))
    reader.type(1)
    person.wait_until_rolled_out(machines=2)
    assert not before & set(person.names("mc"))
    assert reader.type(2).split("\n")[:2] == [
        f"machinedeployment.machine.sapcloud.io/{reader.name} {word}"
        for word in ("paused", "resumed")
    ]


def a_node_that_asks_for_it_is_replaced(reader: Reader) -> None:
    person = reader.person
    chosen, other = reader.fleet(2)
    key = "node.machine.sapcloud.io/trigger-deletion-by-mcm"
    person("annotate", "node", reader.node_of(other), f"{key}=false")
    reader.type(0, NODE=reader.node_of(chosen))
    person.until(lambda: chosen not in person.names("mc"), what=f"{chosen} is gone")
    person.wait_until_rolled_out(machines=2)
    assert other in person.names("mc")
    told = person("get", "events", f"--field-selector=involvedObject.name={chosen}")
    assert "DeletionTriggered" in told


def another_template_rolls_all_machines(reader: Reader) -> None:
    person = reader.person
    before = reader.fleet(1)
    person.create_class("other")
    assert "successfully rolled out" in reader.type(0)
    of_class = person.names("mc")
    assert of_class != before
    assert person.field(".spec.class.name", f"mc/{of_class[0]}") == f"{reader.name}-other"
    shown = reader.type(1)
    assert "successfully rolled out" in shown and "restarted" in shown
    person.wait_until_rolled_out(machines=1)
    assert person.names("mc") != of_class
    annotations = person.field(".spec.template.metadata.annotations")
    assert "example.com/image-of" in annotations and "restartedAt" in annotations


def options_are_listed(reader: Reader) -> None:
    assert "--machine-drain-timeout" in reader.type(0)


def timeouts_reach_machines_as_they_are(reader: Reader) -> None:
    (machine,) = reader.fleet(1)
    reader.type(0)
    reader.person.wait_for_field(".spec.drainTimeout", "30m", f"mc/{machine}")
    rows = [row.split() for row in reader.type(0).splitlines()]
    assert [machine, "5m", "30m"] in rows
    assert reader.person.names("mc") == [machine]


def phases_are_shown(reader: Reader) -> None:
    (machine,) = reader.fleet(1)
    rows = [row.split()[:2] for row in reader.type(0).splitlines()]
    assert rows[0] == ["NAME", "STATUS"] and [machine, "Running"] in rows


def a_fleet_that_is_scaled_in_a_rollout_ends_whole(reader: Reader) -> None:
    person = reader.person
    before = reader.fleet(2)
    person.create_class("other", bootLatency="1s")
    person.edit_class("other")
    person.until(lambda: len(person.names("mcs")) == 2, what="the update begins")
    assert "successfully rolled out" in reader.type(0)
    person.wait_until_rolled_out(machines=4)
    assert not set(before) & set(person.names("mc"))
    sizes = {row["NAME"]: row["DESIRED"] for row in person.table("mcs")}
    assert sorted(sizes.values()) == ["0", "4"]


def a_budget_that_holds_a_deletion_up_is_named(reader: Reader) -> None:
    person = reader.person
    (machine,) = reader.fleet(1)
    node = reader.node_of(machine)
    reader.hold_with_a_budget()
    person("delete", "machine", machine, "--wait=false")
    person.wait_for_condition("Drained", "Blocked", f"mc/{machine}")
    budget = f"default/{reader.name}"
    operation, drained, *events = reader.type(0, MACHINE=machine).splitlines()
    assert budget in operation and "misconfigured" in operation
    assert budget in drained and "held by a misconfigured disruption budget" in drained
    assert any("DrainBlocked" in event and budget in event for event in events)
    plan = reader.type(1, NODE=node, code=3)
    assert budget in plan
    reader.type(2, BUDGET=reader.name)
    person.until(lambda: machine not in person.names("mc"), what=f"{machine} is gone")
    person("delete", "deployment", reader.name)


def what_the_cloud_says_of_a_deletion_is_shown(reader: Reader) -> None:
    person = reader.person
    person.wait_until_rolled_out(machines=1)
    (machine,) = person.names("mc")
    person.create_class("small", failures=[{"verb": "delete", **_EXPIRED}])
    person("delete", "machine", machine, "--wait=false")
    said = ".status.lastOperation.description"
    person.until(
        lambda: "the token has expired" in person.field(said, f"mc/{machine}"),
        what="the last operation has the provider's words",
    )
    assert "Unauthenticated" in person.describe(f"mc/{machine}")
    person.create_class("small")
    person.until(lambda: machine not in person.names("mc"), what=f"{machine} is gone")


def what_keeps_a_machine_from_being_made_is_shown(reader: Reader) -> None:
    person = reader.person
    reader.fleet(0)
    person.create_class("other", failures=[{"verb": "create", **_EXPIRED}])
    person.edit_class("other")
    person.scale(1)
    person.until(lambda: len(person.names("mc")) == 1, what="a machine is begun")
    (machine,) = person.names("mc")
    person.wait_for_field(".status.currentStatus.phase", "CrashLoopBackOff", f"mc/{machine}")
    shown = reader.type(0, MACHINE=machine)
    assert "the token has expired" in shown and "Unauthenticated" in shown
    assert shown.splitlines()[-1] == "default/cloud"


def a_machine_that_does_not_join_says_so(reader: Reader) -> None:
    person = reader.person
    person.create_class("silent", joins=False)
    person.edit_class("silent")

    def silent() -> list[str]:
        rows = person.table("mc", "-o", "wide")
        return [row["NAME"] for row in rows if row["STATUS"] == "Pending"]

    person.until(lambda: bool(silent()), what="a machine is Pending")
    machine = silent()[0]
    shown = reader.type(0, MACHINE=machine)
    assert "simulated:///" in shown
    person.patch({"spec": {"template": {"spec": {"creationTimeout": "1s"}}}})

    def failed() -> str:
        return person("get", "events", "--field-selector", f"involvedObject.name={machine}")

    person.until(lambda: "failed to join the cluster in 1s" in failed(), what="it is given up")
    person.scale(0)


def a_rollout_that_is_stuck_names_a_machine_and_its_error(reader: Reader) -> None:
    person = reader.person
    before = reader.fleet(2)
    person.create_class("other", failures=[_NO_CAPACITY])
    person.edit_class("other")
    person.wait_for_condition("Progressing", "NewMachinesFailing")
    shown = reader.type(0)
    assert "NewMachinesFailing" in shown and "ResourceExhausted" in shown
    assert "no capacity for sim.small" in reader.type(1, code=1)
    assert set(before) <= set(person.staying("mc"))


SCENARIOS: Final[Mapping[str, tuple[Callable[[Reader], None], ...]]] = {
    "Why does my machine not join the cluster?": (
        what_keeps_a_machine_from_being_made_is_shown,
        a_machine_that_does_not_join_says_so,
    ),
    "Why is my machine stuck in deletion?": (
        a_budget_that_holds_a_deletion_up_is_named,
        what_the_cloud_says_of_a_deletion_is_shown,
    ),
    "Why is my rolling update stuck?": (a_rollout_that_is_stuck_names_a_machine_and_its_error,),
    "Why was my machine deleted?": (events_tell_why_a_machine_went,),
    "How do I install mcm?": (what_is_missing_is_told,),
    "How do I control the rollout of machines?": (a_rollout_keeps_to_its_numbers,),
    "How do I choose which machine goes when I scale down?": (who_has_the_least_priority_goes,),
    "How do I force the deletion of a machine?": (force_asks_no_budget,),
    "How do I pause a rolling update?": (a_pause_stops_an_update_that_goes_on_afterwards,),
    "How do I replace a machine that I have no access to?": (a_node_that_asks_for_it_is_replaced,),
    "How do I trigger a rolling update?": (another_template_rolls_all_machines,),
    "Which configuration options are there?": (options_are_listed,),
    "Which timeouts has a machine in its life?": (timeouts_reach_machines_as_they_are,),
    "Which phases has a machine?": (phases_are_shown,),
    "What happens when I scale in the middle of a rollout?": (
        a_fleet_that_is_scaled_in_a_rollout_ends_whole,
    ),
}
"""Those that take longest come first."""
