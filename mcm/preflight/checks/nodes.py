"""The Nodes of the target cluster: whose they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from mcm.api.names import ANNOTATION_NOT_MANAGED_BY_MCM, LABEL_NODE, NODE_FINALIZER
from mcm.preflight.finding import Finding, ok, problem, warning
from mcm.preflight.seen import Seen, Unread

_CHECK: Final = "node"


def check_nodes(seen: Seen) -> Iterator[Finding]:
    if not seen.options.clusters.has_target:
        yield ok(_CHECK, "nodes", "no target cluster is managed (--target-kubeconfig=none)")
        return
    if isinstance(seen.nodes, Unread):
        text = f"cannot be read: {seen.nodes.why}"
        yield problem(_CHECK, "nodes", text, "see the rows on access")
        return
    if isinstance(seen.machines, Unread):
        return
    on: defaultdict[str, list[str]] = defaultdict(list)
    for machine in seen.machines:
        if name := (machine["metadata"].get("labels") or {}).get(LABEL_NODE):
            on[name].append(str(machine["metadata"]["name"]))
    names = {str(node["metadata"]["name"]): node for node in seen.nodes}
    for name, machines in on.items():
        if len(machines) > 1:
            text = f"is claimed by {len(machines)} machines: {', '.join(sorted(machines)[:5])}"
            remedy = f"correct the label {LABEL_NODE} of those whose it is not; it is left alone"
            yield problem(_CHECK, f"Node {name}", text, remedy)
    ours = sum(name in on for name in names)
    text = f"{len(names)}, of which {ours} belong to machines of this namespace"
    yield ok(_CHECK, "nodes", text)
    for name, node in names.items():
        meta = node["metadata"]
        if name not in on and NODE_FINALIZER in (meta.get("finalizers") or ()):
            text = "belongs to no machine here and has the machine controller's finalizer"
            remedy = "if no other namespace manages it: the finalizer is taken off once it is old"
            yield warning(_CHECK, f"Node {name}", text, remedy)
        if name in on and ANNOTATION_NOT_MANAGED_BY_MCM in (meta.get("annotations") or {}):
            text = f"is marked {ANNOTATION_NOT_MANAGED_BY_MCM}, although a machine names it"
            yield ok(_CHECK, f"Node {name}", f"{text}; the mark is taken off")
