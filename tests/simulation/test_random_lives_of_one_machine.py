"""A few machines to which a user, a cloud and node agents do whatever a seed thinks of, at once.

Every feature of one machine's life meets every other one: updates of its VM and in place, keeping,
labels and annotations of all kinds, Nodes that are edited, ill or gone, ends of the process.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, final

import pytest

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINES, MachinePhase
from mcm.api.meta import JSONObject, Resource, T
from mcm.api.names import (
    ANNOTATION_CORDONED_BY_MCM,
    ANNOTATION_NOT_MANAGED_BY_MCM,
    ANNOTATION_PRESERVE,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    ANNOTATION_TRIGGER_DELETION,
    ANNOTATION_UPDATE_FAILED_REASON,
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_FORCE_DELETION,
    LABEL_FORCE_DRAIN,
    LABEL_NODE,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
    TAINT_INSTANCE_NOT_READY,
    TAINT_PRESERVED,
)
from mcm.client.errors import NotFound
from mcm.controllers.in_place_marks import Stage, marks_of
from mcm.controllers.settings import ControllerSettings
from mcm.driver import Code
from mcm.events import EVENTS
from mcm.options import LeaderElection, Options
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES, PowerState
from mcm.sandbox import samples
from mcm.simulation.faults import WatchEnd
from mcm.simulation.harness import Simulation, name_of, phase_of
from mcm.simulation.virtualtime import run_virtual
from tests.thoroughness import part_of

SEEDS = part_of(range(10), one_in=3)
TROUBLES = 25
FLEET = 2
ALONE: Final = "alone"
"""A machine that no set owns."""
MOST_WRITES_AN_HOUR = 240
"""Of a machine's object, its user's own included."""
OPTIONS = Options(
    leader_election=LeaderElection(enabled=False),  # most requests would be its own
    settings=ControllerSettings(
        creation_timeout=timedelta(minutes=5),
        health_timeout=timedelta(minutes=1),
        drain_timeout=timedelta(minutes=5),
        inplace_update_timeout=timedelta(minutes=3),
        preserve_timeout=timedelta(minutes=10),
    ),
)
_IN_PLACE = (LABEL_CANDIDATE_FOR_UPDATE, LABEL_SELECTED_FOR_UPDATE, LABEL_UPDATE_RESULT)
WITHDRAWN: JSONObject = {"metadata": {"labels": dict.fromkeys(_IN_PLACE)}}
_PRESERVE = ("now", "when-failed", "auto-preserved", "false", "nonsense", None)
_LIES = (Code.OK, Code.NOT_FOUND, Code.UNINITIALIZED)
"""Of a cloud that lies, its orphans and their Nodes are another test's subject."""
_TEMPLATES: tuple[JSONObject, ...] = (
    {},
    {"spec": {"taints": [{"key": TAINT_INSTANCE_NOT_READY, "effect": "NoSchedule"}]}},
    {"spec": {"taints": [{"key": TAINT_PRESERVED, "effect": "NoSchedule"}]}},
    {"spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}]}},
    {"metadata": {"labels": {"a": "b", LABEL_UPDATE_RESULT: "successful"}}},
    {"metadata": {"annotations": {ANNOTATION_CORDONED_BY_MCM: "in-place-update"}}},
    {"metadata": {"annotations": {ANNOTATION_PRESERVE: "auto-preserved"}}},
    {"metadata": {"annotations": {ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM: "true"}}},
)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_is_done_to_a_machine_it_ends_as_asked(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    run_virtual(lambda: live(seed))
    assert not [r.getMessage() for r in caplog.records if r.exc_info], f"seed {seed}"


async def live(seed: int) -> None:
    async with Simulation(seed=seed, options=OPTIONS, node_grace=60, heartbeat_interval=20) as sim:
        life = Life(sim, random.Random(f"machine {seed}"))
        await life.begin()
        agents = asyncio.create_task(life.agents())
        for _ in range(TROUBLES):
            await life.trouble()
            await sim.pass_time(life.chance.choice((0, 1, 5, 20, 60, 120)))
        await life.heal()
        what = f"seed {seed} ends as asked after: {'; '.join(life.story)}"
        for _ in range(2):  # what was done last may show a while later
            try:
                await life.until(life.as_asked, within=2 * 3600)
            except AssertionError as error:
                found = "\n".join(life.shortcomings())
                raise AssertionError(f"{what}\n{sim.describe()}\n{found}") from error
            await sim.pass_time(420)
        before = life.writes()
        await sim.pass_time(600)
        assert life.writes() == before, f"it goes on writing: {what}"
        assert not life.shortcomings(), what
        life.check_writes(what)
        agents.cancel()
        await asyncio.gather(agents, return_exceptions=True)


@final
class Life:
    """One seed's history, and what is to be true at its end."""

    def __init__(self, sim: Simulation, chance: random.Random) -> None:
        self.sim = sim
        self.chance = chance
        self.story: list[str] = []
        self.cordoned: set[str] = set()
        self.agent_answers = "successful"
        self._writes: Counter[str] = Counter()
        self._versions: dict[str, str] = {}
        self._born: dict[str, float] = {}
        self._spec: dict[str, Any] = {}
        sim.on_change(MACHINES, self._look)

    # ---- beginning and end ----------------------------------------------------------------------

    async def begin(self) -> None:
        await self.sim.apply(samples.load())
        (small,) = (c for c in self.sim.objects(MACHINE_CLASSES) if name_of(c) == "small")
        spec = small["providerSpec"]
        assert isinstance(spec, dict)
        self._spec = dict(spec)
        if self.chance.random() < 0.5:
            await self.sim.apply(_app())
        if self.chance.random() < 0.3:
            await self._class(needsInitialization=True)
        await self._patch(MACHINE_DEPLOYMENTS, "sample", {"spec": {"replicas": FLEET}})
        body: JSONObject = {
            "metadata": {"name": ALONE},
            "spec": {"class": {"kind": "MachineClass", "name": "small"}},
        }
        await self.sim.client.create(MACHINES, body, namespace="default")
        if self.chance.random() < 0.7:
            await self.sim.until(lambda: self.sim.running() == FLEET + 1, within=600)

    async def heal(self) -> None:
        """The user asks for nothing new, the cloud and the network are well again."""
        self.sim.faults.clear()
        self.agent_answers = "successful"
        await self._class(quota=0, failures=[])
        await self._patch(MACHINE_DEPLOYMENTS, "sample", {"spec": {"replicas": FLEET}})
        for machine in self._names(MACHINES):
            await self._mend(MACHINES, machine, {"spec": {"healthTimeout": None}})
        for vm in self._names(VIRTUAL_MACHINES):
            spec: JSONObject = {"powerState": PowerState.ON, "nodeConditions": None}
            await self._mend(VIRTUAL_MACHINES, vm, {"spec": spec})
        for node in self.sim.objects(NODES):
            metadata = node["metadata"]
            assert isinstance(metadata, dict)
            failed = metadata.get("labels", {}).get(LABEL_UPDATE_RESULT) == "failed"
            if failed or self.chance.random() < 0.5:
                await self._mend(NODES, name_of(node), WITHDRAWN)

    async def _mend(self, resource: Resource[T], name: str, patch: JSONObject) -> None:
        with suppress(NotFound):
            await self._patch(resource, name, patch)

    async def until(self, condition: Callable[[], bool], *, within: float) -> None:
        """Look every few seconds: a history of hours is not to cost minutes."""
        end = self.sim.clock.monotonic() + within
        while not condition():
            assert self.sim.clock.monotonic() < end
            await self.sim.pass_time(5)

    def as_asked(self) -> bool:
        return not self.shortcomings()

    def shortcomings(self) -> list[str]:
        """Return what is not as it is to be at last."""
        machines = {name_of(m): m for m in self.sim.objects(MACHINES)}
        vms, nodes = set(self._names(VIRTUAL_MACHINES)), self.sim.objects(NODES)
        alone = machines.get(ALONE)
        lost = alone is not None and phase_of(alone) == MachinePhase.FAILED and ALONE not in vms
        wanted = set(machines) - ({ALONE} if lost else set())
        found = [f"{n} is {phase_of(machines[n])}" for n in wanted if not _runs(machines[n])]
        found += [f"{name} is kept" for name, m in machines.items() if _is_kept(m)]
        if len(set(machines) - {ALONE}) != FLEET:
            found.append(f"not {FLEET} machines of the set")
        if vms != wanted:
            found.append("not a VM for each machine")
        if {name_of(node) for node in nodes} - {ALONE} != wanted - {ALONE}:
            found.append("not a Node for each machine")
        return found + [
            f"{name_of(node)} is marked: {node['spec']} {node['metadata']}"
            for node in nodes
            if name_of(node) in wanted and self._is_marked(node)
        ]

    def _is_marked(self, node: Any) -> bool:
        spec, annotations = node["spec"], node["metadata"].get("annotations", {})
        ours = {TAINT_PRESERVED, TAINT_INSTANCE_NOT_READY}
        return (
            any(taint["key"] in ours for taint in spec.get("taints", ()))
            or bool(spec.get("unschedulable")) != (name_of(node) in self.cordoned)
            or ANNOTATION_CORDONED_BY_MCM in annotations
            or ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM in annotations
        )

    def writes(self) -> int:
        """How often the manager wrote; a series of events is concluded half an hour later."""
        written = self.sim.server.requests.writes
        return written(agent="mcm") - written(agent="mcm", resource=EVENTS.name)

    def check_writes(self, what: str) -> None:
        for name, writes in self._writes.items():
            hours = 1 + (self.sim.clock.monotonic() - self._born[name]) / 3600
            assert writes <= MOST_WRITES_AN_HOUR * hours, (name, writes, hours, what)
        reasons = {str(event.get("reason")) for event in self.sim.objects(EVENTS)}
        assert "NotConverging" not in reasons, what

    def _look(self) -> None:
        for machine in self.sim.objects(MACHINES):
            name, version = name_of(machine), str(machine["metadata"]["resourceVersion"])  # type: ignore[index]
            self._born.setdefault(name, self.sim.clock.monotonic())
            if self._versions.get(name) != version:
                self._versions[name] = version
                self._writes[name] += 1

    # ---- what happens ---------------------------------------------------------------------------

    async def trouble(self) -> None:
        """Do one thing; what is not there any more suffers nothing."""
        act = self.chance.choice(self._troubles())
        try:
            await act()
        except NotFound:
            self._tell("(it is gone)")

    def _troubles(self) -> tuple[Callable[[], Awaitable[None]], ...]:
        return (
            self._tag,
            self._tag,
            self._keep_machine,
            self._keep_node,
            self._keep_node,
            self._select,
            self._select,
            self._select,
            self._deselect,
            self._teach_agent,
            self._label_force,
            self._trigger_deletion,
            self._mislabel,
            self._call_unmanaged,
            self._delete_node,
            self._sicken,
            self._sicken,
            self._cure,
            self._power,
            self._upset_cloud,
            self._calm_cloud,
            self._set_quota,
            self._crash,
            self._cut_watches,
            self._lose_vm,
            self._delete_machine,
            self._change_template,
            self._cordon,
            self._spoil_machine,
            self._roll,
            self._scale,
            self._spoil_network,
            self._mend_network,
        )

    async def _tag(self) -> None:
        await self._class(tags={"vm": {"of": self.chance.choice("ab")}})

    async def _keep_machine(self) -> None:
        await self._annotate(MACHINES, ANNOTATION_PRESERVE, self.chance.choice(_PRESERVE))

    async def _keep_node(self) -> None:
        await self._annotate(NODES, ANNOTATION_PRESERVE, self.chance.choice(_PRESERVE))

    async def _select(self) -> None:
        labels = {LABEL_CANDIDATE_FOR_UPDATE: "true", LABEL_SELECTED_FOR_UPDATE: "true"}
        await self._some(NODES, {"metadata": {"labels": labels}})

    async def _deselect(self) -> None:
        gone = self.chance.sample(_IN_PLACE, self.chance.randint(1, 3))
        await self._some(NODES, {"metadata": {"labels": dict.fromkeys(gone)}})

    async def _teach_agent(self) -> None:
        self.agent_answers = self.chance.choice(("successful", "failed", ""))
        self._tell(f"agents answer {self.agent_answers or 'nothing'}")

    async def _label_force(self) -> None:
        label = self.chance.choice((LABEL_FORCE_DELETION, LABEL_FORCE_DRAIN))
        value = self.chance.choice(("true", "True", None))
        await self._some(MACHINES, {"metadata": {"labels": {label: value}}})

    async def _trigger_deletion(self) -> None:
        await self._annotate(NODES, ANNOTATION_TRIGGER_DELETION, "true")

    async def _mislabel(self) -> None:
        value = self.chance.choice((*self._names(NODES), "nowhere", None))
        await self._some(MACHINES, {"metadata": {"labels": {LABEL_NODE: value}}})

    async def _call_unmanaged(self) -> None:
        await self._annotate(NODES, ANNOTATION_NOT_MANAGED_BY_MCM, "1")

    async def _sicken(self) -> None:
        conditions = self.chance.choice(({"Ready": "False"}, {"DiskPressure": "True"}))
        await self._some(VIRTUAL_MACHINES, {"spec": {"nodeConditions": conditions}})

    async def _cure(self) -> None:
        await self._some(VIRTUAL_MACHINES, {"spec": {"nodeConditions": None}})

    async def _power(self) -> None:
        state = self.chance.choice(list(PowerState))
        await self._some(VIRTUAL_MACHINES, {"spec": {"powerState": state}})

    async def _upset_cloud(self) -> None:
        codes = [code.text for code in Code if code not in _LIES]
        failures = [
            {"verb": verb, "code": self.chance.choice(codes), "probability": 0.7}
            for verb in self.chance.sample(("create", "initialize", "update", "delete"), 2)
        ]
        await self._class(failures=failures)

    async def _calm_cloud(self) -> None:
        await self._class(failures=[])

    async def _set_quota(self) -> None:
        await self._class(quota=self.chance.randint(0, 3))

    async def _crash(self) -> None:
        self._tell("crash")
        await self.sim.crash_manager()
        await self.sim.pass_time(self.chance.choice((0, 5, 90)))
        self.sim.start_manager()

    async def _cut_watches(self) -> None:
        how = self.chance.choice(list(WatchEnd))
        self._tell(f"watches are {how.value}")
        self.sim.faults.cut_watches(how)

    async def _spoil_network(self) -> None:
        faults = self.sim.faults
        self._tell("bad network")
        faults.lose_answers(path="machine|nodes", probability=0.05)
        faults.answer(409, method="PATCH", path="machine|nodes", probability=0.05)
        faults.answer(500, method="GET|POST|PATCH|DELETE", path="machine|nodes", probability=0.05)

    async def _mend_network(self) -> None:
        self.sim.faults.clear()

    async def _delete_node(self) -> None:
        await self._delete(NODES)

    async def _lose_vm(self) -> None:
        await self._delete(VIRTUAL_MACHINES)

    async def _delete_machine(self) -> None:
        await self._delete(MACHINES)

    async def _change_template(self) -> None:
        template = self.chance.choice(_TEMPLATES)
        whole = {"metadata": None, "spec": None, **template}
        self._tell(f"template {template}")
        await self._patch(MACHINES, ALONE, {"spec": {"nodeTemplate": whole}})

    async def _spoil_machine(self) -> None:
        timeout = self.chance.choice(("soon", None))
        await self._some(MACHINES, {"spec": {"healthTimeout": timeout}})

    async def _roll(self) -> None:
        class_ = self.chance.choice(("small", "large"))
        self._tell(f"roll to {class_}")
        spec: JSONObject = {"template": {"spec": {"class": {"name": class_}}}}
        await self._patch(MACHINE_DEPLOYMENTS, "sample", {"spec": spec})

    async def _scale(self) -> None:
        replicas = self.chance.randint(0, 3)
        self._tell(f"scale to {replicas}")
        await self._patch(MACHINE_DEPLOYMENTS, "sample", {"spec": {"replicas": replicas}})

    async def _cordon(self) -> None:
        nodes: list[Any] = [*self.sim.objects(NODES)]
        free = [name_of(node) for node in nodes if not node["spec"].get("unschedulable")]
        if free:
            name = self.chance.choice(sorted(free))
            self.cordoned.add(name)
            self._tell(f"cordon {name}")
            await self._patch(NODES, name, {"spec": {"unschedulable": True}})

    # ---- node agents, and whoever rolls updates out ---------------------------------------------

    async def agents(self) -> None:
        """Answer where an update waits for its Node's agent, and take successful ones over."""
        while True:
            for name in self._names(NODES):
                try:
                    await self._attend(name)
                except NotFound:
                    continue
            await self.sim.clock.sleep(5)

    async def _attend(self, name: str) -> None:
        node = await self.sim.client.get(NODES, name)
        marks = marks_of(node)
        if marks.stage is Stage.READY and marks.result is None and self.agent_answers:
            labels = {LABEL_UPDATE_RESULT: self.agent_answers}
            reason = "disk full" if self.agent_answers == "failed" else None
            annotations = {ANNOTATION_UPDATE_FAILED_REASON: reason}
            metadata: JSONObject = {"labels": labels, "annotations": annotations}
            await self._patch(NODES, name, {"metadata": metadata})
        elif marks.awaits_hand_over:
            await self._patch(NODES, name, WITHDRAWN)

    # ---- writing --------------------------------------------------------------------------------

    def _tell(self, text: str) -> None:
        self.story.append(f"{self.sim.clock.monotonic():.0f} s {text}")

    def _names(self, resource: Resource[T]) -> list[str]:
        return sorted(map(name_of, self.sim.objects(resource)))

    async def _class(self, **changes: object) -> None:
        self._tell(f"class {changes}")
        self._spec = {**self._spec, **changes}
        await self._patch(MACHINE_CLASSES, "small", {"providerSpec": self._spec})

    async def _annotate(self, resource: Resource[T], key: str, value: str | None) -> None:
        await self._some(resource, {"metadata": {"annotations": {key: value}}})

    async def _some(self, resource: Resource[T], patch: JSONObject) -> None:
        names = self._names(resource)
        if names:
            name = self.chance.choice(names)
            self._tell(f"{resource.kind} {name} {patch}")
            await self._patch(resource, name, patch)

    async def _delete(self, resource: Resource[T]) -> None:
        names = self._names(resource)
        if names:
            name = self.chance.choice(names)
            self._tell(f"delete {resource.kind} {name}")
            namespace = "default" if resource.namespaced else ""
            await self.sim.client.delete(resource, name, namespace=namespace)

    async def _patch(self, resource: Resource[T], name: str, patch: JSONObject) -> None:
        namespace = "default" if resource.namespaced else ""
        await self.sim.client.patch(resource, name, patch, namespace=namespace)


def _app() -> tuple[JSONObject, ...]:
    """Pods that a drain must ask, and may not take all at once."""
    labels, meta = {"matchLabels": {"app": "a"}}, {"name": "app", "namespace": "default"}
    container = {"name": "c", "image": "i"}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}}
    return (
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {"replicas": 3, "selector": labels, "template": template},
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": meta,
            "spec": {"minAvailable": 2, "selector": labels},
        },
    )


def _runs(machine: JSONObject) -> bool:
    return phase_of(machine) == MachinePhase.RUNNING


def _is_kept(machine: Any) -> bool:
    return "preserveExpiryTime" in machine.get("status", {}).get("currentStatus", {})
