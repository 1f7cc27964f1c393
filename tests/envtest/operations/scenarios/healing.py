"""Machines that lose their owner, and machines that fail."""

from __future__ import annotations

import json

from tests.envtest.operations.person import Person


def orphans_are_adopted_and_none_is_made_twice(person: Person) -> None:
    person.create(replicas=3)
    person.wait_until_rolled_out(machines=3)
    before, (machine_set,) = person.names("mc"), person.names("mcs")
    target = f"mcs/{machine_set}"
    uid = person.field(".metadata.uid", target)
    person("delete", "mcs", machine_set, "--cascade=orphan", "--wait=false")
    if person.server.lacks_controllers:
        _orphan(person, machine_set)
    person.until(
        lambda: (
            person.names("mcs") == [machine_set]
            and person.field(".metadata.uid", target) not in ("", uid)
        ),
        what="the set is made again",
    )
    person.wait_for_field(".status.readyReplicas", 3, target)
    person.wait_until_rolled_out(machines=3)
    assert person.names("mc") == before
    new = person.field(".metadata.uid", target)
    owners = "jsonpath={.items[*].metadata.ownerReferences[*].uid}"
    assert person("get", "mc", *before, "-o", owners).split() == [new] * 3
    assert [e for e in person.events(target) if e.reason == "SuccessfulCreate"][3:] == []


def a_failed_machine_is_kept_for_whoever_wants_to_look(person: Person) -> None:
    person.create(replicas=2, autoPreserveFailedMachineMax=1, machines={"healthTimeout": "4s"})
    person.wait_until_rolled_out(machines=2)
    before = person.names("mc")
    victim = person.table("mc")[0]
    machine, node = f"mc/{victim['NAME']}", victim["NODE"]
    person("delete", "vm", node, "--wait=false")
    if person.server.lacks_controllers:
        _is_silent(person, node)
    person.wait_for_field(".status.currentStatus.phase", "Failed", machine)
    person.wait("condition=Preserved", f"node/{node}")
    person.wait_for_field(".status.preservedFailedReplicas", 1)
    assert person.names("mc") == before
    told = person.describe(machine)
    assert "health checks failing since" in told
    assert "Machine preserved until" in told
    assert "node.machine.sapcloud.io/preserved:NoSchedule" in person("describe", "node", node)
    shown = {row["NAME"]: row["STATUS"] for row in person.table("mc")}
    assert shown[victim["NAME"]] == "Failed"
    person(
        "annotate", *machine.split("/"), "node.machine.sapcloud.io/preserve=false", "--overwrite"
    )
    person.wait("delete", machine)
    person.wait_until_rolled_out(machines=2)
    assert person.field(".status.preservedFailedReplicas") == "0"


def _orphan(person: Person, machine_set: str) -> None:
    """Do as the garbage collector: release the dependents, then the object."""
    for machine in person.names("mc"):
        person.patch({"metadata": {"ownerReferences": None}}, target=f"mc/{machine}")
    found = json.loads(person.field(".metadata.finalizers", f"mcs/{machine_set}"))
    left = [finalizer for finalizer in found if finalizer != "orphan"]
    person.patch({"metadata": {"finalizers": left}}, target=f"mcs/{machine_set}")


def _is_silent(person: Person, node: str) -> None:
    """Do as the node lifecycle controller."""
    condition = {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.",
    }
    patch = json.dumps({"status": {"conditions": [condition]}})
    person("patch", "node", node, "--subresource=status", "-p", patch)
