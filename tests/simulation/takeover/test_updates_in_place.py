"""An update in place of the Go original's, carried on after each step of its handshake."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mcm.api.core import NODES
from mcm.api.meta import JSONObject
from tests.simulation.takeover.as_left import (
    HASH,
    OLD_NODE_TAINT,
    PREFER_NO_SCHEDULE,
    LeftFleet,
    LeftMachine,
    LeftSet,
    condition,
    in_place,
)
from tests.simulation.takeover.handed_over import HandedOver, take_over
from tests.thoroughness import part_of

SCALE_UP_DISABLED = "node.machine.sapcloud.io/scale-up-disabled"
UPDATE_RESULT = "node.machine.sapcloud.io/update-result"
FAILED_REASON = "node.machine.sapcloud.io/update-failed-reason"
CRITICAL = {"key": "node.gardener.cloud/critical-components-not-ready", "effect": "NoSchedule"}
SELECTED_BY_PEOPLE = "node.machine.sapcloud.io/selected-for-update"


class Update:
    """Four machines of a that are updated to b; each step is one of the original's writes.

    Steps of one machine are those of the second, ``one``.
    """

    def __init__(self, *, surge: int = 0, unavailable: int = 1, how: str = "Auto") -> None:
        self.surge = surge
        self.left = LeftFleet(replicas=4, strategy=in_place(surge, unavailable, how))
        self.old = self.left.add_set("a", 4)
        self.left.complete(self.old)
        self.left.want("b")
        self.moved = False

    @property
    def new(self) -> LeftSet:
        return self.left.sets[1]

    @property
    def one(self) -> LeftMachine:
        return next(m for m in self.left.machines if m.name.endswith("-00001"))

    # ---- the deployment's steps ------------------------------------------------------------------

    def makes_its_set(self) -> Update:
        size = self.surge
        new = self.left.add_set("b", size, machines=0, revision=2)
        for _ in range(size):
            self.left.add_new_machine(new)
        del new.document["status"]
        return self

    def locks_the_old_set(self) -> Update:
        self.old.labels[SCALE_UP_DISABLED] = "true"
        return self

    def taints(self, count: int = 4, *, told: bool = True) -> Update:
        for machine in self.old.machines[:count]:
            machine.taint(OLD_NODE_TAINT)
            machine.keep_from_autoscaler()
        if told:
            self.old.annotations[PREFER_NO_SCHEDULE] = "True"
        return self

    def asks(self, count: int = 4) -> Update:
        for machine in self.old.machines[:count]:
            machine.label_node(candidate_for_update="true")
        return self

    def prepared(self) -> Update:
        """All machines are candidates, and their Nodes show it."""
        self.makes_its_set().locks_the_old_set().taints().asks()
        for machine in self.old.machines:
            self.shows(machine, "CandidateForUpdate")
        return self

    def selects(self) -> Update:
        self.one.label_node(selected_for_update="true")
        return self

    # ---- the machine controller's and the agent's ------------------------------------------------

    def shows(self, machine: LeftMachine, reason: str) -> None:
        said = condition("InPlaceUpdate", "True", reason)
        said["lastHeartbeatTime"] = said.pop("lastUpdateTime")
        conditions = machine.its_node["status"]["conditions"]
        conditions[:] = [c for c in conditions if c["type"] != "InPlaceUpdate"] + [said]

    def mirrors(self, machine: LeftMachine) -> None:
        machine.document["status"]["conditions"] = list(machine.its_node["status"]["conditions"])

    def drains(self) -> Update:
        self.shows(self.one, "SelectedForUpdate")
        self.one.its_node["spec"]["unschedulable"] = True
        return self

    def has_drained(self) -> Update:
        self.mirrors(self.one)
        self.shows(self.one, "DrainSuccessful")
        return self.is_updating()

    def is_updating(self) -> Update:
        self.one.set_phase(
            "InPlaceUpdating", "InPlaceUpdate", "Processing", "Machine is being updated in place"
        )
        return self

    def is_ready(self) -> Update:
        self.mirrors(self.one)
        self.shows(self.one, "ReadyForUpdate")
        return self

    def handed_to_its_agent(self) -> Update:
        return self.prepared().selects().drains().has_drained().is_ready()

    def agent_reports(self) -> Update:
        self.one.label_node(update_result="successful")
        return self

    def sees_the_result(self) -> Update:
        self.shows(self.one, "UpdateSuccessful")
        return self

    def is_updated(self) -> Update:
        self.mirrors(self.one)
        self.one.set_phase(
            "InPlaceUpdateSuccessful", "InPlaceUpdate", "Successful", "Machine was updated"
        )
        return self

    # ---- the way into the new set ----------------------------------------------------------------

    def updated(self) -> Update:
        return self.handed_to_its_agent().agent_reports().sees_the_result().is_updated()

    def moves(self) -> Update:
        """Owner and labels change; those of the template stay as they were."""
        machine, new = self.one, self.new
        machine.document["metadata"]["ownerReferences"] = [
            {
                **machine.document["metadata"]["ownerReferences"][0],
                "name": new.name,
                "uid": new.document["metadata"]["uid"],
            }
        ]
        machine.labels[HASH] = new.labels[HASH]
        machine.labels[UPDATE_RESULT] = "successful"
        self.old.machines.remove(machine)
        new.machines.append(machine)
        return self

    def uncordons(self) -> Update:
        del self.one.its_node["spec"]["unschedulable"]
        return self

    def shrinks_the_old(self) -> Update:
        self.old.scaled(self.old.size - 1)
        return self

    def grows_the_new(self) -> Update:
        self.new.scaled(self.new.size + 1)
        return self

    def unpins(self) -> Update:
        del self.one.labels[UPDATE_RESULT]
        return self

    def cleans_the_node(self) -> Update:
        node = self.one.its_node
        for label in ("candidate-for-update", "selected-for-update", "update-result"):
            node["metadata"]["labels"].pop(f"node.machine.sapcloud.io/{label}")
        node["spec"]["taints"] = [dict(CRITICAL)]
        return self

    def runs_again(self) -> Update:
        text = f"Machine {self.one.name} successfully joined the cluster"
        self.one.set_phase("Running", "InPlaceUpdate", "Successful", text)
        return self

    def moved_and_uncordoned(self) -> Update:
        return self.updated().moves().uncordons()

    def sized(self) -> Update:
        return self.moved_and_uncordoned().shrinks_the_old().grows_the_new()


STEPS: dict[str, Callable[[Update], Update]] = {
    "only the template": lambda u: u,
    "the new set": lambda u: u.makes_its_set(),
    "the old set is locked": lambda u: u.makes_its_set().locks_the_old_set(),
    "some Nodes are tainted": lambda u: u.makes_its_set().locks_the_old_set().taints(2, told=False),
    "all Nodes are tainted": lambda u: u.makes_its_set().locks_the_old_set().taints(told=False),
    "some are candidates": lambda u: u.makes_its_set().locks_the_old_set().taints().asks(2),
    "all are candidates": lambda u: u.prepared(),
    "one is selected": lambda u: u.prepared().selects(),
    "one drains": lambda u: u.prepared().selects().drains(),
    "one is drained": lambda u: u.prepared().selects().drains().has_drained(),
    "one is its agent's": lambda u: u.handed_to_its_agent(),
    "its agent reports": lambda u: u.handed_to_its_agent().agent_reports(),
    "the Node says so": lambda u: u.handed_to_its_agent().agent_reports().sees_the_result(),
    "the machine says so": lambda u: u.updated(),
    "one has moved": lambda u: u.updated().moves(),
    "it is uncordoned": lambda u: u.moved_and_uncordoned(),
    "the old set is smaller": lambda u: u.moved_and_uncordoned().shrinks_the_old(),
    "the new set is larger": lambda u: u.sized(),
    "it is unpinned": lambda u: u.sized().unpins(),
    "its Node is clean": lambda u: u.sized().unpins().cleans_the_node(),
    "it runs again": lambda u: u.sized().unpins().cleans_the_node().runs_again(),
}
UPDATED_FROM = tuple(STEPS).index("its agent reports")


@pytest.mark.parametrize(
    ("name", "surge"),
    part_of([(name, surge) for surge in (0, 1) for name in STEPS], one_in=6, in_ci=2),
)
def test_each_step_is_carried_on(name: str, surge: int) -> None:
    """Who is updated is not updated again, and nobody is replaced but for the surge."""
    update = STEPS[name](Update(surge=surge, unavailable=1))
    one, before = update.one, {m.uid for m in update.old.machines} | {update.one.uid}
    done = tuple(STEPS).index(name) >= UPDATED_FROM

    async def scenario(seen: HandedOver) -> None:
        await seen.ends("b")
        assert len(seen.lost) == surge
        assert seen.lost <= before - ({one.uid} if done else set())
        assert seen.made == (surge if len(update.left.sets) == 1 else 0)
        assert set(seen.agents.worked.values()) == {1}
        assert seen.agents.worked.total() == 4 - surge - done
        assert not (done and one.name in seen.agents.worked)
        assert seen.witness.most <= 4 + surge

    take_over(update.left, scenario)


@pytest.mark.parametrize("name", part_of(tuple(STEPS), one_in=4, in_ci=2))
def test_people_go_on_selecting(name: str) -> None:
    update = STEPS[name](Update(how="Manual"))
    done = tuple(STEPS).index(name) >= UPDATED_FROM

    async def scenario(seen: HandedOver) -> None:
        await seen.sim.pass_time(60)
        begun = set(seen.agents.worked)
        assert begun <= {update.one.name}, "nobody is selected who was not"
        for machine in update.left.machines:
            if not (done and machine is update.one):
                label: JSONObject = {"metadata": {"labels": {SELECTED_BY_PEOPLE: "true"}}}
                if machine.name not in begun:
                    await patch_node(seen, machine.name, label)
                await seen.sim.pass_time(60)
        await seen.ends("b")
        assert (seen.made, seen.lost) == (0, set())
        assert seen.agents.worked[update.one.name] == (0 if done else 1)

    take_over(update.left, scenario)


async def patch_node(seen: HandedOver, name: str, change: JSONObject) -> None:
    await seen.sim.client.patch(NODES, name, change)
