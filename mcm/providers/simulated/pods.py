"""The pods a simulated kubelet runs: started soon after binding, gone soon after deletion."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import final

from mcm.api.core import Pod, PodSpec, PodStatus
from mcm.api.meta import ApiStruct, JSONObject, Resource
from mcm.api.timestamps import rfc3339
from mcm.client.client import Client
from mcm.client.errors import Conflict, NotFound
from mcm.client.requests import PatchType
from mcm.clock import Clock
from mcm.controllers.runtime import DONE, Outcome
from mcm.informers.store import Store
from mcm.providers.simulated.node_objects import internal_ip

ANNOTATION_TERMINATION = "simulation.machine.sapcloud.io/termination-seconds"
ANNOTATION_COMPLETION = "simulation.machine.sapcloud.io/completion-seconds"
"""How long the containers of a pod run that is not to be restarted."""
ANNOTATION_EXIT_CODE = "simulation.machine.sapcloud.io/exit-code"
"""What its containers exit with; the pod fails unless it is 0."""
_START_SECONDS = 1.0
_COMPLETION_SECONDS = 1.0
_TERMINATION_SECONDS = 1.0


class Container(ApiStruct, frozen=True, kw_only=True):
    name: str = ""
    image: str = ""


class RunnablePodSpec(PodSpec, frozen=True, kw_only=True):
    containers: tuple[Container, ...] = ()
    restart_policy: str = "Always"


class RunningState(ApiStruct, frozen=True, kw_only=True):
    started_at: str = ""


class ContainerState(ApiStruct, frozen=True, kw_only=True):
    running: RunningState | None = None


class ContainerStatus(ApiStruct, frozen=True, kw_only=True):
    name: str = ""
    state: ContainerState = ContainerState()


class RunnablePodStatus(PodStatus, frozen=True, kw_only=True):
    container_statuses: tuple[ContainerStatus, ...] = ()

    def started_at(self, container: str) -> str:
        """Return since when a container has been running; nothing if it has not."""
        found = (c.state.running for c in self.container_statuses if c.name == container)
        return next((running.started_at for running in found if running is not None), "")


class RunnablePod(Pod, frozen=True, kw_only=True):
    """A pod with what a kubelet reads beside what drains do."""

    spec: RunnablePodSpec = RunnablePodSpec()
    status: RunnablePodStatus = RunnablePodStatus()


RUNNABLE_PODS = Resource("", "v1", "pods", "Pod", RunnablePod)
BY_NODE = "node"
"""The index of pods by the name of the Node they are bound to."""


@final
@dataclass(frozen=True, slots=True)
class _Step:
    """A pod's next step, and when this process first saw it due (monotonic seconds)."""

    uid: str
    name: str
    since: float


@final
class PodRunner:
    """``is_alive`` says whether the named Node's VM runs: without, its pods stay as they are.
    ``lacks_volumes`` says whether a pod must wait for some; whoever knows better calls again."""

    def __init__(
        self,
        client: Client,
        pods: Store[RunnablePod],
        *,
        clock: Clock,
        is_alive: Callable[[str], bool],
        lacks_volumes: Callable[[RunnablePod], bool],
    ) -> None:
        self._client = client
        self._pods = pods
        self._clock = clock
        self._is_alive = is_alive
        self._lacks_volumes = lacks_volumes
        self._steps: dict[str, _Step] = {}

    async def reconcile(self, key: str) -> Outcome:
        """Bring one pod on; to be called for every change of a bound pod, its end included."""
        pod = self._pods.get(key)
        if pod is None:
            self._steps.pop(key, None)
            return DONE
        if not pod.spec.node_name or not self._is_alive(pod.spec.node_name):
            return DONE
        if pod.metadata.deletion_timestamp is not None:
            return await self._step(pod, "stop", self._termination_seconds(pod), self._remove)
        if pod.status.phase in ("", "Pending"):
            if self._lacks_volumes(pod):
                return await self._wait_for_volumes(pod)
            return await self._step(pod, "start", _START_SECONDS, self._start)
        if pod.status.phase == "Running" and _ends(pod):
            seconds = _seconds(pod, ANNOTATION_COMPLETION, _COMPLETION_SECONDS)
            return await self._step(pod, "completion", seconds, self._complete)
        return DONE

    async def _step(
        self,
        pod: RunnablePod,
        name: str,
        seconds: float,
        act: Callable[[RunnablePod], Awaitable[None]],
    ) -> Outcome:
        key, now = pod.metadata.key, self._clock.monotonic()
        step = self._steps.get(key)
        if step is None or (step.uid, step.name) != (pod.metadata.uid, name):
            step = self._steps[key] = _Step(pod.metadata.uid, name, since=now)
        left = step.since + seconds - now
        if left > 0:
            return Outcome(after=left, reason=f"{name} of the pod")
        # Deleted, or replaced by another of the same name: then its event brings us back.
        with suppress(NotFound, Conflict):
            await act(pod)
        self._steps.pop(key, None)
        return DONE

    def _termination_seconds(self, pod: RunnablePod) -> float:
        """As long as its annotation says, but never beyond the grace it was given."""
        asked = _seconds(pod, ANNOTATION_TERMINATION, _TERMINATION_SECONDS)
        deadline = pod.metadata.deletion_timestamp
        if deadline is None:
            return asked
        step = self._steps.get(pod.metadata.key)
        waited = self._clock.monotonic() - step.since if step and step.name == "stop" else 0.0
        grace = (deadline - self._clock.now()).total_seconds() + waited
        return max(0.0, min(asked, grace))

    async def _wait_for_volumes(self, pod: RunnablePod) -> Outcome:
        """Say once what kubectl shows as ContainerCreating; what lacks is told by an event."""
        self._steps.pop(pod.metadata.key, None)
        if not pod.status.container_statuses:
            with suppress(NotFound, Conflict):
                await self._set_status(pod, self._creating(pod))
        return DONE

    async def _start(self, pod: RunnablePod) -> None:
        await self._set_status(pod, self._running(pod))

    async def _complete(self, pod: RunnablePod) -> None:
        await self._set_status(pod, self._completed(pod))

    async def _set_status(self, pod: RunnablePod, status: JSONObject) -> None:
        answer = await self._client.patch(
            RUNNABLE_PODS,
            pod.metadata.name,
            {"metadata": {"uid": pod.metadata.uid}, "status": status},
            namespace=pod.metadata.namespace,
            subresource="status",
            patch_type=PatchType.STRATEGIC,
        )
        self._pods.observe(answer)

    async def _remove(self, pod: RunnablePod) -> None:
        await self._client.delete(
            RUNNABLE_PODS,
            pod.metadata.name,
            namespace=pod.metadata.namespace,
            uid=pod.metadata.uid,
            grace_period_seconds=0,
        )

    def _creating(self, pod: RunnablePod) -> JSONObject:
        now = rfc3339(self._clock.now())
        states = (("Initialized", "True"), ("ContainersReady", "False"), ("Ready", "False"))
        return {
            "phase": "Pending",
            "startTime": now,
            "hostIP": internal_ip(pod.spec.node_name),
            "conditions": [
                {"type": kind, "status": status, "lastTransitionTime": now}
                for kind, status in states
            ],
            "containerStatuses": [_waiting_container(c) for c in pod.spec.containers],
        }

    def _running(self, pod: RunnablePod) -> JSONObject:
        now = rfc3339(self._clock.now())
        address = internal_ip(pod.metadata.uid)
        conditions = pod.status.conditions
        scheduled = any(c.type == "PodScheduled" and c.status == "True" for c in conditions)
        kinds = ("Initialized", "ContainersReady", "Ready")
        return {
            "phase": "Running",
            "startTime": now,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": internal_ip(pod.spec.node_name),
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": now}
                for kind in (kinds if scheduled else ("PodScheduled", *kinds))
            ],
            "containerStatuses": [_running_container(c, now) for c in pod.spec.containers],
        }

    def _completed(self, pod: RunnablePod) -> JSONObject:
        now, exit_code = rfc3339(self._clock.now()), _exit_code(pod)
        phase = "Failed" if exit_code else "Succeeded"
        reason = "PodFailed" if exit_code else "PodCompleted"
        return {
            "phase": phase,
            "conditions": [
                {"type": kind, "status": "False", "reason": reason, "lastTransitionTime": now}
                for kind in ("ContainersReady", "Ready")
            ],
            "containerStatuses": [
                _ended_container(c, exit_code, pod.status.started_at(c.name) or now, now)
                for c in pod.spec.containers
            ],
        }


def _ends(pod: RunnablePod) -> bool:
    """Tell whether the pod's containers end by themselves, for good. Those of a pod that is
    restarted when it fails, and always fails, run for ever."""
    policy = pod.spec.restart_policy
    return policy == "Never" or (policy == "OnFailure" and not _exit_code(pod))


def _exit_code(pod: RunnablePod) -> int:
    text = pod.metadata.annotations.get(ANNOTATION_EXIT_CODE, "")
    return int(text) if text.isdecimal() else 0


def _seconds(pod: RunnablePod, annotation: str, default: float) -> float:
    try:
        return float(pod.metadata.annotations.get(annotation, default))
    except ValueError:
        return default


def _waiting_container(container: Container) -> JSONObject:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": False,
        "started": False,
        "restartCount": 0,
        "state": {"waiting": {"reason": "ContainerCreating"}},
    }


def _running_container(container: Container, now: str) -> JSONObject:
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "containerID": f"simulated://{container.name}",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
    }


def _ended_container(container: Container, exit_code: int, started: str, now: str) -> JSONObject:
    ended: JSONObject = {
        "exitCode": exit_code,
        "reason": "Error" if exit_code else "Completed",
        "startedAt": started,
        "finishedAt": now,
        "containerID": f"simulated://{container.name}",
    }
    return {
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "containerID": f"simulated://{container.name}",
        "ready": False,
        "started": False,
        "restartCount": 0,
        "state": {"terminated": ended},
    }
