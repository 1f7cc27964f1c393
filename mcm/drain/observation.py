"""Gathering what a drain looks at from the mirrors of a cluster, and whether these are current."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from mcm.api.core import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    VOLUME_ATTACHMENTS,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    VolumeAttachment,
)
from mcm.api.meta import KubeObject, Resource
from mcm.clock import Clock
from mcm.drain.pods import is_finished
from mcm.drain.snapshot import Snapshot
from mcm.drain.volumes import Handover, NodeVolumes, VolumeStores
from mcm.informers import InformerFactory, Store

_PODS_BY_NODE: Final = "pods by node"
_VOLUME_MIRRORS: Final[tuple[Resource[KubeObject], ...]] = (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    VOLUME_ATTACHMENTS,
)


def index_pods(pods: Store[Pod]) -> None:
    """Make ``pods_on`` work; may be called more than once."""
    pods.ensure_index(_PODS_BY_NODE, lambda pod: (pod.spec.node_name,))


def pods_on(pods: Store[Pod], node_name: str) -> Sequence[Pod]:
    """Return the pods that are bound to the Node, whether it exists or not."""
    return pods.by_index(_PODS_BY_NODE, node_name) if node_name else ()


def any_to_be_placed(pods: Store[Pod]) -> bool:
    """Tell whether any pod awaits the scheduler, which may not know yet what Nodes to spare."""
    return any(
        pod.metadata.deletion_timestamp is None and not is_finished(pod)
        for pod in pods.by_index(_PODS_BY_NODE, "")
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DrainStores:
    """The mirrors of one cluster that drains look at."""

    nodes: Store[Node]
    pods: Store[Pod]
    budgets: Store[PodDisruptionBudget]
    claims: Store[PersistentVolumeClaim]
    volumes: Store[PersistentVolume]
    attachments: Store[VolumeAttachment]

    @classmethod
    def of(cls, informers: InformerFactory) -> DrainStores:
        """Have them mirrored."""
        return cls(
            nodes=informers.store(NODES),
            pods=informers.store(PODS),
            budgets=informers.store(POD_DISRUPTION_BUDGETS),
            claims=informers.store(PERSISTENT_VOLUME_CLAIMS),
            volumes=informers.store(PERSISTENT_VOLUMES),
            attachments=informers.store(VOLUME_ATTACHMENTS),
        )


def _current() -> str:
    return ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Staleness:
    """Why what is mirrored may be long past, asked each time; an empty text: it is not."""

    pods: Callable[[], str] = _current
    budgets: Callable[[], str] = _current
    volumes: Callable[[], str] = _current

    @classmethod
    def of(cls, informers: InformerFactory, clock: Clock) -> Staleness:
        """Ask the informers."""

        def why(*resources: Resource[KubeObject]) -> str:
            now = clock.monotonic()
            judged = (informers.informer(resource).freshness(now) for resource in resources)
            return next((f.why for f in judged if not f.current), "")

        return cls(
            pods=lambda: why(PODS),
            budgets=lambda: why(POD_DISRUPTION_BUDGETS),
            volumes=lambda: why(*_VOLUME_MIRRORS, NODES),
        )


@final
class Observation:
    """Looks at one Node at a time, in a time that depends on its own pods only.

    ``ids``: what the provider calls volumes that only it can name, by PersistentVolume.
    """

    def __init__(
        self,
        stores: DrainStores,
        staleness: Staleness | None = None,
        *,
        ids: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        self._stores = stores
        self._staleness = staleness or Staleness()
        self._ids = ids if ids is not None else {}
        index_pods(stores.pods)
        self._volumes = VolumeStores(
            pods=stores.pods,
            claims=stores.claims,
            volumes=stores.volumes,
            attachments=stores.attachments,
        )

    def volumes_to_name(self, node_name: str) -> tuple[PersistentVolume, ...]:
        """Return the volumes of the Node's pods that only the provider can name."""
        return self._volumes.to_ask_for(pods_on(self._stores.pods, node_name))

    def snapshot(self, node_name: str, handovers: Iterable[Handover] = ()) -> Snapshot:
        """Look at the Node, its pods and all that concerns them; ``handovers`` are under way."""
        node = self._stores.nodes.get(node_name)
        pods = tuple(pods_on(self._stores.pods, node_name))
        namespaces = {pod.metadata.namespace for pod in pods}
        blind = self._staleness.pods()
        return Snapshot(
            node=node,
            pods=pods,
            budgets={name: self._stores.budgets.list(name) for name in namespaces},
            volumes=self._volumes_of(node_name, node, pods, handovers, blind),
            blind=blind,
            budgets_stale=self._staleness.budgets(),
            may_get_pods=node is not None and any_to_be_placed(self._stores.pods),
        )

    def _volumes_of(
        self,
        node_name: str,
        node: Node | None,
        pods: Sequence[Pod],
        handovers: Iterable[Handover],
        blind: str,
    ) -> NodeVolumes:
        stale = blind or self._staleness.volumes()
        return self._volumes.view(node_name, node, pods, handovers, ids=self._ids, stale=stale)
