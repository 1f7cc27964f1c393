"""What is still to be written on a Node, one request after the other, past what is refused.

All that differs goes in one request, beside the capacity, which has one of its own. If the server
refuses that, each part is tried alone, so that one bad label does not keep a taint away.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Final, final

import msgspec
import orjson

from mcm.api.core import Node
from mcm.api.labels import is_label_value
from mcm.api.machine import Machine, MachineClass
from mcm.api.meta import JSONObject
from mcm.api.names import LABEL_NODE_MACHINE_NAME
from mcm.client.requests import PatchType
from mcm.controllers.machine.node.capacity import capacity_patch, faults_of_class
from mcm.controllers.machine.node.template import node_patch, parts_of
from mcm.controllers.machine.node.template_faults import applicable

TRY_AGAIN: Final = 600.0
"""Seconds after which what a server refused is tried again, if it is still the same."""

_CAPACITY: Final = "virtual capacity"
_ALL: Final = ""


@final
@dataclass(frozen=True, slots=True)
class NodeChange:
    """One request. ``part`` says in words what it writes; empty: several parts."""

    part: str
    body: JSONObject
    subresource: str = ""
    patch_type: PatchType = PatchType.STRATEGIC

    @property
    def digest(self) -> str:
        """The same for the same content, whichever version of the Node it is meant for."""
        metadata = self.body.get("metadata")
        bare = {"status": self.body.get("status"), "spec": self.body.get("spec")}
        if isinstance(metadata, dict):
            bare["metadata"] = {k: v for k, v in metadata.items() if k != "resourceVersion"}
        text = orjson.dumps(bare, option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(text).hexdigest()


@final
class Refusal(msgspec.Struct, frozen=True):
    """What a server said to a change, and until when (monotonic seconds) it is left at that."""

    text: str
    until: float


@final
class NodeChanges:
    """The changes that ``node`` needs to be as ``machine`` and its class want it.

    ``refusals`` remembers, by digest, what was refused in earlier passes. ``admitted``: the machine
    is Running, or about to be; ``in_rollout``: its deployment replaces its machines; ``shared``:
    the cluster has Nodes of other namespaces, too.
    """

    def __init__(
        self,
        node: Node,
        machine: Machine,
        machine_class: MachineClass | None,
        *,
        admitted: bool,
        in_rollout: bool,
        shared: bool,
        refusals: MutableMapping[str, Refusal],
        now: float,
    ) -> None:
        self._node = node
        self._machine = machine
        self._class = machine_class
        self._admitted = admitted
        self._in_rollout = in_rollout
        self._shared = shared
        self._refusals = refusals
        self._now = now
        self._said: dict[str, str] = {}
        self._met: set[str] = set()

    def next(self) -> NodeChange | None:
        """Return what to write now; None if nothing is left that may be tried."""
        return next((c for c in self._changes() if not self._is_refused(c)), None)

    def accepted(self, node: Node) -> None:
        """Go on from ``node``, which the server answered with."""
        self._node = node

    def refused(self, change: NodeChange, text: str) -> None:
        """Leave ``change`` out, and remember that."""
        self._refusals[change.digest] = Refusal(text, self._now + TRY_AGAIN)

    @property
    def faults(self) -> tuple[str, ...]:
        """What is wrong with the template and the class, before a server is asked."""
        template = applicable(self._machine.spec.node_template)
        return (*self._too_long(), *template.faults, *faults_of_class(self._class).values())

    @property
    def objections(self) -> Mapping[str, str]:
        """What the server said to each part that it refused."""
        return self._said

    def conclude(self) -> float | None:
        """Forget what was refused long ago; return the seconds until what is still wanted and
        refused is to be tried again, None if nothing is."""
        for digest, refusal in tuple(self._refusals.items()):
            if refusal.until <= self._now:
                del self._refusals[digest]
        waits = (self._refusals[d].until - self._now for d in self._met & self._refusals.keys())
        return min(waits, default=None)

    def _changes(self) -> Iterator[NodeChange]:
        """Yield in order of preference what could be written; the body of each is up to date."""
        capacity = capacity_patch(self._node, self._class)
        machine_class = self._class
        if capacity is not None:
            yield NodeChange(_CAPACITY, capacity, "status", PatchType.MERGE)
            machine_class = None  # refused, so there is nothing to record of it
        patch = node_patch(
            self._node,
            self._machine,
            machine_class,
            admitted=self._admitted,
            in_rollout=self._in_rollout,
            shared=self._shared,
        )
        if patch is None:
            return
        yield NodeChange(_ALL, patch)
        for part, body in parts_of(patch).items():
            yield NodeChange(part, body)

    def _too_long(self) -> tuple[str, ...]:
        if is_label_value(self._machine.metadata.name):
            return ()
        return (f"label {LABEL_NODE_MACHINE_NAME}: the machine's name is over 63 characters long",)

    def _is_refused(self, change: NodeChange) -> bool:
        digest = change.digest
        refusal = self._refusals.get(digest)
        if refusal is None or refusal.until <= self._now:
            return False
        self._met.add(digest)
        if change.part:
            self._said[change.part] = refusal.text
        return True
