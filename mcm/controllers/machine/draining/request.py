"""What a machine's drain is asked for, and what one pass of it answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, final

from mcm.api.core import Node
from mcm.api.machine import Machine, MachineStatus
from mcm.api.names import LABEL_FORCE_DELETION, LABEL_FORCE_DRAIN, LABEL_VALUE_TRUE
from mcm.controllers.machine.draining.mark import Mark
from mcm.controllers.machine.settings import MachineSettings
from mcm.drain.mode import Force, Mode, go_bool, mode_of
from mcm.drain.request import DrainRequest, Purpose
from mcm.drain.result import DrainResult


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDrain:
    """``mark`` is what keeps new pods off the Node. ``tolerant``: once pods are deleted by force,
    the drain is done whatever came of it."""

    request: DrainRequest
    mark: Mark
    tolerant: bool = False


@final
@dataclass(frozen=True, slots=True)
class Drained:
    """Nothing is left to wait for. ``refusals``: pods that could not even be deleted by force.

    ``status``: the machine's, with what is to be said of the drain now that it is over.
    """

    machine: Machine
    force: Force
    refusals: str
    status: MachineStatus


@final
@dataclass(frozen=True, slots=True)
class Unfinished:
    """Look again in ``after`` seconds; None: when something happens to what was looked at.

    ``trouble`` says what will not pass by waiting alone; empty if all goes its way. ``machine`` has
    the drain's record. ``result`` is None where there was no pass.
    """

    machine: Machine
    after: float | None
    reason: str
    trouble: str = ""
    result: DrainResult | None = None
    shown: MachineStatus | None = None
    """The machine's status with what is to be said of the drain; None: as it is."""

    @property
    def status(self) -> MachineStatus:
        """What to write of the machine, at the latest with whatever else there is to write."""
        return self.machine.status if self.shown is None else self.shown


DrainAnswer: TypeAlias = Drained | Unfinished


def before_deletion(machine: Machine, settings: MachineSettings, now: datetime) -> MachineDrain:
    """Ask for the drain of a Node that goes."""
    start = machine.metadata.deletion_timestamp or now
    forced = go_bool(machine.metadata.labels.get(LABEL_FORCE_DELETION, ""))
    request = _request(machine, settings, start, force_asked=forced, purpose=Purpose.DELETION)
    return MachineDrain(request=request, mark=Mark.CORDON, tolerant=True)


def of_a_node_that_stays(
    machine: Machine, settings: MachineSettings, *, start: datetime, purpose: Purpose, mark: Mark
) -> MachineDrain:
    """Ask for a drain after which the machine lives on: the label ``force-drain`` hardens it."""
    forced = machine.metadata.labels.get(LABEL_FORCE_DRAIN) == LABEL_VALUE_TRUE
    request = _request(machine, settings, start, force_asked=forced, purpose=purpose)
    return MachineDrain(request=request, mark=mark)


def mode_at(now: datetime, request: DrainRequest, node: Node | None) -> Mode:
    """Decide how hard the drain may be; without a Node the copy of its conditions counts."""
    return mode_of(
        node.status.conditions if node is not None else request.last_conditions,
        force_asked=request.force_asked,
        deadline=request.deadline,
        now=now,
    )


def _request(
    machine: Machine,
    settings: MachineSettings,
    start: datetime,
    *,
    force_asked: bool,
    purpose: Purpose,
) -> DrainRequest:
    return DrainRequest(
        node=machine.node_name,
        start=start,
        deadline=start + settings.drain_timeout,
        force_asked=force_asked,
        purpose=purpose,
        limits=settings.drain_limits,
        waves=settings.drain_waves,
        last_conditions=machine.status.conditions,
    )
