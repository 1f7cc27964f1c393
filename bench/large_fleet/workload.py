"""What runs on the Nodes of a large fleet: pods of the size that a real cluster's have.

Of ten pods on a Node one belongs to a DaemonSet and one has a volume of its own, with claim,
PersistentVolume and VolumeAttachment; the others belong to applications of a hundred pods, each
under a disruption budget. Text is filled into patterns, which takes a few microseconds an object.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bench.large_fleet.pattern import WORKLOAD
from bench.large_fleet.pods import DAEMON_POD, POD, STORE_POD
from bench.large_fleet.volumes import ATTACHMENT, BUDGET, CLAIM, REPLICAS, VOLUME
from mcm.api.core import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTACHMENTS
from mcm.api.meta import KubeObject, Resource

_KINDS_ON_A_NODE: Final = 10


@dataclass(frozen=True, slots=True)
class Entry:
    """An object to be stored: its key and its body, whose resourceVersion is "0"."""

    namespace: str
    name: str
    body: bytes


def pods_on(nodes: list[str], count: int) -> Iterator[Entry]:
    """Yield ``count`` pods, dealt out to the Nodes."""
    for number in range(count):
        node = nodes[number % len(nodes)]
        role = number // len(nodes) % _KINDS_ON_A_NODE
        if role == 0:
            app, pattern = "agent", DAEMON_POD
        elif role == 1:
            app, pattern = "store", STORE_POD
        else:
            app, pattern = _application(number), POD
        name = f"{app}-{number:06d}"
        body = pattern.filled(node=node, name=name, app=app, number=number)
        yield Entry(WORKLOAD, name, body)


def volumes_on(nodes: list[str], count: int) -> Iterator[tuple[Resource[KubeObject], Entry]]:
    """Yield claim, volume and attachment of each of the ``count`` pods that has some."""
    with_volume = range(len(nodes), min(2 * len(nodes), count))
    for number in with_volume:
        node, pod = nodes[number % len(nodes)], f"store-{number:06d}"
        volume = f"pvc-{number:06d}"
        for resource, namespace, name, pattern in (
            (PERSISTENT_VOLUME_CLAIMS, WORKLOAD, f"data-{pod}", CLAIM),
            (PERSISTENT_VOLUMES, "", volume, VOLUME),
            (VOLUME_ATTACHMENTS, "", f"csi-{number:064d}", ATTACHMENT),
        ):
            body = pattern.filled(node=node, name=name, app=pod, number=number)
            body = body.replace(b"@volume@", volume.encode())
            yield resource, Entry(namespace, name, body)


def budgets_for(nodes: list[str], count: int) -> Iterator[Entry]:
    """Yield a disruption budget for each application among the ``count`` pods."""
    first = 2 * len(nodes)
    for number in sorted({n // REPLICAS for n in range(first, count)}):
        app = _application(number * REPLICAS)
        yield Entry(WORKLOAD, app, BUDGET.filled(name=app, app=app, number=number))


def _application(number: int) -> str:
    return f"app-{number // REPLICAS:04d}"
