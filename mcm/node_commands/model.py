"""A copy of what concerns one Node, on which a drain can be played: requests change the copy only.

The copy goes on as slowly as it may: pods take their whole grace period, volumes the whole time for
which they are waited. It supposes that the successor of a pod serves when the pod is gone. What is
broken stays broken.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from itertools import count
from typing import Final, TypeVar, final

import msgspec

from mcm.api.core import Node, Pod, PodDisruptionBudget
from mcm.api.meta import ObjectMeta
from mcm.client.errors import NotFound
from mcm.client.requests import Call
from mcm.client.transport import Response, StreamResponse
from mcm.client.verbs import ObjectClient
from mcm.drain.execution import Verb
from mcm.drain.observation import DrainStores, Observation
from mcm.drain.pods import grace_of, is_finished
from mcm.drain.request import Limits
from mcm.drain.volumes import Holding, claim_keys_of

R = TypeVar("R")

_ELSEWHERE: Final = "(another node)"
_A_MOMENT: Final = timedelta(seconds=1)
_OK: Final = Response(200, {}, b"{}")


@final
class ModelClock:
    """Time that goes on when it is told to."""

    def __init__(self, now: datetime) -> None:
        self._began = self._now = now

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._began).total_seconds()

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing waits in a plan")

    def advance(self, to: datetime) -> None:
        self._now = max(self._now, to)


@final
class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The first request for a pod that the copy was asked for."""

    verb: Verb
    at: datetime


@final
class Model(ObjectClient):
    """Answers evictions and deletions of pods. ``asked`` and ``gone`` tell what came of them, by
    pod UID."""

    def __init__(
        self, stores: DrainStores, node_name: str, *, clock: ModelClock, limits: Limits
    ) -> None:
        self._stores = stores
        self._node_name = node_name
        self._clock = clock
        self._limits = limits
        self._versions = count(10**18)
        self._events: list[tuple[datetime, int, Callable[[], None]]] = []
        self.observation = Observation(stores)
        self.asked: dict[str, Asked] = {}
        self.gone: dict[str, datetime] = {}
        for pod in self.observation.snapshot(node_name).pods:
            self._let_end(pod)

    # ---- time ------------------------------------------------------------------------------------

    @property
    def next_event(self) -> datetime | None:
        """Return when something happens by itself; None: nothing will."""
        return self._events[0][0] if self._events else None

    def catch_up(self) -> None:
        """Have all happen that is due by now."""
        while self._events and self._events[0][0] <= self._clock.now():
            heapq.heappop(self._events)[2]()

    def _at(self, moment: datetime, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._versions), act))

    # ---- requests --------------------------------------------------------------------------------

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        """Take an eviction or a deletion of a pod; there is nothing else to be asked."""
        pod = self._stores.pods.get(f"{call.namespace}/{call.name}")
        if pod is None or pod.metadata.uid != call.uid:
            raise NotFound(404, "NotFound", f'pods "{call.name}" not found')
        if call.verb not in ("EVICT", "DELETE"):
            raise AssertionError(f"a plan does not {call.verb}")
        verb = Verb.EVICT if call.verb == "EVICT" else Verb.DELETE
        now = self._clock.now()
        self.asked.setdefault(pod.metadata.uid, Asked(verb=verb, at=now))
        self._begin_to_end(pod, _grace_in(call.body))
        return read(_OK)

    def follow(
        self, call: Call, *, read_timeout: float | None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        raise AssertionError("nothing is watched in a plan")

    def _begin_to_end(self, pod: Pod, grace: int | None) -> None:
        meta = pod.metadata
        if meta.deletion_timestamp is not None and (grace is None or meta.finalizers):
            return
        self._disrupt(pod)
        allowed = grace_of(pod) if grace is None else timedelta(seconds=grace)
        ends = self._clock.now() + (timedelta(0) if is_finished(pod) else allowed)
        ending = msgspec.structs.replace(self._renewed(meta), deletion_timestamp=ends)
        pod = msgspec.structs.replace(pod, metadata=ending)
        self._stores.pods.put(pod)
        self._let_end(pod)
        self.catch_up()

    # ---- what follows ----------------------------------------------------------------------------

    def _let_end(self, pod: Pod) -> None:
        """Have a pod be gone when it must, and its volumes when they are waited for no longer. What
        should have ended long ago stays."""
        meta = pod.metadata
        ends = meta.deletion_timestamp
        if ends is None or ends < self._clock.now():
            return
        held = self.observation.snapshot(self._node_name).volumes.exclusive_of(pod)
        self._at(ends, lambda: self._end(pod))
        leave = ends + max(timedelta(0), self._limits.detach - _A_MOMENT)
        if held:
            self._at(leave, lambda: self._detach(held))

    def _end(self, pod: Pod) -> None:
        meta = pod.metadata
        self.gone[meta.uid] = self._clock.now()
        self._stores.pods.remove(meta.key, uid=meta.uid, version=self._version())
        owner = meta.controller_ref()
        if owner is None or owner.kind == "Job" or is_finished(pod):
            return
        for budget in self._budgets_of(pod):
            self._put_budget(_restored(budget, meta.name))
        if claim_keys_of(pod):
            self._stores.pods.put(_successor_of(pod, self._version()))

    def _disrupt(self, pod: Pod) -> None:
        view = self.observation.snapshot(self._node_name).budgets_of(pod)
        if not view.needs_allowance:
            return
        for budget in view.budgets:
            self._put_budget(_disrupted(budget, pod.metadata.name))

    def _budgets_of(self, pod: Pod) -> Iterable[PodDisruptionBudget]:
        """Return the budgets that count the pod as disrupted."""
        known = self._stores.budgets.list(pod.metadata.namespace)
        return [b for b in known if pod.metadata.name in b.status.disrupted_pods]

    def _detach(self, holdings: Iterable[Holding]) -> None:
        view = self.observation.snapshot(self._node_name).volumes
        for holding in holdings:
            if view.users_here(holding):
                continue
            for attachment in self._stores.attachments.list():
                of_volume = attachment.spec.source.persistent_volume_name == holding.volume
                if of_volume and attachment.spec.node_name == self._node_name:
                    meta = attachment.metadata
                    version = self._version()
                    self._stores.attachments.remove(meta.key, uid=meta.uid, version=version)
            self._forget_in_status(holding.names)

    def _forget_in_status(self, names: Iterable[str]) -> None:
        node = self._stores.nodes.get(self._node_name)
        if node is not None:
            node = _without_volumes(node, frozenset(names))
            renewed = msgspec.structs.replace(node, metadata=self._renewed(node.metadata))
            self._stores.nodes.put(renewed)

    def _put_budget(self, budget: PodDisruptionBudget) -> None:
        renewed = msgspec.structs.replace(budget, metadata=self._renewed(budget.metadata))
        self._stores.budgets.put(renewed)

    def _renewed(self, meta: ObjectMeta) -> ObjectMeta:
        return msgspec.structs.replace(meta, resource_version=self._version())

    def _version(self) -> str:
        return str(next(self._versions))


def _grace_in(body: bytes) -> int | None:
    """Read the grace period of a deletion; None: the pod's own."""
    grace: int | None = msgspec.json.decode(body, type=_Options).grace_period_seconds
    return grace


class _Options(msgspec.Struct, frozen=True, rename="camel"):
    grace_period_seconds: int | None = None


def _successor_of(pod: Pod, number: str) -> Pod:
    """Return who comes instead of the pod: on another Node, and waiting for the volumes."""
    owner = pod.metadata.controller_ref()
    keeps_name = owner is not None and owner.kind == "StatefulSet"
    name = pod.metadata.name if keeps_name else f"{pod.metadata.name}-{number}"
    meta = msgspec.structs.replace(
        pod.metadata,
        name=name,
        uid=f"successor-{number}",
        resource_version=number,
        deletion_timestamp=None,
    )
    spec = msgspec.structs.replace(pod.spec, node_name=_ELSEWHERE)
    status = msgspec.structs.replace(pod.status, phase="Pending")
    return msgspec.structs.replace(pod, metadata=meta, spec=spec, status=status)


def _disrupted(budget: PodDisruptionBudget, pod_name: str) -> PodDisruptionBudget:
    status = budget.status
    return msgspec.structs.replace(
        budget,
        status=msgspec.structs.replace(
            status,
            disruptions_allowed=max(0, status.disruptions_allowed - 1),
            current_healthy=max(0, status.current_healthy - 1),
            disrupted_pods={**status.disrupted_pods, pod_name: ""},
        ),
    )


def _restored(budget: PodDisruptionBudget, pod_name: str) -> PodDisruptionBudget:
    status = budget.status
    rest = {name: at for name, at in status.disrupted_pods.items() if name != pod_name}
    return msgspec.structs.replace(
        budget,
        status=msgspec.structs.replace(
            status,
            disruptions_allowed=status.disruptions_allowed + 1,
            current_healthy=status.current_healthy + 1,
            disrupted_pods=rest,
        ),
    )


def _without_volumes(node: Node, names: frozenset[str]) -> Node:
    status = node.status
    return msgspec.structs.replace(
        node,
        status=msgspec.structs.replace(
            status,
            volumes_attached=tuple(v for v in status.volumes_attached if v.name not in names),
            volumes_in_use=tuple(name for name in status.volumes_in_use if name not in names),
        ),
    )
