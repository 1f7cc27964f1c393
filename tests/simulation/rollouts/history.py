"""One deployment to which users, a cloud and node agents do whatever a seed thinks of."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, final

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject, Resource, T
from mcm.api.names import (
    ANNOTATION_REPLICA_CHANGE_BY_SCALER,
    ANNOTATION_ROLLBACK_AFTER,
    ANNOTATION_TRIGGER_DELETION,
    ANNOTATION_UNFREEZE,
    ANNOTATION_UPDATE_FAILED_REASON,
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_FREEZE,
    LABEL_NODE,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
)
from mcm.api.timestamps import rfc3339
from mcm.client.errors import Conflict, NotFound
from mcm.controllers.in_place_marks import Stage, marks_of
from mcm.controllers.settings import ControllerSettings
from mcm.options import LeaderElection, Options
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES, PowerState
from mcm.sandbox import samples
from mcm.simulation.faults import WatchEnd
from mcm.simulation.harness import Simulation, name_of
from tests.simulation.rollouts.promises import Promises

OPTIONS: Final = Options(
    leader_election=LeaderElection(enabled=False),  # most requests would be its own
    settings=ControllerSettings(
        creation_timeout=timedelta(minutes=2),
        health_timeout=timedelta(minutes=1),
        drain_timeout=timedelta(minutes=5),
        inplace_update_timeout=timedelta(minutes=3),
        preserve_timeout=timedelta(minutes=10),
    ),
)
GOOD: Final = ("one", "two")
BAD: Final = ("never-joins", "refused")
_MARKS: Final = (LABEL_CANDIDATE_FOR_UPDATE, LABEL_SELECTED_FOR_UPDATE, LABEL_UPDATE_RESULT)
_MOST_REPLICAS: Final = 6

Act = Callable[[], Awaitable[None]]


@final
class History:
    """What is done, told as it is done in ``story``; ``declared`` is what is asked for at last."""

    def __init__(self, sim: Simulation, chance: random.Random) -> None:
        self.sim = sim
        self.chance = chance
        self.promises = Promises(sim)
        self.story: list[str] = []
        self.agents_answer = "successful"
        self.declared: dict[str, Any] = {}
        self.in_place = False

    # ---- beginning and end ----------------------------------------------------------------------

    async def begin(self) -> None:
        secret, small, *_, deployment = _ordered(samples.load())
        await self.sim.apply([secret])
        for name in (*GOOD, *BAD):
            provider_spec: JSONObject = {"createLatency": "1s", "bootLatency": "1s"}
            if name == "never-joins":
                provider_spec["joins"] = False
            if name == "refused":
                provider_spec["failures"] = [{"verb": "create", "code": "Internal", "times": 99}]
            meta: JSONObject = {"name": name, "namespace": "default"}
            await self.sim.apply([{**small, "metadata": meta, "providerSpec": provider_spec}])
        self.declared = {
            "replicas": self.chance.randint(1, _MOST_REPLICAS),
            "strategy": self._strategy(),
            "class": "one",
        }
        template = deployment["spec"]["template"]
        template["spec"]["class"]["name"] = "one"
        template["spec"].pop("healthTimeout", None)
        strategy = {k: v for k, v in self.declared["strategy"].items() if v is not None}
        deployment["spec"] |= {"replicas": self.declared["replicas"], "strategy": strategy}
        deployment["spec"]["progressDeadlineSeconds"] = 300
        await self.sim.apply([deployment])
        self._tell(f"begins with {self.declared}")
        if self.chance.random() < 0.8:
            await self.sim.pass_time(60)

    async def heal(self) -> None:
        """The user's last word; the cloud, the network and the agents are well from now on."""
        self.sim.faults.clear()
        self.agents_answer = "successful"
        if self.declared["class"] not in GOOD or self.chance.random() < 0.5:
            self.declared["class"] = self.chance.choice(GOOD)
        self._tell(f"heals: {self.declared}")
        await self._declare(
            paused=False,
            rollbackTo=None,
            minReadySeconds=0,
            autoPreserveFailedMachineMax=0,
            replicas=self.declared["replicas"],
            template=_of_class(self.declared["class"]),
        )
        await self._mend(
            MACHINE_DEPLOYMENTS,
            ["sample"],
            {"metadata": {"annotations": {ANNOTATION_UNFREEZE: "1"}}},
        )
        on: JSONObject = {"spec": {"powerState": PowerState.ON, "nodeConditions": None}}
        await self._mend(VIRTUAL_MACHINES, self.names(VIRTUAL_MACHINES), on)
        failed = [n for n in self.sim.objects(NODES) if _label(n, LABEL_UPDATE_RESULT) == "failed"]
        gone: JSONObject = {"metadata": {"labels": dict.fromkeys(_MARKS)}}
        await self._mend(NODES, map(name_of, failed), gone)

    async def trouble(self) -> None:
        """Do one thing; what is not there any more suffers nothing."""
        act = self.chance.choice(self._acts())
        try:
            await act()
        except (NotFound, Conflict) as error:
            self._tell(f"(in vain: {type(error).__name__})")

    def _acts(self) -> tuple[Act, ...]:
        users: tuple[Act, ...] = (
            *(2 * (self._scale,)),
            *(4 * (self._roll,)),
            *(2 * (self._roll_back,)),
            self._pause,
            self._pause,
            self._change_strategy,
            self._wait_for_ready,
            self._roll_back_by_itself,
            self._keep_failed,
            self._delete_machine,
            self._orphan_machines,
            self._freeze,
            self._unfreeze,
            self._add_machine,
        )
        autoscaler: tuple[Act, ...] = (self._scale_down_marked, self._mark_again, self._scale_up)
        clouds: tuple[Act, ...] = (
            *(2 * (self._lose_vm,)),
            *(2 * (self._power,)),
            self._sicken,
            self._teach_agents,
            self._crash,
            self._crash,
            self._cut_watches,
            self._spoil_network,
            self._mend_network,
        )
        return users + autoscaler + clouds

    # ---- users ----------------------------------------------------------------------------------

    async def _scale(self) -> None:
        await self._declare(replicas=self.chance.randint(0, _MOST_REPLICAS))

    async def _scale_up(self) -> None:
        replicas = min(_MOST_REPLICAS, self.declared["replicas"] + self.chance.randint(1, 3))
        await self._declare(replicas=replicas)

    async def _roll(self) -> None:
        to = self.chance.choice((*GOOD, *GOOD, *BAD))
        await self._declare(template=_of_class(to))

    async def _roll_back(self) -> None:
        await self._declare(rollbackTo={"revision": self.chance.choice((0, 0, 1, 2))})

    async def _pause(self) -> None:
        await self._declare(paused=self.chance.random() < 0.4)

    async def _change_strategy(self) -> None:
        await self._declare(strategy=self._strategy())

    async def _wait_for_ready(self) -> None:
        await self._declare(minReadySeconds=self.chance.choice((0, 10, 40)))

    async def _roll_back_by_itself(self) -> None:
        after = self.chance.choice(("30s", "5m", None))
        self._tell(f"roll back by itself after {after}")
        annotations: JSONObject = {ANNOTATION_ROLLBACK_AFTER: after}
        await self._patch(MACHINE_DEPLOYMENTS, "sample", {"metadata": {"annotations": annotations}})

    async def _keep_failed(self) -> None:
        await self._declare(autoPreserveFailedMachineMax=self.chance.choice((0, 1, 2)))

    async def _delete_machine(self) -> None:
        if name := self._one(MACHINES):
            self._tell(f"delete machine {name}")
            self.promises.excuse(name)
            await self.sim.client.delete(MACHINES, name, namespace="default")

    async def _orphan_machines(self) -> None:
        """Delete the set of the present template, not its machines; who deletes an old set that way
        wants to keep what nobody counts any more."""
        sets: list[Any] = [*self.sim.objects(MACHINE_SETS)]
        machines = self.names(MACHINES)
        in_use = [
            s for s in sets if s["spec"].get("replicas") or s.get("status", {}).get("replicas")
        ]
        if len(in_use) != 1 or self._class_of(in_use[0]) != self._class_of(self._deployment()):
            return
        name = name_of(in_use[0])
        self._tell(f"delete set {name}, not its machines")
        self.promises.excuse(*machines)
        await self._declare(paused=False)
        await self.sim.client.delete(MACHINE_SETS, name, namespace="default", propagation="Orphan")
        await self.sim.pass_time(90)

    async def _freeze(self) -> None:
        resource = self.chance.choice((MACHINE_SETS, MACHINE_DEPLOYMENTS))
        await self._label(resource, LABEL_FREEZE, "True")

    async def _unfreeze(self) -> None:
        resource = self.chance.choice((MACHINE_SETS, MACHINE_DEPLOYMENTS))
        if name := self._one(resource):
            self._tell(f"unfreeze {resource.kind} {name}")
            annotations: JSONObject = {ANNOTATION_UNFREEZE: "True"}
            await self._patch(resource, name, {"metadata": {"annotations": annotations}})

    async def _add_machine(self) -> None:
        """Make a machine by hand that a set then takes for its own."""
        machines: list[Any] = [*self.sim.objects(MACHINES)]
        if not machines:
            return
        model = self.chance.choice(machines)
        name = f"extra-{self.chance.randrange(10**6)}"
        labels = {k: v for k, v in model["metadata"]["labels"].items() if k != LABEL_NODE}
        meta: JSONObject = {"name": name, "namespace": "default", "labels": labels}
        spec = {k: v for k, v in model["spec"].items() if k != "providerID"}
        self._tell(f"add machine {name}")
        self.promises.ignore(name)
        await self.sim.client.create(
            MACHINES, {"metadata": meta, "spec": spec}, namespace="default"
        )

    # ---- the cluster autoscaler -----------------------------------------------------------------

    async def _scale_down_marked(self) -> None:
        names = self.names(MACHINES)
        few = min(len(names), self.declared["replicas"], self.chance.randint(1, 3))
        if few:
            marked = self.chance.sample(names, few)
            await self._hand_over_marks(marked, self.declared["replicas"] - few)

    async def _mark_again(self) -> None:
        names = self.names(MACHINES)
        if names:
            await self._hand_over_marks([self.chance.choice(names)], self.declared["replicas"])

    async def _hand_over_marks(self, names: list[str], replicas: int) -> None:
        now = rfc3339(self.sim.clock.now())
        self._tell(f"the autoscaler wants {names} gone, {replicas} left")
        self.promises.excuse(*names)
        annotations: JSONObject = {
            ANNOTATION_TRIGGER_DELETION: ",".join(f"{name}~{now}" for name in names),
            ANNOTATION_REPLICA_CHANGE_BY_SCALER: now,
        }
        self.declared["replicas"] = replicas
        change: JSONObject = {
            "metadata": {"annotations": annotations},
            "spec": {"replicas": replicas},
        }
        await self._patch(MACHINE_DEPLOYMENTS, "sample", change)

    # ---- clouds and processes -------------------------------------------------------------------

    async def _lose_vm(self) -> None:
        if name := self._one(VIRTUAL_MACHINES):
            self._tell(f"lose VM {name}")
            self.promises.excuse(name)
            await self.sim.client.delete(VIRTUAL_MACHINES, name, namespace="default")

    async def _power(self) -> None:
        state = self.chance.choice(list(PowerState))
        await self._vm({"powerState": state})

    async def _sicken(self) -> None:
        conditions = self.chance.choice(({"Ready": "False"}, {"DiskPressure": "True"}, None))
        await self._vm({"nodeConditions": conditions})

    async def _vm(self, spec: JSONObject) -> None:
        if name := self._one(VIRTUAL_MACHINES):
            self._tell(f"VM {name} {spec}")
            self.promises.excuse(name)
            await self._patch(VIRTUAL_MACHINES, name, {"spec": spec})

    async def _teach_agents(self) -> None:
        self.agents_answer = self.chance.choice(("successful", "failed", ""))
        self._tell(f"agents answer {self.agents_answer or 'nothing'}")

    async def _crash(self) -> None:
        self._tell("crash")
        await self.sim.crash_manager()
        await self.sim.pass_time(self.chance.choice((0, 5, 60)))
        self.sim.start_manager()

    async def _cut_watches(self) -> None:
        how = self.chance.choice(list(WatchEnd))
        self._tell(f"watches are {how.value}")
        self.sim.faults.cut_watches(how)

    async def _spoil_network(self) -> None:
        faults = self.sim.faults
        self._tell("bad network")
        faults.lose_answers(path="machine|nodes", probability=0.04)
        faults.answer(409, method="PATCH", path="machine|nodes", probability=0.04)
        faults.answer(500, method="GET|POST|PATCH|DELETE", path="machine|nodes", probability=0.04)

    async def _mend_network(self) -> None:
        self.sim.faults.clear()

    # ---- node agents, and the person who selects Nodes ------------------------------------------

    async def agents(self) -> None:
        """Update in place what is ready for it; where nobody else does, select one at a time."""
        while True:
            for name in self.names(NODES):
                with suppress(NotFound):
                    await self._attend(name)
            await self.sim.clock.sleep(5)

    async def _attend(self, name: str) -> None:
        marks = marks_of(await self.sim.client.get(NODES, name))
        if marks.stage is Stage.READY and marks.result is None and self.agents_answer:
            reason = "disk full" if self.agents_answer == "failed" else None
            annotations: JSONObject = {ANNOTATION_UPDATE_FAILED_REASON: reason}
            labels: JSONObject = {LABEL_UPDATE_RESULT: self.agents_answer}
            await self._patch(
                NODES, name, {"metadata": {"labels": labels, "annotations": annotations}}
            )
        elif (
            marks.candidate and not marks.selected and self._is_manual() and not self._undergoing()
        ):
            selected: JSONObject = {LABEL_SELECTED_FOR_UPDATE: "true"}
            self.promises.excuse(name)
            await self._patch(NODES, name, {"metadata": {"labels": selected}})

    def _is_manual(self) -> bool:
        block = self.declared["strategy"].get("inPlaceUpdate") or {}
        return block.get("orchestrationType") == "Manual"

    def _undergoing(self) -> bool:
        return any(_label(n, LABEL_SELECTED_FOR_UPDATE) for n in self.sim.objects(NODES))

    # ---- writing --------------------------------------------------------------------------------

    def _strategy(self) -> dict[str, Any]:
        block: dict[str, Any] = {
            "maxSurge": self.chance.randint(0, 2),
            "maxUnavailable": self.chance.randint(0, 2),
        }
        kind = self.chance.choice(("RollingUpdate", "RollingUpdate", "Recreate", "InPlaceUpdate"))
        if kind == "Recreate":
            return {"type": kind, "rollingUpdate": None, "inPlaceUpdate": None}
        if kind == "RollingUpdate":
            return {"type": kind, "rollingUpdate": block, "inPlaceUpdate": None}
        self.in_place = True
        block["orchestrationType"] = self.chance.choice(("Auto", "Auto", "Manual"))
        return {"type": kind, "rollingUpdate": None, "inPlaceUpdate": block}

    async def _declare(self, **spec: Any) -> None:
        """Change the deployment's spec."""
        self._tell(f"declare {spec}")
        for key in ("replicas", "strategy"):
            if key in spec:
                self.declared[key] = spec[key]
        if "template" in spec:
            self.declared["class"] = spec["template"]["spec"]["class"]["name"]
        await self._patch(MACHINE_DEPLOYMENTS, "sample", {"spec": spec})

    def _tell(self, text: str) -> None:
        self.story.append(f"{self.sim.clock.monotonic():.0f} s {text}")

    def names(self, resource: Resource[T]) -> list[str]:
        return sorted(map(name_of, self.sim.objects(resource)))

    def _deployment(self) -> Any:
        (found,) = (d for d in self.sim.objects(MACHINE_DEPLOYMENTS) if name_of(d) == "sample")
        return found

    def _class_of(self, owner: Any) -> str:
        return str(owner["spec"]["template"]["spec"]["class"]["name"])

    def _one(self, resource: Resource[T]) -> str:
        """Choose one by chance; empty if there is none."""
        names = self.names(resource)
        return self.chance.choice(names) if names else ""

    async def _label(self, resource: Resource[T], key: str, value: str) -> None:
        if name := self._one(resource):
            self._tell(f"label {resource.kind} {name} {key}={value}")
            await self._patch(resource, name, {"metadata": {"labels": {key: value}}})

    async def _mend(self, resource: Resource[T], names: Iterable[str], patch: JSONObject) -> None:
        for name in names:
            with suppress(NotFound):
                await self._patch(resource, name, patch)

    async def _patch(self, resource: Resource[T], name: str, patch: JSONObject) -> None:
        namespace = "default" if resource.namespaced else ""
        await self.sim.client.patch(resource, name, patch, namespace=namespace)


def _of_class(name: str) -> dict[str, Any]:
    return {"spec": {"class": {"name": name}}}


def _label(obj: Any, key: str) -> str:
    return str(obj["metadata"].get("labels", {}).get(key, ""))


def _ordered(documents: Iterable[Any]) -> list[Any]:
    order = ("Secret", "MachineClass", "MachineDeployment")
    return sorted(documents, key=lambda document: order.index(document["kind"]))
