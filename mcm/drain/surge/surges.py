"""The successors that are being made in one cluster: begun, followed, and put back afterwards."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, TypeAlias, final

from mcm.api.core import Pod
from mcm.api.names import LABEL_DRAIN_SURGE
from mcm.api.workloads import DEPLOYMENTS, Deployment
from mcm.client.errors import ApiError, Conflict, KubeError, NotFound, ServerError, TooManyRequests
from mcm.client.verbs import ObjectClient
from mcm.clock import Clock
from mcm.drain.pods import is_finished
from mcm.drain.selection import SurgeKind, asked_surge
from mcm.drain.surge.decision import (
    LONGEST,
    SLACK,
    Awaited,
    Begin,
    Go,
    Settlement,
    decide,
    follow,
    settle,
)
from mcm.drain.surge.marker import Marker, begin_patch, end_patch, is_marked, marker_of
from mcm.drain.surge.owners import NoOwner, deployment_of, is_autoscaled
from mcm.informers.store import Store

logger = logging.getLogger(__name__)

_AT_ONCE: Final = 8
"""Pods whose owners are asked about at a time."""
_RETRY: Final = 10.0
"""Seconds after which one asks again what the server did not answer."""
_RETRY_CONFLICT: Final = 1.0
_PAGE: Final = 500
_UNDOING: Final = 8
"""Attempts to undo what is in vain as long as the Deployment changes meanwhile."""


@final
@dataclass(frozen=True, slots=True)
class Prepared:
    """``awaited`` pods, by UID, are not to be asked yet; those in ``free`` have been seen to.
    ``said``: by UID, why one has no successor, each told once. ``look_again`` in seconds; None:
    when something happens."""

    awaited: Mapping[str, Awaited] = field(default_factory=dict)
    free: frozenset[str] = frozenset()
    said: Mapping[str, str] = field(default_factory=dict)
    look_again: float | None = None

    def is_seen_to(self, pod: Pod) -> bool:
        """Tell whether the pod may be asked: it wants no successor, or this was decided."""
        return pod.metadata.uid in self.free or _wish(pod) is None


@final
@dataclass(frozen=True, slots=True)
class _Open:
    """A successor is being made by the Deployment ``key``. ``owner``: UID of the ReplicaSet.
    ``late``: it is no longer waited for."""

    key: str
    node: str
    owner: str
    marker: Marker
    late: bool = False


@final
@dataclass(frozen=True, slots=True)
class _Troubled:
    """The server could not be asked, or another pod goes first; ``at`` is monotonic."""

    awaited: Awaited
    at: float


@final
@dataclass(frozen=True, slots=True)
class _Settled:
    """It goes as others do. ``pod`` is its key."""

    pod: str


_Known: TypeAlias = _Open | _Troubled | _Settled


def _observed() -> str:
    return ""


@final
class Surges:
    """All of one cluster. What is remembered here stands on the Deployments as well.

    ``marked`` is told the key of each Deployment that is to be settled, and in how many seconds;
    ``wake`` the node of a pod whose successor changed. ``blind`` says why pods cannot be observed.
    """

    def __init__(
        self,
        client: ObjectClient,
        pods: Store[Pod],
        *,
        clock: Clock,
        blind: Callable[[], str] = _observed,
        marked: Callable[[str, float], None] = lambda key, seconds: None,
        wake: Callable[[str], None] = lambda node: None,
    ) -> None:
        self._client = client
        self._pods = pods
        self._clock = clock
        self._blind = blind
        self._marked = marked
        self._wake = wake
        self._known: dict[str, _Known] = {}

    # ---- before an eviction ----------------------------------------------------------------------

    async def prepare(
        self, due: Iterable[Pod], *, deadline: datetime, exclusive: Callable[[Pod], bool]
    ) -> Prepared:
        """See to successors of those of the ``due`` pods that ask for one. Raises no KubeError.

        ``exclusive`` tells which pods hold volumes that cannot be attached twice. Cancelled at any
        await, it goes on with what stands on the Deployments.
        """
        wanting = [(pod, kind) for pod in due if (kind := _wish(pod)) is not None]
        if not wanting:
            return Prepared()
        self._forget_gone()
        turn = asyncio.Semaphore(_AT_ONCE)

        async def one(pod: Pod, kind: SurgeKind) -> Awaited | Go:
            async with turn:
                return await self._prepare(pod, kind, deadline, exclusive)

        async with asyncio.TaskGroup() as group:
            tasks = {pod.metadata.uid: group.create_task(one(pod, kind)) for pod, kind in wanting}
        answers = {uid: task.result() for uid, task in tasks.items()}
        awaited = {uid: a for uid, a in answers.items() if isinstance(a, Awaited)}
        return Prepared(
            awaited=awaited,
            free=frozenset(answers.keys() - awaited.keys()),
            said={uid: a.why for uid, a in answers.items() if isinstance(a, Go) and a.why},
            look_again=min((self._wait(uid, a) for uid, a in awaited.items()), default=None),
        )

    async def _prepare(
        self, pod: Pod, kind: SurgeKind, deadline: datetime, exclusive: Callable[[Pod], bool]
    ) -> Awaited | Go:
        known = self._known.get(pod.metadata.uid)
        match known:
            case _Settled():
                return Go()
            case _Open():
                return self._follow(pod, known)
            case _Troubled() if self._clock.monotonic() < known.at:
                return known.awaited
        if exclusive(pod):
            return self._go(pod, "its volumes can be attached to one node at a time")
        try:
            return await self._ask(pod, kind, deadline)
        except Conflict:
            return self._later(pod, "its Deployment changed", deadline, _RETRY_CONFLICT)
        except KubeError as error:
            words = f"{type(error).__name__}: {error}"
            if isinstance(error, ApiError) and not isinstance(error, ServerError | TooManyRequests):
                return self._go(pod, words)
            return self._later(pod, words, deadline, _RETRY)

    async def _ask(self, pod: Pod, kind: SurgeKind, deadline: datetime) -> Awaited | Go:
        """Read the owners and have them make a successor, unless they do or cannot."""
        deployment = await deployment_of(self._client, pod)
        if isinstance(deployment, NoOwner):
            return self._go(pod, deployment.why)
        marker = marker_of(deployment)
        if marker is not None and marker.pod == pod.metadata.uid:
            return self._open(pod, deployment, marker)  # another process began it, or a lost answer
        scales = kind is SurgeKind.SCALE
        decision = decide(
            pod,
            kind,
            deployment,
            autoscaled=scales and await is_autoscaled(self._client, deployment),
            now=self._clock.now(),
            deadline=deadline,
        )
        match decision:
            case Begin(begun):
                await self._begin(deployment, begun)
                return self._open(pod, deployment, begun)
            case Go(why):
                return self._go(pod, why)
            case Awaited():
                return self._later(pod, decision.detail, decision.until, _RETRY)

    async def _begin(self, deployment: Deployment, marker: Marker) -> None:
        meta = deployment.metadata
        patch = begin_patch(deployment, marker)
        await self._client.patch(DEPLOYMENTS, meta.name, patch, namespace=meta.namespace)
        logger.info(
            "a pod that is to be drained gets a successor first",
            extra={"deployment": meta.key, "pod": marker.name, "kind": marker.kind.value},
        )

    def _open(self, pod: Pod, deployment: Deployment, marker: Marker) -> Awaited | Go:
        owner, key = pod.metadata.controller_ref(), deployment.metadata.key
        known = _Open(key, pod.spec.node_name, owner.uid if owner else "", marker)
        self._known[pod.metadata.uid] = known
        ends = marker.until + SLACK - self._clock.now()
        self._marked(key, max(0.0, ends.total_seconds()))
        return self._follow(pod, known)

    def _follow(self, pod: Pod, known: _Open) -> Awaited | Go:
        if known.late:
            return Go()
        others = self._others(pod)
        answer = follow(pod, known.marker, others=others, now=self._clock.now())
        if isinstance(answer, Go) and answer.why:
            self._known[pod.metadata.uid] = replace(known, late=True)
        return answer

    def _go(self, pod: Pod, why: str) -> Go:
        self._known[pod.metadata.uid] = _Settled(pod.metadata.key)
        return Go(why)

    def _later(self, pod: Pod, words: str, until: datetime, seconds: float) -> Awaited | Go:
        """Try again soon, for as long as a successor might take."""
        known, now = self._known.get(pod.metadata.uid), self._clock.now()
        since = known.awaited.since if isinstance(known, _Troubled) else now
        until = min(since + LONGEST, until)
        if now >= until:
            return self._go(pod, words)
        awaited = Awaited(since, until, words)
        self._known[pod.metadata.uid] = _Troubled(awaited, self._clock.monotonic() + seconds)
        return awaited

    def _wait(self, uid: str, awaited: Awaited) -> float:
        until = max(0.0, (awaited.until - self._clock.now()).total_seconds())
        known = self._known.get(uid)
        if isinstance(known, _Troubled):
            return min(until, max(0.0, known.at - self._clock.monotonic()))
        return until

    def _others(self, pod: Pod) -> Sequence[Pod]:
        owner = pod.metadata.controller_ref()
        if owner is None:
            return ()
        return [
            other
            for other in self._pods.list(pod.metadata.namespace)
            if other.metadata.uid != pod.metadata.uid
            and (ref := other.metadata.controller_ref()) is not None
            and ref.uid == owner.uid
        ]

    def _forget_gone(self) -> None:
        for uid, known in list(self._known.items()):
            if isinstance(known, _Settled):
                pod = self._pods.get(known.pod)
                if pod is None or pod.metadata.uid != uid:
                    del self._known[uid]

    # ---- what happens to pods --------------------------------------------------------------------

    def pod_changed(self, pod: Pod) -> None:
        """Tell whom a pod's change concerns. Called by whoever watches pods."""
        if not self._known:
            return
        owner = pod.metadata.controller_ref()
        for uid, known in list(self._known.items()):
            if not isinstance(known, _Open):
                continue
            successor = owner is not None and owner.uid == known.owner
            if pod.metadata.uid != uid and not successor:
                continue
            if not self._is_kept(known.marker, pod.metadata.namespace, self._clock.now()):
                self._marked(known.key, 0.0)
            if pod.metadata.uid != uid:
                self._wake(known.node)

    # ---- afterwards ------------------------------------------------------------------------------

    async def find(self) -> Sequence[str]:
        """Return the keys of all Deployments that are marked, by whomever. Raises KubeError."""
        keys: list[str] = []
        token = ""
        while True:
            page = await self._client.list_page(
                DEPLOYMENTS, label_selector=LABEL_DRAIN_SURGE, limit=_PAGE, continue_token=token
            )
            keys += [deployment.metadata.key for deployment in page.items]
            if not (token := page.continue_token):
                return keys

    async def settle(self, key: str) -> float | None:
        """Put a marked Deployment back if its time has come, whoever marked it.

        Return after how many seconds to look again, None if there is nothing more to do. Raises
        KubeError, Conflict where the Deployment changed meanwhile.
        """
        namespace, _, name = key.partition("/")
        try:
            deployment = await self._client.get(DEPLOYMENTS, name, namespace=namespace)
        except NotFound:
            self._settled(key)
            return None
        if not is_marked(deployment):
            self._settled(key)
            return None
        marker, now = marker_of(deployment), self._clock.now()
        if marker is not None and self._is_kept(marker, namespace, now):
            self._take_over(key, marker)
            return max(1.0, (marker.until + SLACK - now).total_seconds())
        try:
            patch = end_patch(deployment, marker)
            await self._client.patch(DEPLOYMENTS, name, patch, namespace=namespace)
            logger.info("a Deployment is as it was before a drain", extra={"deployment": key})
        except NotFound:
            pass
        self._settled(key)
        return None

    async def put_back(self) -> None:
        """Undo at once all that is under way here, for a drain that is over or given up. Raises
        KubeError."""
        for key in {known.key for known in self._known.values() if isinstance(known, _Open)}:
            for attempt in range(_UNDOING):
                try:
                    await self._undo(key)
                    break
                except Conflict:  # its status changes often just now
                    if attempt == _UNDOING - 1:
                        raise

    async def _undo(self, key: str) -> None:
        namespace, _, name = key.partition("/")
        with suppress(NotFound):
            deployment = await self._client.get(DEPLOYMENTS, name, namespace=namespace)
            marker = marker_of(deployment)
            if marker is not None and marker.pod in self._known:
                patch = end_patch(deployment, marker)
                await self._client.patch(DEPLOYMENTS, name, patch, namespace=namespace)
        self._settled(key)

    def _take_over(self, key: str, marker: Marker) -> None:
        """Follow what another process began: its pod may be on its way out, and drained no more."""
        pod = self._pods.get(f"{key.partition('/')[0]}/{marker.name}")
        if pod is None or pod.metadata.uid != marker.pod or marker.pod in self._known:
            return
        owner = pod.metadata.controller_ref()
        owner_uid = owner.uid if owner else ""
        self._known[marker.pod] = _Open(key, pod.spec.node_name, owner_uid, marker)

    def _is_kept(self, marker: Marker, namespace: str, now: datetime) -> bool:
        pod = self._pods.get(f"{namespace}/{marker.name}")
        if pod is not None and pod.metadata.uid != marker.pod:
            pod = None
        others = self._others(pod) if pod is not None else ()
        verdict = settle(marker, pod, others, now, blind=bool(self._blind()))
        return verdict is Settlement.KEEP

    def _settled(self, key: str) -> None:
        """Nothing of it is under way any more; a pod that is still there goes as others do."""
        for uid, known in list(self._known.items()):
            if isinstance(known, _Open) and known.key == key:
                pod = f"{key.partition('/')[0]}/{known.marker.name}"
                self._known[uid] = _Settled(pod)


def _wish(pod: Pod) -> SurgeKind | None:
    """Return what the pod asks for; None for one that runs no more, or is about to end."""
    if pod.metadata.deletion_timestamp is not None or is_finished(pod):
        return None
    return asked_surge(pod)
