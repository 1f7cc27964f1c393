"""Keeps what a VM joins with valid until it has joined, and says so if it cannot join any more."""

from __future__ import annotations

from datetime import timedelta
from typing import final

from mcm.api.machine import Machine
from mcm.controllers.machine import last_operation, status
from mcm.controllers.machine.creation.bootstrap_token import BootstrapTokens
from mcm.controllers.machine.creation.user_data import needs_token
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.runtime import DONE, Outcome
from mcm.events import EventType

_SOON = timedelta(minutes=1)
"""A VM that had its token already registers its Node soon; it is no news that it needs none."""


@final
class TokenUpkeep:
    """For machines whose VM was made and whose Node has not come yet."""

    def __init__(
        self, control: ControlCluster, target: TargetCluster, tokens: BootstrapTokens
    ) -> None:
        self._control = control
        self._target = target
        self._tokens = tokens

    async def keep(self, machine: Machine) -> Outcome:
        """Prolong the machine's token if need be. Raises what the token's cluster answers."""
        if self._target.nodes.get(machine.node_name) is not None:
            return DONE  # whoever registers a Node has credentials of its own by then
        class_ = self._control.class_of(machine)
        if class_ is None or not needs_token(self._control.credentials(class_).data):
            return DONE
        last = machine.status.last_operation
        if last.description == last_operation.token_lost().description:
            return DONE
        if last_operation.says_invalid(last):
            return (
                DONE  # the two would overwrite each other for ever: once it is mended, it is told
            )
        if await self._tokens.keep(machine):
            return DONE
        now = self._control.now()
        since = machine.status.current_status.last_update_time or now
        left = (since + _SOON - now).total_seconds()
        if left > 0:
            return Outcome(after=left, reason="a VM without bootstrap token may join yet")
        done = last_operation.token_lost()
        wanted = status.with_operation(machine.status, done, now)
        await self._control.write_status(machine, wanted)
        self._control.tell(machine, EventType.WARNING, "BootstrapTokenLost", done.description)
        return DONE
