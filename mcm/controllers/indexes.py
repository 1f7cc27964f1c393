"""Indexes of the shared stores: by which Node, class, secret or machine an object is found.

Whichever controller needs one adds it; who comes second finds it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcm.api.core import Node
from mcm.api.machine import Machine, MachineClass
from mcm.api.names import KIND_MACHINE_CLASS, LABEL_NODE_MACHINE_NAME
from mcm.controllers.provider import secret_keys_of
from mcm.informers.store import Store

_BY_NODE = "machines by node"
_BY_CLASS = "machines by class"
_BY_PROVIDER_ID = "machines by provider ID"
_CLASSES_BY_SECRET = "classes by secret"
_NODES_BY_MACHINE = "nodes by machine"
_NODES_BY_PROVIDER_ID = "nodes by provider ID"


def index_machines(machines: Store[Machine]) -> None:
    """Make the functions below work on ``machines``; may be called more than once."""
    machines.ensure_index(_BY_NODE, lambda m: (m.node_name,) if m.node_name else ())
    machines.ensure_index(_BY_CLASS, class_keys_of)
    machines.ensure_index(
        _BY_PROVIDER_ID, lambda m: (m.spec.provider_id,) if m.spec.provider_id else ()
    )


def index_classes(classes: Store[MachineClass]) -> None:
    """Make ``classes_using`` work; may be called more than once."""
    classes.ensure_index(_CLASSES_BY_SECRET, secret_keys_of)


def index_nodes(nodes: Store[Node]) -> None:
    """Make ``nodes_claiming`` and the like work; may be called more than once."""
    nodes.ensure_index(_NODES_BY_MACHINE, _machine_named_on)
    nodes.ensure_index(
        _NODES_BY_PROVIDER_ID, lambda n: (n.spec.provider_id,) if n.spec.provider_id else ()
    )


def machines_on(machines: Store[Machine], node_name: str) -> Sequence[Machine]:
    """Return the machines whose label names that Node: one, if nothing is wrong."""
    return machines.by_index(_BY_NODE, node_name) if node_name else ()


def machines_of_provider_id(machines: Store[Machine], provider_id: str) -> Sequence[Machine]:
    """Return the machines that record that VM: one, if nothing is wrong."""
    return machines.by_index(_BY_PROVIDER_ID, provider_id) if provider_id else ()


def machines_of_class(machines: Store[Machine], class_key: str) -> Sequence[Machine]:
    return machines.by_index(_BY_CLASS, class_key)


def has_machines(machines: Store[Machine], class_key: str) -> bool:
    """Tell whether any machine is of that class."""
    return machines.count_by_index(_BY_CLASS, class_key) > 0


def class_keys_of(machine: Machine) -> Sequence[str]:
    """Return the key of the machine's class, if it names one of our kind."""
    class_ = machine.spec.class_
    if class_.kind != KIND_MACHINE_CLASS or not class_.name:
        return ()
    return (f"{machine.metadata.namespace}/{class_.name}",)


def classes_using(classes: Store[MachineClass], secret_key: str) -> Sequence[MachineClass]:
    """Return the classes that refer to that secret."""
    return classes.by_index(_CLASSES_BY_SECRET, secret_key)


def nodes_claiming(nodes: Store[Node], machine_name: str) -> Sequence[Node]:
    """Return the Nodes that say they are that machine's."""
    return nodes.by_index(_NODES_BY_MACHINE, machine_name)


def nodes_of_provider_id(nodes: Store[Node], provider_id: str) -> Sequence[Node]:
    """Return the Nodes that say they are that VM's."""
    return nodes.by_index(_NODES_BY_PROVIDER_ID, provider_id) if provider_id else ()


def _machine_named_on(node: Node) -> Iterable[str]:
    name = node.metadata.labels.get(LABEL_NODE_MACHINE_NAME)
    return (name,) if name else ()
