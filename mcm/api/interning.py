"""Sharing what every machine, node and pod repeats, and forgetting what nobody reads of a pod.

A condition's reason and message are mostly the same few texts in a whole fleet, yet decoding makes
new ones each time. Sharing these two is most of what sharing can save for its price; type and
status, which are short, would save half as much again and cost as much again. Of pods there are
ten times as many, and most say the same as their siblings: whole parts of them are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Final, Generic, TypeVar, final

from msgspec.structs import force_setattr

from mcm.api.core import NodeCondition, Pod, PodCondition, Toleration, Volume
from mcm.api.meta import OwnerReference
from mcm.api.names import ANNOTATION_DRAIN_SURGE, ANNOTATION_DRAIN_WAVE, ANNOTATION_MIRROR_POD

V = TypeVar("V")

POD_ANNOTATIONS: Final = frozenset(
    {ANNOTATION_DRAIN_SURGE, ANNOTATION_DRAIN_WAVE, ANNOTATION_MIRROR_POD}
)
"""All that is read of a pod's annotations. Others come and go with networks and rollouts, take as
much memory as the rest of the pod, and their changes would wake somebody for nothing."""

_LIMIT: Final = 4096
_MANY: Final = 32_768
_LONGEST: Final = 128


@final
class Pool(Generic[V]):
    """Values seen before. A bound instead of sys.intern: they may be anything, and some
    interpreters never free those. What is full starts anew, at the price of one copy of each."""

    __slots__ = ("_limit", "_seen")

    def __init__(self, limit: int = _LIMIT) -> None:
        self._limit = limit
        self._seen: dict[Hashable, V] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def same(self, key: Hashable, value: V) -> V:
        """Return the value that came first under an equal key, which must tell it from others."""
        if len(self._seen) >= self._limit:
            self._seen.clear()
        return self._seen.setdefault(key, value)

    def sharing(self) -> Callable[[Hashable, V], V]:
        """Return what ``same`` does, for a few values: for them it is looked once for room."""
        if len(self._seen) >= self._limit:
            self._seen.clear()
        return self._seen.setdefault


_NONE: Final[dict[str, str]] = {}
_texts: Final[Pool[str]] = Pool()
_node_names: Final[Pool[str]] = Pool(_MANY)
_labels: Final[Pool[dict[str, str]]] = Pool()
_owners: Final[Pool[tuple[OwnerReference, ...]]] = Pool()
_tolerations: Final[Pool[tuple[Toleration, ...]]] = Pool()
_volumes: Final[Pool[tuple[Volume, ...]]] = Pool()
_conditions: Final[Pool[tuple[PodCondition, ...]]] = Pool()


def share_condition_texts(conditions: Iterable[NodeCondition]) -> None:
    """Replace the texts of freshly decoded conditions by equal ones seen before.

    Only for objects nobody else has seen yet: it writes to frozen ones. They stay equal.
    """
    share, put = _texts.sharing(), force_setattr
    for condition in conditions:
        text = condition.reason
        put(condition, "reason", share(text, text))
        text = condition.message
        if len(text) <= _LONGEST:
            put(condition, "message", share(text, text))


def share_parts_of_pod(pod: Pod) -> None:
    """Replace parts of a freshly decoded pod by equal ones seen before, as above.

    A plain Pod, which is what drains read, also forgets what they do not (a type of its own may
    have other readers): annotations but ``POD_ANNOTATIONS``, and volumes that are no claim's and
    nobody's loss.
    """
    if type(pod) is Pod:
        _forget(pod)
    meta, spec, put = pod.metadata, pod.spec, force_setattr
    put(meta, "namespace", _texts.same(meta.namespace, meta.namespace))
    put(meta, "generate_name", _texts.same(meta.generate_name, meta.generate_name))
    put(meta, "labels", _labels.same(tuple(meta.labels.items()), meta.labels))
    put(meta, "owner_references", _owners.same(meta.owner_references, meta.owner_references))
    put(spec, "node_name", _node_names.same(spec.node_name, spec.node_name))
    put(spec, "tolerations", _tolerations.same(spec.tolerations, spec.tolerations))
    if all(volume.ephemeral is None for volume in spec.volumes):  # whose templates are no keys
        put(spec, "volumes", _volumes.same(spec.volumes, spec.volumes))
    put(pod.status, "phase", _texts.same(pod.status.phase, pod.status.phase))
    put(pod.status, "conditions", _conditions.same(pod.status.conditions, pod.status.conditions))


def _forget(pod: Pod) -> None:
    annotations = pod.metadata.annotations
    if annotations:
        kept = {name: annotations[name] for name in POD_ANNOTATIONS if name in annotations}
        force_setattr(pod.metadata, "annotations", kept or _NONE)
    volumes = pod.spec.volumes
    if volumes:
        kept_volumes = tuple(volume for volume in volumes if volume.is_read)
        force_setattr(pod.spec, "volumes", kept_volumes)
