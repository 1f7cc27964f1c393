"""What the acts on machines reach the world through, and what they remember between passes.

Reads come from stores. Writes go through writers, which put the answers into those stores. What is
remembered here is lost in a restart, and nothing but speed is lost with it.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, final

from mcm.api.core import Node, Pod, PodDisruptionBudget, Secret, VolumeAttachment
from mcm.api.machine import MACHINES, Machine, MachineClass
from mcm.client.verbs import ObjectClient, ObjectWriter
from mcm.clock import Clock
from mcm.controllers.machine.backoff import Backoff
from mcm.controllers.machine.health.failure_permit import FailurePermits
from mcm.controllers.machine.metrics import MachineMetrics
from mcm.controllers.machine.settings import Limits, settings_of
from mcm.controllers.provider import Credentials, Places, Provider, collect
from mcm.controllers.reachability import Reachability
from mcm.controllers.runtime import Outcome
from mcm.controllers.settings import ControllerSettings
from mcm.drain import Attempts
from mcm.events import EventSink, EventType
from mcm.informers.store import Store

if TYPE_CHECKING:
    from mcm.controllers.machine.creation.bootstrap_token import Token


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The cluster that machines join."""

    client: ObjectClient
    writer: ObjectWriter
    nodes: Store[Node]
    pods: Store[Pod]
    budgets: Store[PodDisruptionBudget]
    attachments: Store[VolumeAttachment]


@final
@dataclass(slots=True)
class Drain:
    """What is remembered of one drain under way."""

    machine_key: str
    attempts: Attempts
    held_back_in: frozenset[str] = frozenset()
    """Namespaces with pods that a budget holds back: a change there wakes this drain."""


@final
@dataclass(slots=True)
class Memory:
    """What is remembered of machines, by UID."""

    tokens: dict[str, Token] = field(default_factory=dict)
    drains: dict[str, Drain] = field(default_factory=dict)
    departed: set[str] = field(default_factory=set)
    """Machines whose Node object was deleted under them."""

    def forget(self, uid: str) -> None:
        self.tokens.pop(uid, None)
        self.drains.pop(uid, None)
        self.departed.discard(uid)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """One object for all acts. ``target`` is None where machines join no cluster."""

    machines: Store[Machine]
    classes: Store[MachineClass]
    secrets: Store[Secret]
    control: ObjectWriter
    target: Target | None
    provider: Provider
    clock: Clock
    events: EventSink
    settings: ControllerSettings
    random: random_module.Random
    backoff: Backoff
    places: Places
    permits: FailurePermits
    reachability: Callable[[], Reachability]
    metrics: MachineMetrics
    memory: Memory = field(default_factory=Memory)

    def now(self) -> datetime:
        return self.clock.now()

    def limits(self, machine: Machine) -> Limits:
        return settings_of(machine, self.settings)

    def class_of(self, machine: Machine) -> MachineClass | None:
        return self.classes.get(f"{machine.metadata.namespace}/{machine.spec.class_.name}")

    def credentials(self, machine_class: MachineClass) -> Credentials:
        return collect(machine_class, self.secrets.get)

    def latest(self, machine: Machine) -> Machine:
        """Return what the store knows of this very machine, if it is still there."""
        known = self.machines.get(machine.metadata.key)
        return known if known and known.metadata.uid == machine.metadata.uid else machine

    def tell(self, machine: Machine, kind: EventType, reason: str, note: str) -> None:
        """Record a Kubernetes Event on the machine."""
        self.events.event(MACHINES, machine, kind, reason, note)


@final
@dataclass(frozen=True, slots=True)
class Progress:
    """What an act returns: the machine as it is now, and when to look at it again by itself."""

    machine: Machine
    outcome: Outcome = Outcome()  # noqa: RUF009 - frozen
