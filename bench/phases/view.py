"""A fleet as the bench sees it: mirrors of its Machines and Nodes, kept by watches."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Final, final

from bench.instant.kubelets import node_name
from bench.instant.manifests import FLEET_LABEL
from bench.phases.reactions import CREATED, DELETED, DIED, JOINED, Reactions
from mcm.api.core import NODES, Node
from mcm.api.machine import MACHINES, Machine, MachinePhase
from mcm.client.client import Client
from mcm.clock import SystemClock
from mcm.informers import Change, Informer

LOOKS_EVERY: Final = 0.5
"""Seconds after which it is looked at again whether the manager still runs."""


class TooLate(Exception):
    """What was waited for did not come; the text says how far the fleet was."""


@final
class FleetView:
    """``machines`` and ``nodes`` are informers that somebody must run."""

    def __init__(self, client: Client, namespace: str) -> None:
        clock = SystemClock()
        self.machines = Informer(client, MACHINES, clock=clock, namespace=namespace)
        self.nodes = Informer(client, NODES, clock=clock)
        self.reactions = Reactions()
        self._namespace = namespace
        self._running: Counter[tuple[str, str]] = Counter()
        self._total: Counter[str] = Counter()
        self._changed = asyncio.Event()
        self.fleet_nodes = 0
        self.machines.add_handler(self._on_machine)
        self.nodes.add_handler(self._on_node)

    def total(self, deployment: str) -> int:
        return self._total[deployment]

    def running(self, deployment: str, machine_class: str = "") -> int:
        """Count the machines that run and are to stay; of all classes, or of one."""
        return sum(
            count
            for (name, of_class), count in self._running.items()
            if name == deployment and machine_class in ("", of_class)
        )

    def of(self, deployment: str) -> list[Machine]:
        return [each for each in self.machines.store.list() if _deployment(each) == deployment]

    async def until(
        self, condition: Callable[[], bool], *, within: float, check: Callable[[], None], what: str
    ) -> None:
        """Return once the condition holds. ``check`` raises if waiting has become useless."""
        deadline = time.monotonic() + within
        while not condition():
            check()
            if time.monotonic() > deadline:
                raise TooLate(f"not within {within:.0f} s: {what} ({self.describe()})")
            self._changed.clear()
            try:
                async with asyncio.timeout(LOOKS_EVERY):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def describe(self) -> str:
        phases = Counter(
            each.status.current_status.phase or "new" for each in self.machines.store.list()
        )
        told = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items()))
        return f"machines: {told or 'none'}; Nodes: {self.fleet_nodes}"

    # ---- handlers -------------------------------------------------------------------------------

    def _on_machine(self, change: Change[Machine]) -> None:
        self._count(change.old, -1)
        self._count(change.new, +1)
        self._time(change.old, change.new, time.monotonic())
        self._changed.set()

    def _count(self, machine: Machine | None, by: int) -> None:
        if machine is None:
            return
        name = _deployment(machine)
        self._total[name] += by
        if _runs(machine):
            self._running[name, machine.spec.class_.name] += by

    def _time(self, old: Machine | None, new: Machine | None, now: float) -> None:
        machine = new or old
        assert machine is not None
        uid, reactions = machine.metadata.uid, self.reactions
        if new is None:
            reactions.ends(DELETED, uid, now)
            reactions.forget(CREATED, uid)
            reactions.forget(JOINED, node_name(machine))
            reactions.forget(DIED, node_name(machine))
            return
        if old is None:
            reactions.begins(CREATED, uid, now)
        if new.spec.provider_id:
            reactions.ends(CREATED, uid, now)
        if _runs(new):
            reactions.ends(JOINED, node_name(new), now)
        elif old is not None and _runs(old):
            reactions.ends(DIED, node_name(new), now)
        if new.metadata.deletion_timestamp is not None:
            reactions.begins(DELETED, uid, now)

    def _on_node(self, change: Change[Node]) -> None:
        if change.object.metadata.labels.get(FLEET_LABEL) != self._namespace:
            return
        self.fleet_nodes += (change.new is not None) - (change.old is not None)
        name = change.object.metadata.name
        if change.old is None:
            self.reactions.begins(JOINED, name, time.monotonic())
        if change.new is not None and not _ready(change.new):
            self.reactions.begins(DIED, name, time.monotonic())
        self._changed.set()


def _deployment(machine: Machine) -> str:
    return machine.metadata.labels.get("name", "")


def _runs(machine: Machine) -> bool:
    phase = machine.status.current_status.phase
    return phase == MachinePhase.RUNNING and machine.metadata.deletion_timestamp is None


def _ready(node: Node) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)
