"""The indexes through which changes elsewhere find their machines, and drains their pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mcm.api.core import Node, Pod, VolumeAttachment
from mcm.api.machine import Machine, MachineClass
from mcm.api.meta import T
from mcm.api.names import KIND_MACHINE_CLASS, LABEL_NODE_MACHINE_NAME
from mcm.controllers.machine.failure_permit import group_of, is_moving, is_waiting
from mcm.controllers.provider import secret_keys_of
from mcm.informers.index import IndexFunction
from mcm.informers.store import Store

_BY_NODE = "machine/node"
_BY_CLASS = "machine/class"
_MOVING = "machine/moving-in-group"
_WAITING = "machine/waiting-in-group"
_CLASSES_BY_SECRET = "machine/secret"
_NODES_BY_MACHINE = "machine/machine-name"
_PODS_BY_NODE = "machine/pods-on-node"
_ATTACHMENTS_BY_NODE = "machine/attachments-on-node"


def index_machines(machines: Store[Machine]) -> None:
    """Make the functions below work on ``machines``; may be called more than once."""
    _add(machines, _BY_NODE, lambda m: (m.node_name,) if m.node_name else ())
    _add(machines, _BY_CLASS, _class_of)
    _add(machines, _MOVING, lambda m: (group_of(m),) if is_moving(m) else ())
    _add(machines, _WAITING, lambda m: (group_of(m),) if is_waiting(m) else ())


def index_classes(classes: Store[MachineClass]) -> None:
    """Make ``classes_using`` work; may be called more than once."""
    _add(classes, _CLASSES_BY_SECRET, secret_keys_of)


def index_nodes(nodes: Store[Node]) -> None:
    _add(nodes, _NODES_BY_MACHINE, _machine_named_on)


def index_pods(pods: Store[Pod]) -> None:
    _add(pods, _PODS_BY_NODE, lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())


def index_attachments(attachments: Store[VolumeAttachment]) -> None:
    _add(attachments, _ATTACHMENTS_BY_NODE, lambda a: (a.spec.node_name,))


def machines_on(machines: Store[Machine], node_name: str) -> Sequence[Machine]:
    """Return the machines whose label names that Node: one, if nothing is wrong."""
    return machines.by_index(_BY_NODE, node_name) if node_name else ()


def machines_of_class(machines: Store[Machine], class_key: str) -> Sequence[Machine]:
    return machines.by_index(_BY_CLASS, class_key)


def moving_with(machines: Store[Machine], machine: Machine) -> Sequence[Machine]:
    """Return those of the machine's group that are being made, replaced or taken away."""
    return machines.by_index(_MOVING, group_of(machine))


def waiting_with(machines: Store[Machine], machine: Machine) -> Iterator[Machine]:
    """Yield the others of the machine's group that wait for their group to come to rest."""
    group = group_of(machine)
    if group:
        for other in machines.by_index(_WAITING, group):
            if other.metadata.uid != machine.metadata.uid:
                yield other


def classes_using(classes: Store[MachineClass], secret_key: str) -> Sequence[MachineClass]:
    """Return the classes that refer to that secret."""
    return classes.by_index(_CLASSES_BY_SECRET, secret_key)


def nodes_claiming(nodes: Store[Node], machine_name: str) -> Sequence[Node]:
    """Return the Nodes that say they are that machine's."""
    return nodes.by_index(_NODES_BY_MACHINE, machine_name)


def pods_on(pods: Store[Pod], node_name: str) -> Sequence[Pod]:
    return pods.by_index(_PODS_BY_NODE, node_name)


def attachments_on(
    attachments: Store[VolumeAttachment], node_name: str
) -> Sequence[VolumeAttachment]:
    return attachments.by_index(_ATTACHMENTS_BY_NODE, node_name)


def _machine_named_on(node: Node) -> Iterable[str]:
    name = node.metadata.labels.get(LABEL_NODE_MACHINE_NAME)
    return (name,) if name else ()


def _class_of(machine: Machine) -> Iterable[str]:
    class_ = machine.spec.class_
    if class_.kind != KIND_MACHINE_CLASS or not class_.name:
        return ()
    return (f"{machine.metadata.namespace}/{class_.name}",)


def _add(store: Store[T], name: str, function: IndexFunction[T]) -> None:
    try:
        store.add_index(name, function)
    except ValueError:
        return  # another controller that shares the store was here first
