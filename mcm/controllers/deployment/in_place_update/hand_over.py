"""Looks where each machine of a deployment stands, and moves those that are updated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, final

from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES
from mcm.api.names import STRATEGY_IN_PLACE_UPDATE
from mcm.client.errors import KubeError, NotFound
from mcm.client.verbs import ObjectWriter
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.in_place_update.standing import UpdateView, is_locked
from mcm.controllers.deployment.in_place_update.transfer import (
    Move,
    moves,
    transfer_change,
)
from mcm.controllers.fanout import fan_out
from mcm.controllers.node_ownership import NodeOwners
from mcm.controllers.preconditions import for_this_version
from mcm.events import EventSink

EVENT_MOVED: Final = "MovedMachine"

Errors = Sequence[KubeError]


@final
class HandOver:
    """All writes to machines that updates in place make, of the deployment's side."""

    def __init__(self, owners: NodeOwners, writer: ObjectWriter, events: EventSink) -> None:
        self._owners = owners
        self._writer = writer
        self._events = events

    def look(self, snapshot: DeploymentSnapshot) -> UpdateView | None:
        """Look at every machine, if one may be updated in place; None if nothing speaks for it."""
        in_place = snapshot.strategy == STRATEGY_IN_PLACE_UPDATE
        if not in_place and not any(is_locked(s) for s in snapshot.sets):
            return None
        return UpdateView.of(snapshot, self._owners.own_node)

    async def move(self, view: UpdateView) -> Errors:
        """Move the machines that may leave their set now; return the refusals."""

        async def move_one(move: Move) -> None:
            await self._move(view, move)

        return await fan_out(move_one, list(moves(view)))

    async def _move(self, view: UpdateView, move: Move) -> None:
        machine, source, target = move.member.machine, move.member.owner, move.target
        change = transfer_change(machine, source, target)
        meta = machine.metadata
        try:
            await self._writer.patch(
                MACHINES, meta.name, for_this_version(meta, change), namespace=meta.namespace
            )
        except NotFound:
            return
        note = (
            f"Machine {meta.name} was updated in place and moved from machine set "
            f"{source.metadata.name} to {target.metadata.name}"
        )
        self._events.event(
            MACHINE_DEPLOYMENTS, view.snapshot.deployment, "Normal", EVENT_MOVED, note
        )
