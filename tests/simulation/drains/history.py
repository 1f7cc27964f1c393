"""Several Nodes drained at once, while users, clouds and networks do what a seed thinks of."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Final, TypeAlias, final

from mcm.api.core import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    VOLUME_ATTACHMENTS,
)
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject, Resource, T
from mcm.api.names import LABEL_FORCE_DELETION
from mcm.client.errors import Conflict, NotFound
from mcm.controllers.settings import ControllerSettings
from mcm.options import LeaderElection, Options
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES, PowerState
from mcm.simulation.faults import WatchEnd
from mcm.simulation.harness import Simulation, name_of
from tests.simulation.drains.ledger import DrainLedger
from tests.simulation.drains.stage import (
    NAMESPACE,
    all_ready,
    app,
    budget,
    fleet,
    is_gone,
    stateful,
)

OPTIONS: Final = Options(
    leader_election=LeaderElection(enabled=False),
    settings=ControllerSettings(
        drain_timeout=timedelta(minutes=5), health_timeout=timedelta(minutes=8)
    ),
)
FLEET: Final = 4
APPS: Final = ("web", "late", "db", "log")
RECOVERY: Final = 15.0
"""Seconds in which mirrors are as the server again, once nothing keeps them from it."""
RELISTED: Final = 45.0
"""The same where a process begins while a list is refused: it tries again later and later."""
_STORAGE: Final = "simulation.machine.sapcloud.io/"
_MIRRORED: Final = ("/pods", "/poddisruptionbudgets", "/volumeattachments")

Act: TypeAlias = Callable[[], Awaitable[None]]


@final
class DrainHistory:
    """What is done, told as it is done in ``story``."""

    def __init__(self, sim: Simulation, chance: random.Random) -> None:
        self.sim = sim
        self.chance = chance
        self.ledger = DrainLedger(sim, OPTIONS.settings)
        self.story: list[str] = []
        self.leaving: list[str] = []

    async def begin(self) -> None:
        chance, sim = self.chance, self.sim
        await sim.apply(fleet(FLEET))
        await sim.until(lambda: sim.running() == FLEET, within=60)
        await sim.apply(
            [
                app("web", 6, grace=chance.choice((0, 1, 10))),
                budget("web", maxUnavailable=chance.choice((1, 2))),
                app("late", 2, wave="1"),
                stateful("db", 4, grace=chance.choice((1, 20))),
                budget("db", maxUnavailable=chance.choice((1, 2))),
                stateful("log", 3, wave=chance.choice(("", "1"))),
            ]
        )
        await sim.until(lambda: all_ready(sim, APPS), within=120)
        for _ in range(chance.choice((1, 2, 3))):
            await self._delete_machine()

    async def trouble(self) -> None:
        """Do one thing; what is not there any more suffers nothing."""
        act = self.chance.choice(self._acts())
        try:
            await act()
        except (NotFound, Conflict) as error:
            self._tell(f"(in vain: {type(error).__name__})")

    async def heal(self) -> None:
        """The network is well from now on; budgets and volumes stay as they are."""
        await self._mend_network()
        on: JSONObject = {"spec": {"powerState": PowerState.ON}}
        for name in self._names(VIRTUAL_MACHINES):
            with suppress(NotFound):  # it goes in this moment
                await self.sim.client.patch(VIRTUAL_MACHINES, name, on, namespace=NAMESPACE)

    @property
    def all_gone(self) -> bool:
        return all(is_gone(self.sim, name) for name in self.leaving)

    def _acts(self) -> tuple[Act, ...]:
        users: tuple[Act, ...] = (
            *(2 * (self._delete_machine,)),
            self._change_drain_timeout,
            self._change_drain_timeout,
            self._force,
            self._change_retries,
            self._uncordon,
            *(3 * (self._delete_pod,)),
            self._delete_claim,
            self._delete_attachment,
            *(3 * (self._change_budget,)),
            self._add_budget,
            self._delete_budget,
        )
        clouds: tuple[Act, ...] = (
            *(3 * (self._slow_volume,)),
            self._power_off,
            *(4 * (self._crash,)),
            self._cut_watches,
            self._lag,
            self._shut_off_mirror,
            self._spoil_evictions,
            self._mend_network,
            self._mend_network,
        )
        return users + clouds

    # ---- users -----------------------------------------------------------------------------------

    async def _delete_machine(self) -> None:
        names = [name for name in self._names(MACHINES) if name not in self.leaving]
        if len(names) < 2:
            return
        name = self.chance.choice(names)
        self._tell(f"delete machine {name}")
        self.leaving.append(name)
        await self.sim.client.delete(MACHINES, name, namespace=NAMESPACE)

    async def _change_drain_timeout(self) -> None:
        await self._machine({"spec": {"drainTimeout": self.chance.choice(("10s", "2m", "8m"))}})

    async def _change_retries(self) -> None:
        await self._machine({"spec": {"maxEvictRetries": self.chance.choice((0, 1, 6, 100))}})

    async def _force(self) -> None:
        await self._machine({"metadata": {"labels": {LABEL_FORCE_DELETION: "True"}}})

    async def _machine(self, patch: JSONObject) -> None:
        if names := [n for n in self._names(MACHINES) if n in self.leaving]:
            await self._patch(MACHINES, self.chance.choice(names), patch)

    async def _uncordon(self) -> None:
        await self._patch(NODES, self._one(NODES), {"spec": {"unschedulable": False}})

    async def _delete_pod(self) -> None:
        grace = self.chance.choice((None, None, 0))
        await self._delete(PODS, grace)

    async def _delete_claim(self) -> None:
        await self._delete(PERSISTENT_VOLUME_CLAIMS)

    async def _delete_attachment(self) -> None:
        await self._delete(VOLUME_ATTACHMENTS)

    async def _delete_budget(self) -> None:
        await self._delete(POD_DISRUPTION_BUDGETS)

    async def _delete(self, resource: Resource[T], grace: int | None = None) -> None:
        name = self._one(resource)
        self._tell(f"delete {resource.kind} {name}, grace {grace}")
        namespace = NAMESPACE if resource.namespaced else ""
        await self.sim.client.delete(
            resource, name, namespace=namespace, grace_period_seconds=grace
        )

    async def _change_budget(self) -> None:
        specs: tuple[JSONObject, ...] = (
            {"maxUnavailable": 0, "minAvailable": None},
            {"maxUnavailable": 1, "minAvailable": None},
            {"maxUnavailable": 3, "minAvailable": None},
            {"maxUnavailable": None, "minAvailable": 2},
            {"maxUnavailable": None, "minAvailable": "100%"},
        )
        spec = self.chance.choice(specs)
        await self._patch(POD_DISRUPTION_BUDGETS, self._one(POD_DISRUPTION_BUDGETS), {"spec": spec})

    async def _add_budget(self) -> None:
        """A second one over the same pods, or one over those that had none."""
        of, name = self.chance.choice(APPS), f"more-{self.chance.randrange(10**6)}"
        self._tell(f"budget {name} over {of}")
        await self.sim.apply([budget(name, of, maxUnavailable=self.chance.choice((0, 1)))])

    # ---- clouds, networks and the process --------------------------------------------------------

    async def _slow_volume(self) -> None:
        setting, value = self.chance.choice(
            (
                ("detach-seconds", "0"),
                ("detach-seconds", "30"),
                ("detach-seconds", "never"),
                ("detach-failures", "3"),
                ("attach-seconds", "40"),
                ("attach-seconds", "never"),
                ("attach-failures", "2"),
            )
        )
        annotations: JSONObject = {f"{_STORAGE}{setting}": value}
        name = self._one(PERSISTENT_VOLUMES)
        await self._patch(PERSISTENT_VOLUMES, name, {"metadata": {"annotations": annotations}})

    async def _power_off(self) -> None:
        name = self._one(VIRTUAL_MACHINES)
        await self._patch(VIRTUAL_MACHINES, name, {"spec": {"powerState": PowerState.OFF}})

    async def _crash(self) -> None:
        away = self.chance.choice((0, 0, 5, 30))
        self._tell(f"crash for {away} s")
        self.ledger.away(away)
        await self.sim.crash_manager()
        await self.sim.pass_time(away)
        self.sim.start_manager()

    async def _cut_watches(self) -> None:
        how = self.chance.choice(list(WatchEnd))
        self._tell(f"watches are {how.value}")
        # Nothing tells that a frozen one is none, before silence does.
        self.ledger.trouble(120.0 if how is WatchEnd.FROZEN else RECOVERY)
        self.sim.faults.cut_watches(how)

    async def _lag(self) -> None:
        path = self.chance.choice(_MIRRORED)
        self._tell(f"events of {path} are late")
        self.ledger.trouble(float("inf"))
        self.sim.faults.delay_events(self.chance.choice((1.0, 5.0)), path=f"{path}$")
        self.sim.faults.cut_watches(WatchEnd.CLOSED)

    async def _shut_off_mirror(self) -> None:
        path = self.chance.choice(_MIRRORED)
        self._tell(f"{path} cannot be read")
        self.ledger.trouble(float("inf"))
        self.sim.faults.answer(503, method="GET", path=f"{path}$")
        self.sim.faults.cut_watches(WatchEnd.RESET)

    async def _spoil_evictions(self) -> None:
        path, faults = "/pods/", self.sim.faults
        kind = self.chance.choice(("429", "500", "lost", "reset", "slow"))
        self._tell(f"requests for pods: {kind}")
        self.ledger.trouble(float("inf"))
        match kind:
            case "429":
                faults.answer(429, path="/eviction$", probability=0.5, retry_after=1)
            case "500":
                faults.answer(500, path=path, probability=0.5)
            case "lost":
                faults.lose_answers(path=path, probability=0.5)
            case "slow":
                faults.delay((0.0, 5.0), back=(0.0, 5.0), path=path)
            case _:
                faults.refuse(path=path, probability=0.5)

    async def _mend_network(self) -> None:
        self._tell("the network is well")
        self.sim.faults.clear()
        self.sim.faults.cut_watches(WatchEnd.CLOSED)
        self.ledger.well_after(RELISTED)

    # ---- inside ----------------------------------------------------------------------------------

    def _tell(self, text: str) -> None:
        self.story.append(f"{self.sim.clock.monotonic():.1f} s: {text}")

    def _names(self, resource: Resource[T]) -> list[str]:
        return sorted(name_of(o) for o in self.sim.objects(resource))

    def _one(self, resource: Resource[T]) -> str:
        names = self._names(resource)
        return self.chance.choice(names) if names else "none"

    async def _patch(self, resource: Resource[T], name: str, patch: JSONObject) -> None:
        self._tell(f"{resource.kind} {name}: {patch}")
        namespace = NAMESPACE if resource.namespaced else ""
        await self.sim.client.patch(resource, name, patch, namespace=namespace)
