"""One Node whose pods are local processes: mounts, tokens, probes, restarts and statuses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, final
from urllib.parse import urlsplit

from mcm.api.timestamps import rfc3339
from mcm.clock import SystemClock
from tests.envtest.bench import MERGE, Bench, Document
from tests.envtest.installation.addresses import PodNetwork
from tests.envtest.installation.container import Container, ContainerSpec, Mount
from tests.envtest.installation.probes import Probes
from tests.envtest.installation.volumes import Volumes

NODE = "workstation"
LABEL = "kubernetes.io/hostname"
_LOOK_EVERY = 0.2
_EXPANDED = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


@final
class Kubelet:
    """Runs what is bound to :data:`NODE`, until cancelled. ``logs`` has what each pod said."""

    def __init__(
        self, admin: Bench, folder: Path, network: PodNetwork, *, server: str, ca: bytes
    ) -> None:
        self.admin = admin
        self.network = network
        self.logs = folder / "logs"
        self._folder = folder
        self._server = urlsplit(server)
        self.volumes = Volumes(admin, ca)
        self._running: dict[str, asyncio.Task[None]] = {}
        self.logs.mkdir(parents=True)

    async def join(self) -> None:
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        room = {"cpu": "16", "memory": "64Gi", "pods": "500"}
        node = {"metadata": {"name": NODE, "labels": {LABEL: NODE}}}
        await self.admin.create("/api/v1/nodes", node)
        status = {"conditions": [ready], "allocatable": room, "capacity": room}
        await self.admin.patch(f"/api/v1/nodes/{NODE}/status", {"status": status})
        # The server taints what is new, and nobody but us takes it off.
        await self.admin.patch(f"/api/v1/nodes/{NODE}", {"spec": {"taints": None}})

    async def run(self) -> None:
        clock = SystemClock()
        async with asyncio.TaskGroup() as group:
            while True:
                for pod in await self._pods():
                    uid = pod["metadata"]["uid"]
                    if uid not in self._running and not _is_over(pod):
                        life = _Life(self, pod, self._folder / uid)
                        self._running[uid] = group.create_task(life.run())
                await clock.sleep(_LOOK_EVERY)

    async def _pods(self) -> list[Document]:
        selector = f"spec.nodeName={NODE}"
        # Other tests leave pods that were never meant to run.
        listed = await self.admin.get(self.admin.pods(), fieldSelector=selector)
        found: list[Document] = listed["items"]
        return found

    # ---- what a pod is given --------------------------------------------------------------------

    def environment(self) -> dict[str, str]:
        host, port = self._server.hostname or "", str(self._server.port)
        return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}

    def container_spec(
        self, pod: Document, folder: Path, mounts: list[Mount], ip: str, hosts: Mapping[str, str]
    ) -> ContainerSpec:
        spec = pod["spec"]
        (container,) = spec["containers"]
        security = spec["securityContext"]
        environment = {**self.environment(), **_environment(container, pod, ip)}
        return ContainerSpec(
            folder=folder,
            command=container.get("command", ()),
            args=[_expanded(arg, environment) for arg in container.get("args", ())],
            environment=environment,
            mounts=mounts,
            hosts=hosts,
            user=security["runAsUser"],
            group=security["runAsGroup"],
        )

    async def hosts(self, namespace: str) -> dict[str, str]:
        """Address by name of the Services of a namespace: that of a ready pod each."""
        core = f"/api/v1/namespaces/{namespace}"
        services = (await self.admin.get(f"{core}/services"))["items"]
        pods = [pod for pod in (await self.admin.get(f"{core}/pods"))["items"] if _is_ready(pod)]
        found = {"localhost": "127.0.0.1"}
        for service in services:
            selector = (service["spec"].get("selector") or {"no": "selector"}).items()
            for pod in pods:
                if selector <= pod["metadata"]["labels"].items():
                    name = f"{service['metadata']['name']}.{namespace}.svc"
                    found[name] = pod["status"]["podIP"]
        return found


@final
class _Life:
    """One pod, from its start to the end of its object."""

    def __init__(self, kubelet: Kubelet, pod: Document, folder: Path) -> None:
        self._kubelet, self._admin = kubelet, kubelet.admin
        self._pod = pod
        self._folder = folder
        self._clock = SystemClock()
        meta = pod["metadata"]
        self._path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        self._log = kubelet.logs / f"{meta['name']}.log"
        self._ip = kubelet.network.next()
        self._restarts = 0
        self._container: Container | None = None

    async def run(self) -> None:
        try:
            while await self._wanted():
                await self._run_once()
                container = self._container
                if container is not None and not self._restarts_always():
                    if container.exit_code is not None:
                        await self._finish(container.exit_code)
                    break
                self._restarts += 1
                await self._clock.sleep(_LOOK_EVERY)
            while await self._wanted():
                await self._clock.sleep(_LOOK_EVERY)
            await self._stop()
        finally:
            if self._container is not None:
                self._container.kill()

    async def _run_once(self) -> None:
        """Run a container until it ends, fails its probes, or the pod is to go."""
        try:
            mounts = await self._kubelet.volumes.mounts(self._pod, self._folder)
        except AssertionError:
            return  # what it mounts is not there yet
        hosts = await self._kubelet.hosts(self._pod["metadata"]["namespace"])
        spec = self._kubelet.container_spec(self._pod, self._folder, mounts, self._ip, hosts)
        self._container = Container(spec, self._log)
        probes = Probes(self._pod["spec"]["containers"][0], self._ip)
        shown: bool | None = None
        while self._container.exit_code is None and await self._wanted():
            await probes.probe()
            if probes.dead:
                self._container.kill()
                return
            if probes.ready != shown:
                shown = probes.ready
                await self._show("Running", ready=shown)
            await self._clock.sleep(_LOOK_EVERY)

    async def _wanted(self) -> bool:
        answer = await self._admin.send("GET", self._path)
        if answer.status == 404 or answer.body["metadata"]["uid"] != self._pod["metadata"]["uid"]:
            return False
        return "deletionTimestamp" not in answer.body["metadata"]

    async def _stop(self) -> None:
        """End the process as the grace says, then the object."""
        container = self._container
        if container is not None:
            container.terminate()
            deadline = self._clock.monotonic() + self._pod["spec"]["terminationGracePeriodSeconds"]
            while container.exit_code is None and self._clock.monotonic() < deadline:
                await self._clock.sleep(0.1)
        options = {
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": self._pod["metadata"]["uid"]},
        }
        await self._admin.send("DELETE", self._path, options)

    async def _finish(self, code: int) -> None:
        await self._show("Failed" if code else "Succeeded", ready=False)

    def _restarts_always(self) -> bool:
        return bool(self._pod["spec"].get("restartPolicy", "Always") == "Always")

    async def _show(self, phase: str, *, ready: bool) -> None:
        now = rfc3339(self._clock.now())
        word = "True" if ready else "False"
        conditions = [
            {"type": kind, "status": word if "Ready" in kind else "True", "lastTransitionTime": now}
            for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ]
        (container,) = self._pod["spec"]["containers"]
        code = self._container.exit_code if self._container is not None else None
        state: Document = {"running": {"startedAt": now}}
        if code is not None:
            state = {"terminated": {"exitCode": code, "finishedAt": now}}
        status = {
            "phase": phase,
            "podIP": self._ip,
            "podIPs": [{"ip": self._ip}],
            "startTime": now,
            "conditions": conditions,
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "ready": ready,
                    "restartCount": self._restarts,
                    "state": state,
                }
            ],
        }
        await self._admin.send("PATCH", f"{self._path}/status", {"status": status}, media=MERGE)


def _environment(container: Document, pod: Document, ip: str) -> dict[str, str]:
    fields = {"status.podIP": ip, "metadata.name": pod["metadata"]["name"]}
    return {
        each["name"]: each.get("value")
        or fields[each.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "metadata.name")]
        for each in container.get("env", ())
    }


def _expanded(text: str, environment: Mapping[str, str]) -> str:
    return _EXPANDED.sub(lambda found: environment.get(found[1], found[0]), text)


def _is_over(pod: Document) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _is_ready(pod: Document) -> bool:
    conditions: list[dict[str, Any]] = pod.get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
