"""What is asked for about keeping a machine: the preserve annotation of its Node, or its own."""

from __future__ import annotations

from mcm.api.core import Node
from mcm.api.machine import Machine
from mcm.api.names import ANNOTATION_LAST_APPLIED_PRESERVE, ANNOTATION_PRESERVE


def preserve_request(machine: Machine, node: Node | None) -> str:
    """Return the value that counts for ``machine``, valid or not; empty if nobody asks.

    ``node`` is its Node, None where there is none (or it is not known): the machine's word counts
    then. Else the Node's does, and so does its silence once its word was followed, which the
    machine remembers: somebody took the annotation off the Node, and means it.
    """
    own = machine.metadata.annotations
    on_node = node.metadata.annotations.get(ANNOTATION_PRESERVE, "") if node is not None else ""
    followed = node is not None and own.get(ANNOTATION_LAST_APPLIED_PRESERVE)
    return on_node if on_node or followed else own.get(ANNOTATION_PRESERVE, "")
