"""The pods a simulated kubelet runs: started soon after binding, gone soon after deletion."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import final

from mcm.api.core import PODS, Pod
from mcm.api.meta import JSONObject
from mcm.api.timestamps import rfc3339
from mcm.client.client import Client
from mcm.client.errors import Conflict, NotFound
from mcm.clock import Clock
from mcm.controllers.runtime import DONE, Outcome
from mcm.informers.store import Store
from mcm.providers.simulated.node_objects import internal_ip

ANNOTATION_TERMINATION = "simulation.machine.sapcloud.io/termination-seconds"
_START_SECONDS = 1.0
_TERMINATION_SECONDS = 1.0


@final
class PodRunner:
    """``is_alive`` says whether the named Node's VM runs: without, its pods stay as they are."""

    def __init__(
        self, client: Client, pods: Store[Pod], *, clock: Clock, is_alive: Callable[[str], bool]
    ) -> None:
        self._client = client
        self._pods = pods
        self._clock = clock
        self._is_alive = is_alive
        # When this process first saw a pod wait for its next step, by (uid, step).
        self._since: dict[tuple[str, str], float] = {}

    async def reconcile(self, key: str) -> Outcome:
        pod = self._pods.get(key)
        if pod is None or not pod.spec.node_name or not self._is_alive(pod.spec.node_name):
            return DONE
        if pod.metadata.deletion_timestamp is not None:
            return await self._step(pod, "stop", _termination_seconds(pod), self._remove)
        if pod.status.phase in ("", "Pending"):
            return await self._step(pod, "start", _START_SECONDS, self._start)
        return DONE

    async def _step(
        self, pod: Pod, name: str, seconds: float, act: Callable[[Pod], Awaitable[None]]
    ) -> Outcome:
        mark = (pod.metadata.uid, name)
        now = self._clock.monotonic()
        left = self._since.setdefault(mark, now) + seconds - now
        if left > 0:
            return Outcome(after=left, reason=f"{name} of the pod")
        # Deleted, or replaced by another of the same name: then its event brings us back.
        with suppress(NotFound, Conflict):
            await act(pod)
        del self._since[mark]
        return DONE

    async def _start(self, pod: Pod) -> None:
        answer = await self._client.patch(
            PODS,
            pod.metadata.name,
            {"metadata": {"uid": pod.metadata.uid}, "status": self._running(pod)},
            namespace=pod.metadata.namespace,
            subresource="status",
        )
        self._pods.observe(answer)

    async def _remove(self, pod: Pod) -> None:
        await self._client.delete(
            PODS,
            pod.metadata.name,
            namespace=pod.metadata.namespace,
            uid=pod.metadata.uid,
            grace_period_seconds=0,
        )

    def _running(self, pod: Pod) -> JSONObject:
        now = rfc3339(self._clock.now())
        address = internal_ip(pod.metadata.uid)
        kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        return {
            "phase": "Running",
            "startTime": now,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": internal_ip(pod.spec.node_name),
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": now} for kind in kinds
            ],
        }


def _termination_seconds(pod: Pod) -> float:
    grace = pod.spec.termination_grace_period_seconds
    limit = float("inf") if grace is None else float(grace)
    try:
        asked = float(pod.metadata.annotations.get(ANNOTATION_TERMINATION, _TERMINATION_SECONDS))
    except ValueError:
        asked = _TERMINATION_SECONDS
    return min(asked, limit)
