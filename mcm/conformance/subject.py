"""What an author tells the kit: how to make the driver, and in which cloud it may make VMs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from mcm.api.machine import MachineClass
from mcm.api.meta import JSONObject
from mcm.clock import Clock, SystemClock
from mcm.driver import Code, Driver


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A situation in which CreateMachine must fail, and with which of the codes.

    What is None is as for every other call, e.g. only ``secret`` is given for wrong credentials.
    """

    when: str
    codes: frozenset[Code]
    machine_class: MachineClass | None = None
    secret: Mapping[str, bytes] | None = field(default=None, repr=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A driver to be checked. VMs are made in its cloud and deleted again, a few dozen in all.

    ``new_driver`` is called in a running loop, once and again: each answer stands for a process,
    and all of them share one cloud. ``secret`` is what a MachineClass's Secrets hold.

    What is optional makes more rules apply: ``neighbour``, a class of another cluster in the same
    account; ``changed_class``, the class with another hot-updatable part; ``refusals``;
    ``volumes``, PersistentVolume specs by the volume ID that each must yield; ``older_classes``,
    objects of class kinds that the provider had before, by their kind.

    ``visible_within`` are the seconds after which the cloud's listings are up to date. ``fleet``
    VMs are made at a time to see whether they get in each other's way, and calls are cancelled at
    ``cuts`` different moments.
    """

    new_driver: Callable[[], Driver]
    machine_class: MachineClass
    secret: Mapping[str, bytes] = field(repr=False)
    neighbour: MachineClass | None = None
    changed_class: MachineClass | None = None
    refusals: Sequence[Refusal] = ()
    volumes: Mapping[str, JSONObject] = field(default_factory=dict)
    older_classes: Mapping[str, JSONObject] = field(default_factory=dict)
    visible_within: float = 0.0
    fleet: int = 5
    cuts: int = 10
    clock: Clock = field(default_factory=SystemClock)
