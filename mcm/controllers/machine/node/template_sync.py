"""Where a Node's labels, annotations, taints and capacity are written, as its machine says."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Final, final

from mcm.api.core import NODES, Node
from mcm.api.machine import Machine, MachinePhase
from mcm.api.names import STATUS_FALSE
from mcm.client.errors import BadRequest, Forbidden, Invalid, NotFound
from mcm.controllers.machine.node.changes import NodeChanges, Refusal
from mcm.controllers.machine.own_conditions import OwnCondition, find_own, with_own, without_own
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.node_ownership import is_managed, is_named
from mcm.controllers.rollouts import Rollouts
from mcm.controllers.runtime import DONE, Outcome
from mcm.events import EventType
from mcm.wording import first_few, same_words

REASON_INVALID: Final = "InvalidNodeTemplate"
REASON_REFUSED: Final = "NodeWriteRefused"

_KIND: Final = OwnCondition.NODE_TEMPLATE_APPLIED
_MOST: Final = 12
"""Requests in one pass: more than there are parts, so that nobody is asked for ever."""
_SHOWN: Final = 5
_LENGTH: Final = 300


@final
class NodeTemplateSync:
    """Keeps a machine's Node as its template and its class say.

    ``rollouts`` tells what goes on in a machine's deployment; None where Nodes are not to be kept
    from the autoscaler. ``refusals`` remembers what servers refused to write, by machine UID.
    """

    def __init__(
        self,
        control: ControlCluster,
        target: TargetCluster,
        *,
        rollouts: Rollouts | None,
        refusals: MutableMapping[str, dict[str, Refusal]],
    ) -> None:
        self._control = control
        self._target = target
        self._rollouts = rollouts
        self._refusals = refusals

    async def sync(self, machine: Machine, *, admitted: bool = False) -> Outcome:
        """Write what differs, as far as it can be; ``admitted``: the machine is about to run.

        Raises Conflict if taints are to change and the Node has changed, and what else is no
        refusal of the content. What is refused or invalid is shown on the machine.
        """
        node = self._target.owners.own_node(machine)
        if node is None or not is_managed(node):
            await self._show(machine, faults=(), said={})
            return DONE
        changes = self._changes(machine, node, admitted=admitted)
        for _ in range(_MOST):
            change = changes.next()
            if change is None:
                break
            try:
                node = await self._target.writer.patch(
                    NODES,
                    node.metadata.name,
                    change.body,
                    subresource=change.subresource,
                    patch_type=change.patch_type,
                )
            except (BadRequest, Forbidden, Invalid) as error:
                changes.refused(change, str(error))
            except NotFound:
                return DONE  # its end is an event of its own
            else:
                changes.accepted(node)
        again = changes.conclude()
        await self._show(machine, faults=changes.faults, said=changes.objections)
        return Outcome(after=again, reason="the node could not be written")

    def _changes(self, machine: Machine, node: Node, *, admitted: bool) -> NodeChanges:
        return NodeChanges(
            node,
            machine,
            self._control.class_of(machine),
            admitted=admitted or machine.phase == MachinePhase.RUNNING,
            in_rollout=self._is_in_rollout(machine, node),
            shared=bool(self._control.defaults.sibling_namespaces),
            refusals=self._refusals.setdefault(machine.metadata.uid, {}),
            now=self._control.clock.monotonic(),
        )

    def _is_in_rollout(self, machine: Machine, node: Node) -> bool:
        if self._rollouts is None or is_named(node, machine):
            return False  # only what is new is marked here
        return self._rollouts.concern(machine)

    async def _show(
        self, machine: Machine, *, faults: Sequence[str], said: Mapping[str, str]
    ) -> None:
        """Say on the machine what could not be applied, and take that back once it could, or there
        is nothing to apply it to."""
        shown, wanted = find_own(machine.status, _KIND), without_own(machine.status, _KIND)
        if faults or said:
            reason = REASON_REFUSED if said else REASON_INVALID
            refused = [f"{part}: {_shortened(text)}" for part, text in said.items()]
            text = (
                f"Not applied to the node: {first_few((*faults, *refused), _SHOWN, separator='; ')}"
            )
            if shown is not None and same_words(shown.message, text) and shown.reason == reason:
                text = shown.message  # what changes from answer to answer is no news
            now = self._control.now()
            wanted = with_own(machine.status, _KIND, STATUS_FALSE, reason, text, now)
        if wanted is machine.status or wanted == machine.status:
            return
        await self._control.write_status(machine, wanted)
        told = find_own(wanted, _KIND)
        if told is not None and (shown is None or shown.message != told.message):
            self._control.tell(machine, EventType.WARNING, told.reason, told.message)


def _shortened(text: str) -> str:
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]}…"
