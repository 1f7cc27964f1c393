"""Whose Node is it: decided from the machines' labels, the Node's label and provider IDs together.

Whoever patches, judges, drains, deletes or marks a Node asks here first. A Node that two machines
may own is none's until one of them is gone or corrected, or its provider ID tells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

from mcm.api.core import Node
from mcm.api.machine import Machine, MachinePhase
from mcm.api.names import (
    ANNOTATION_NODE_NAMESPACE,
    ANNOTATION_NOT_MANAGED_BY_MCM,
    LABEL_NODE_MACHINE_NAME,
)
from mcm.controllers.indexes import (
    index_machines,
    index_nodes,
    machines_of_provider_id,
    machines_on,
    nodes_claiming,
    nodes_of_provider_id,
)
from mcm.informers.store import Store
from mcm.wording import first_few

_JOINING = ("", MachinePhase.PENDING, MachinePhase.CRASH_LOOP_BACK_OFF)
"""In these phases the Node that a machine names may be yet to come."""
_NAMED = 3
"""How many rivals a text names before it only counts them."""


@final
@dataclass(frozen=True, slots=True)
class Ownership:
    """Whose a Node is. It is nobody's, or it has an owner, or two or more contenders and none."""

    owner: Machine | None = None
    contenders: tuple[Machine, ...] = ()

    @property
    def contested(self) -> bool:
        return bool(self.contenders)

    def is_of(self, machine: Machine) -> bool:
        return self.owner is not None and self.owner.metadata.uid == machine.metadata.uid


def whose(node: Node, machines: Iterable[Machine], *, elsewhere: Collection[str] = ()) -> Ownership:
    """Decide whose ``node`` is among ``machines``; those that say nothing of it do not count.

    Equal provider IDs are proof. Different ones are no statement: Node and machine may write them
    in different forms. Without proof, each machine that names the Node may own it, and so may the
    one that the Node names if it names no Node itself. ``elsewhere`` holds the UIDs of machines
    whose provider ID another Node has: what their labels say is wrong.

    A machine on its way out leaves the Node to those that stay. Where all of them go, so will the
    Node, and one of them sees to that.
    """
    every = {machine.metadata.uid: machine for machine in machines}
    proven = [m for m in every.values() if is_proven(node, m)]
    claims = proven or [
        m for m in every.values() if m.metadata.uid not in elsewhere and _claims(node, m)
    ]
    ordered = sorted(claims, key=lambda m: m.metadata.name)
    staying = tuple(m for m in ordered if m.metadata.deletion_timestamp is None)
    if len(staying) > 1:
        return Ownership(contenders=staying)
    return Ownership(next(iter(staying or ordered), None))


def is_managed(node: Node) -> bool:
    """Tell whether ``node`` is to be touched at all: it is not marked as nobody's."""
    return ANNOTATION_NOT_MANAGED_BY_MCM not in node.metadata.annotations


def is_named(node: Node, machine: Machine) -> bool:
    """Tell whether ``node`` bears the machine's name, as it does from our first write on it."""
    return _machine_named_on(node, machine.metadata.namespace) == machine.metadata.name


def is_proven(node: Node, machine: Machine) -> bool:
    """Tell whether provider IDs alone make the Node the machine's."""
    return bool(machine.spec.provider_id) and machine.spec.provider_id == node.spec.provider_id


def is_stale(
    node: Node | None, machine: Machine, provider_id: str, *, ownership: Ownership = Ownership()
) -> bool:
    """Tell whether ``node``, which bears the name a new VM will register under, is an older one's.

    A VM may well join before its creation returns: a Node that says it is this VM's, that carries
    the machine's own name, or that is younger than the machine, is not stale. One that another
    machine owns, or others quarrel about, is, unless it says that it is this VM's.
    """
    if node is None or (provider_id and node.spec.provider_id == provider_id):
        return False
    if ownership.contested or (ownership.owner is not None and not ownership.is_of(machine)):
        return True
    if machine.metadata.name == node.metadata.name or is_named(node, machine):
        return False
    return bool(node.spec.provider_id) or _is_older(node, machine)


def _claims(node: Node, machine: Machine) -> bool:
    if machine.node_name:
        return machine.node_name == node.metadata.name
    # What a former machine of that name left behind is older than its successor.
    named = _machine_named_on(node, machine.metadata.namespace)
    return named == machine.metadata.name and not _is_older(node, machine)


def is_of_another_namespace(node: Node, namespace: str) -> bool:
    """Tell whether ``node`` says that its machine is none of ``namespace``."""
    return node.metadata.annotations.get(ANNOTATION_NODE_NAMESPACE, namespace) != namespace


def _machine_named_on(node: Node, namespace: str) -> str:
    """Return the machine of ``namespace`` that the Node says to be of; empty if of none."""
    if is_of_another_namespace(node, namespace):
        return ""
    return node.metadata.labels.get(LABEL_NODE_MACHINE_NAME, "")


def _is_older(node: Node, machine: Machine) -> bool:
    born, wanted = node.metadata.creation_timestamp, machine.metadata.creation_timestamp
    return born is not None and wanted is not None and born < wanted


@final
@dataclass(frozen=True, slots=True)
class OwnNode:
    """What is known of a machine's Node, or of the one that its label names instead."""

    node: Node | None = None
    """Its own Node. None if that is not there, or not certainly its own."""
    named: str = ""
    """The Node that its label names, if that is there and not its own: then ``obstacle`` says
    why."""
    rivals: tuple[str, ...] = ()
    """The other machines that may own the Node it names."""
    owner: str = ""
    """The machine whose Node it names."""
    found: str = ""
    """The Node that certainly is its own, though its label names none, or another's."""

    @property
    def contested(self) -> bool:
        return bool(self.rivals)

    @property
    def obstacle(self) -> str:
        """Why nothing is done to the Node that the label names; empty if nothing is in the way."""
        if self.rivals:
            others = _listed(self.rivals)
            return f"node {self.named} is also named by {others}, and no provider ID tells whose"
        if self.owner:
            return f"node {self.named} is machine {self.owner}'s"
        return f"node {self.named} is not this machine's" if self.named else ""


@final
class NodeOwners:
    """Answers from the mirrors of both clusters. ``namespace`` is that of all machines."""

    def __init__(self, machines: Store[Machine], nodes: Store[Node], namespace: str) -> None:
        index_machines(machines)
        index_nodes(nodes)
        self._machines = machines
        self._nodes = nodes
        self._namespace = namespace

    def of(self, node: Node, *, asking: Machine | None = None) -> Ownership:
        """Tell whose ``node`` is. ``asking`` counts as it is given, not as the mirror has it."""
        if (proven := self._alone_proven(node, asking)) is not None:
            return Ownership(proven)
        machines = {m.metadata.uid: m for m in self.claimants(node)}
        if asking is not None:
            machines[asking.metadata.uid] = asking
        found = self._from_claims(node, machines.values())
        if found != Ownership():
            return found
        left = (m for m in machines.values() if self._lost(m, node))
        return Ownership(next(left, None))

    def own_node(self, machine: Machine) -> Node | None:
        """Return the Node that ``machine`` names, if it is there and certainly its own."""
        return self.find(machine).node

    def find(self, machine: Machine) -> OwnNode:
        """Return which Node is the machine's, or why that cannot be told."""
        named = self._nodes.get(machine.node_name) if machine.node_name else None
        if named is None:
            return OwnNode(found=self._found(machine))
        ownership = self.of(named, asking=machine)
        if ownership.is_of(machine):
            return OwnNode(node=named)
        name = named.metadata.name
        rivals = [m for m in ownership.contenders if m.metadata.uid != machine.metadata.uid]
        if len(rivals) < len(ownership.contenders):
            return OwnNode(named=name, rivals=tuple(m.metadata.name for m in rivals))
        owner = ownership.owner.metadata.name if ownership.owner else ""
        return OwnNode(named=name, owner=owner, found=self._found(machine))

    def is_stale(self, node_name: str, machine: Machine, provider_id: str) -> bool:
        """Tell whether the Node of that name, if there is one, cannot be the new VM's."""
        node = self._nodes.get(node_name)
        ownership = Ownership() if node is None else self.of(node)
        return is_stale(node, machine, provider_id, ownership=ownership)

    def claimants(self, node: Node) -> Iterator[Machine]:
        """Yield the machines that say, or of which is said, something about ``node``."""
        yield from machines_on(self._machines, node.metadata.name)
        yield from machines_of_provider_id(self._machines, node.spec.provider_id)
        said = self._machines.get(f"{self._namespace}/{_machine_named_on(node, self._namespace)}")
        if said is not None:
            yield said

    def nodes_about(self, machine: Machine) -> Iterator[str]:
        """Yield the names of the Nodes that may be the machine's, there or not; some twice."""
        if machine.node_name:
            yield machine.node_name
        for node in self._saying_so(machine):
            yield node.metadata.name

    def rivals(self, machine: Machine) -> Iterator[Machine]:
        """Yield the other machines that one of the machine's Nodes may concern; some twice."""
        for name in self.nodes_about(machine):
            node = self._nodes.get(name)
            others = machines_on(self._machines, name) if node is None else self.claimants(node)
            yield from (m for m in others if m.metadata.uid != machine.metadata.uid)

    def _alone_proven(self, node: Node, asking: Machine | None) -> Machine | None:
        """Return the one machine whose provider ID is the Node's: that proves it against whatever
        labels say, and is how nearly every question ends."""
        proven = machines_of_provider_id(self._machines, node.spec.provider_id)
        if len(proven) != 1:
            return None
        if asking is None:
            return proven[0]
        same = asking.metadata.uid == proven[0].metadata.uid and is_proven(node, asking)
        return asking if same else None

    def _from_claims(self, node: Node, machines: Collection[Machine]) -> Ownership:
        elsewhere = {m.metadata.uid for m in machines if self._is_proven_elsewhere(node, m)}
        return whose(node, machines, elsewhere=elsewhere)

    def _lost(self, machine: Machine, node: Node) -> bool:
        """Tell whether ``machine``, which had ``node``, names by mistake what is not its own."""
        if machine.phase in _JOINING or not is_named(node, machine):
            return False
        if _is_older(node, machine) or self._is_proven_elsewhere(node, machine):
            return False
        named = self._nodes.get(machine.node_name)
        if named is None:
            return True
        others = {m.metadata.uid: m for m in self.claimants(named)}
        others[machine.metadata.uid] = machine
        return not self._from_claims(named, others.values()).is_of(machine)

    def _saying_so(self, machine: Machine) -> Iterator[Node]:
        yield from nodes_of_provider_id(self._nodes, machine.spec.provider_id)
        yield from nodes_claiming(self._nodes, machine.metadata.name)

    def _found(self, machine: Machine) -> str:
        """Return the one other Node that is the machine's; only proof corrects a label that names a
        Node which is there."""
        unnamed = machine.node_name not in self._nodes
        fitting = {
            node.metadata.name
            for node in self._saying_so(machine)
            if (unnamed or is_proven(node, machine))
            and self.of(node, asking=machine).is_of(machine)
        }
        return fitting.pop() if len(fitting) == 1 else ""

    def _is_proven_elsewhere(self, node: Node, machine: Machine) -> bool:
        same = nodes_of_provider_id(self._nodes, machine.spec.provider_id)
        return any(other.metadata.name != node.metadata.name for other in same)


def _listed(names: Sequence[str]) -> str:
    return f"{'machine' if len(names) == 1 else 'machines'} {first_few(names, _NAMED)}"
