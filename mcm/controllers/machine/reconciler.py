"""One pass over one machine: take the steps it is due for, each if what it needs has not failed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, final

from mcm.api.machine import Machine
from mcm.controllers.machine import flow
from mcm.controllers.machine.flow import Step
from mcm.controllers.machine.health.waiting_line import WaitingLine
from mcm.controllers.provider import Places
from mcm.controllers.runtime import Outcome, earliest
from mcm.informers.store import Store

StepAct: TypeAlias = Callable[[Machine], Awaitable[Outcome]]

_MOST_STEPS = 4 * len(Step)
"""What a machine is due for depends on what was done; more steps than these are a circle."""


@final
class MachineReconciler:
    """Brings machines forward. Passes over the same machine never overlap; the queue sees to that.

    ``acts`` lacks the steps of Nodes where there is no target cluster. ``wake_after`` brings a key
    back in so many seconds: a step that has failed must not make another one miss its time.
    A key may have been waiting for one of ``places``, those for calls to the provider, or in
    ``line``, to be given up.
    """

    def __init__(
        self,
        machines: Store[Machine],
        acts: Mapping[Step, StepAct],
        *,
        places: Places,
        line: WaitingLine,
        wake_after: Callable[[str, float], None],
    ) -> None:
        self._machines = machines
        self._acts = acts
        self._has_target = Step.CHECK_HEALTH in acts
        self._places = places
        self._line = line
        self._wake_after = wake_after

    async def reconcile(self, key: str) -> Outcome:
        """Do what is due for the machine ``namespace/name``, as far as it can be done now.

        Raises what the steps raised, several together as a group: then the pass is repeated.
        """
        outcomes: dict[Step, Outcome] = {}
        errors: dict[Step, Exception] = {}
        with self._places.attending(key), self._line.attending(key):
            await self._take_steps(key, outcomes, errors)
        again = earliest(*outcomes.values())
        if not errors:
            return again
        if again.after is not None:
            self._wake_after(key, again.after)
        raised = list(errors.values())
        if len(raised) == 1:
            raise raised[0]
        raise ExceptionGroup(", ".join(step.name for step in errors), raised)

    async def _take_steps(
        self, key: str, outcomes: dict[Step, Outcome], errors: dict[Step, Exception]
    ) -> None:
        uid, done = "", dict[Step, str]()
        seen, due = None, tuple[Step, ...]()
        for _ in range(_MOST_STEPS):
            machine = self._machines.get(key)
            if machine is None or (uid and machine.metadata.uid != uid):
                outcomes.clear()  # gone; its successor has been announced
                return
            uid = machine.metadata.uid
            if machine is not seen:
                seen, due = machine, flow.steps_of(machine, has_target=self._has_target)
            version = machine.metadata.resource_version
            step = flow.next_of(due, version, done=done, failed=errors.keys())
            if step is None:
                return
            outcomes.pop(step, None)
            try:
                outcomes[step] = await self._acts[step](machine)
            except Exception as error:
                errors[step] = error
            done[step] = self._version(key)
        raise AssertionError(f"the steps of {key} do not come to an end")

    def _version(self, key: str) -> str:
        machine = self._machines.get(key)
        return machine.metadata.resource_version if machine is not None else ""
