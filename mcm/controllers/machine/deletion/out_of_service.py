"""Giving up a Node that runs nothing any more by a taint, so that its volumes are detached at once.

Without it the cluster's own controller waits six minutes for a kubelet that will never tell that it
unmounted them. It is for Nodes only that certainly run nothing any more (Kubernetes 1.28).
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, final

from mcm.api.codec import to_json_object
from mcm.api.core import NODES, Node, Taint
from mcm.api.machine import Machine
from mcm.api.meta import JSONObject
from mcm.api.names import EFFECT_NO_EXECUTE, TAINT_OUT_OF_SERVICE
from mcm.api.timestamps import whole_seconds
from mcm.client.errors import Conflict, KubeError
from mcm.client.server_version import ServerVersion
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.preconditions import for_this_version
from mcm.events import EventType

_SINCE_RELEASE: Final = (1, 28)
"""Releases before it do not heed the taint, or only behind a gate."""
_VALUE: Final = "nodeshutdown"


@final
class OutOfService:
    """Gives Nodes up. One for all machines, as the server's release is asked only once."""

    def __init__(self, control: ControlCluster, target: TargetCluster) -> None:
        self._control = control
        self._target = target
        self._version = ServerVersion(target.client)

    async def is_heeded(self) -> bool:
        """Tell whether the server is so new that the taint does something."""
        return await self._version.is_at_least(*_SINCE_RELEASE)

    async def give_up(self, machine: Machine, node: Node, why: str) -> Node | None:
        """Taint the Node unless it is, and return it as it then is; None: it is not certainly the
        machine's, or the server does not let us, which is told. Raises Conflict if it changed
        meanwhile."""
        if self._target.owners.find(machine).obstacle:
            return None
        name, patch = node.metadata.name, out_of_service_patch(node, self._control.now())
        if patch is None:
            return node
        try:
            tainted = await self._target.writer.patch(NODES, name, patch)
        except Conflict:
            raise
        except KubeError as error:
            note = f"Node {name} could not be tainted as out of service: {error}"
            self._control.tell(machine, EventType.WARNING, "NotOutOfService", note)
            return None
        note = f"Node {name} is tainted as out of service: {why}"
        self._control.tell(machine, EventType.WARNING, "OutOfService", note)
        return tainted


def out_of_service_since(node: Node) -> datetime | None:
    """Return when the Node was given up; None if it was not, or nobody said when."""
    return next((t.time_added for t in node.spec.taints if _is_it(t)), None)


def out_of_service_patch(node: Node, now: datetime) -> JSONObject | None:
    """Return the merge patch that gives the Node up; None if it is, since a moment that is known.

    Somebody else's taint that does not say since when says it afterwards: the wait that begins with
    it has a limit.
    """
    if out_of_service_since(node) is not None:
        return None
    others = (taint for taint in node.spec.taints if not _is_it(taint))
    ours = Taint(
        key=TAINT_OUT_OF_SERVICE,
        value=_VALUE,
        effect=EFFECT_NO_EXECUTE,
        time_added=whole_seconds(now),
    )
    spec: JSONObject = {"taints": [to_json_object(taint) for taint in (*others, ours)]}
    return for_this_version(node.metadata, {"spec": spec})


def _is_it(taint: Taint) -> bool:
    return taint.key == TAINT_OUT_OF_SERVICE and taint.effect == EFFECT_NO_EXECUTE
