"""Taking our finalizer off a machine, also off one that no server would take as it is."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import final

from mcm.api.labels import is_label_key, is_label_value
from mcm.api.machine import Machine
from mcm.api.meta import JSONObject
from mcm.api.names import MACHINE_FINALIZER
from mcm.client.errors import Invalid, NotFound
from mcm.controllers.finalizers import without_finalizer
from mcm.controllers.machine.backoff import Pace
from mcm.controllers.machine.creation.bootstrap_token import BootstrapTokens
from mcm.controllers.machine.deletion.record import DeletionRecord
from mcm.controllers.machine.deletion.steps import StepResult
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.preconditions import for_this_version
from mcm.controllers.runtime import DONE, Outcome
from mcm.events import EventType

_TOKEN_TRIES = 4
_TOKEN_PAUSE = 10.0

_NEEDED = ("class", "providerID")
"""Fields of the spec that stay whatever is wrong with them: they name what others may look for."""


@final
class Release:
    """The step REMOVE_FINALIZER. ``token_failures`` counts by machine UID."""

    def __init__(
        self,
        control: ControlCluster,
        record: DeletionRecord,
        tokens: BootstrapTokens | None,
        token_failures: MutableMapping[str, int],
    ) -> None:
        self._control = control
        self._record = record
        self._tokens = tokens
        self._token_failures = token_failures

    async def release(self, machine: Machine) -> StepResult:
        """Take the finalizer off, and with it what the server refuses, if it does."""
        change = without_finalizer(machine.metadata, MACHINE_FINALIZER)
        if change is None:
            return DONE
        if wait := self._record.wait_for(machine, "finalizer"):
            return Outcome(after=wait, reason="the finalizer could not be removed")
        if await self._keeps_token(machine):
            return Outcome(after=_TOKEN_PAUSE, reason="the bootstrap token could not be deleted")
        try:
            try:
                await self._patch(machine, change)
            except Invalid as refusal:
                await self._patch(machine, with_repairs(machine, change, refusal))
        except NotFound:
            return DONE
        except Invalid as refusal:
            return self._refused(machine, refusal)
        self._control.tell(machine, EventType.NORMAL, "Deleted", "The machine is gone")
        return DONE

    async def _keeps_token(self, machine: Machine) -> bool:
        """Delete the bootstrap token; tell whether that failed and is to be tried again. Nobody
        looks for it once the machine is gone; but it expires, so no machine stays for it."""
        if self._tokens is None or await self._tokens.revoke(machine):
            return False
        uid = machine.metadata.uid
        failures = self._token_failures.get(uid, 0) + 1
        self._token_failures[uid] = failures
        return failures < _TOKEN_TRIES

    async def _patch(self, machine: Machine, change: JSONObject) -> None:
        await self._control.patch(machine, for_this_version(machine.metadata, change))

    def _refused(self, machine: Machine, refusal: Invalid) -> Outcome:
        note = f"All that belonged to the machine is gone, but its finalizer stays: {refusal}"
        self._control.tell(machine, EventType.WARNING, "FinalizerNotRemovable", note)
        wait = self._record.failed(machine, Pace.LASTING, "finalizer")
        return Outcome(after=wait, reason="the finalizer could not be removed")


def with_repairs(machine: Machine, change: JSONObject, refusal: Invalid) -> JSONObject:
    """Add to ``change`` the removal of what makes the machine one that no server takes: labels that
    are none, and the fields of the spec that ``refusal`` names."""
    metadata = change["metadata"]
    assert isinstance(metadata, dict)
    labels = {
        key: None
        for key, value in machine.metadata.labels.items()
        if not (is_label_key(key) and is_label_value(value))
    }
    repaired: JSONObject = {**change, "metadata": {**metadata, "labels": labels}}
    named = (cause.field.split(".")[:2] for cause in refusal.causes)
    fields = {path[1].partition("[")[0] for path in named if path[0] == "spec" and len(path) > 1}
    if spec := dict.fromkeys(sorted(fields.difference(_NEEDED))):
        repaired["spec"] = spec
    return repaired
