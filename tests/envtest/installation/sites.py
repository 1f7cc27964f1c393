"""Where the chart is installed in tests: a server, a person with helm, a Node that runs pods."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import aiohttp
import yaml

from mcm.client.connection import StaticToken
from mcm.clock import SystemClock
from tests.charts.helm_binary import CHART, Helm
from tests.envtest.bench import Bench, Document
from tests.envtest.installation.addresses import PodNetwork
from tests.envtest.installation.kubelet import LABEL, NODE, Kubelet
from tests.envtest.installation.volumes import token_of

ACCESS = "target-access"
"""The namespace that roles for a manager elsewhere are installed from."""
CERTIFICATE = "mcm-webhook"
"""The Secret that the chart makes for the webhook, which may do for the metrics as well."""
CONFIG = {"machine-drain-timeout": "90m", "controllers": ["*"], "max-replicas": 1_000_000}
_READ_AT_ONCE = 65536


@final
@dataclass(frozen=True)
class Site:
    """``asks_webhooks``: whether the server knows of admission webhooks more than to keep them."""

    admin: Bench
    helm: Helm
    kubelet: Kubelet
    server: str
    ca: bytes
    webhook_port: int
    asks_webhooks: bool

    @property
    def namespace(self) -> str:
        return self.admin.namespace

    async def run_helm(self, *arguments: str, values: object = None) -> str:
        """Run a command that must succeed, beside everything else."""
        command = (*arguments, f"--namespace={self.namespace}")
        try:
            return await asyncio.to_thread(self.helm, *command, values=values)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{await self.describe()}") from None

    async def describe(self) -> str:
        """Return what there is, and what the pods said."""
        paths = (self.admin.path("replicasets", group="apps/v1"), self.admin.pods())
        lines = [
            f"{each['metadata']['name']}: {each.get('spec', {}).get('nodeName')} {each['status']}"
            for path in paths
            for each in (await self.admin.get(path))["items"]
        ]
        lines += [f"{log.name}: {log.read_text()[-2000:]}" for log in self.kubelet.logs.iterdir()]
        return "\n".join(lines)

    async def install(self, *, values: object, command: str = "install") -> str:
        return await self.run_helm(
            command, "mcm", str(CHART), "--wait", "--timeout=90s", values=values
        )

    async def install_access(self) -> None:
        """Install the roles for the target alone, under an identity of its own."""
        await self.admin.create("/api/v1/namespaces", {"metadata": {"name": ACCESS}})
        await asyncio.to_thread(
            self.helm,
            *("install", "mcm", str(CHART), "--skip-crds", f"--namespace={ACCESS}"),
            values={"mode": "access"},
        )

    async def keep_target_kubeconfig(self) -> None:
        """Put a kubeconfig of that identity where the manager is told to look for it."""
        account = f"/api/v1/namespaces/{ACCESS}/serviceaccounts/mcm"
        text = yaml.safe_dump(kubeconfig(self.server, self.ca, await token_of(self.admin, account)))
        data = {"kubeconfig": base64.b64encode(text.encode()).decode()}
        secret = {"metadata": {"name": "target-kubeconfig"}, "data": data}
        await self.admin.create(self.admin.secrets(), secret)

    async def replicas(self) -> list[Document]:
        """Return the pods of the manager that are not on their way out."""
        selector = "app.kubernetes.io/component=manager"
        pods = (await self.admin.get(self.admin.pods(), labelSelector=selector))["items"]
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    async def refused(self, *, token: str = "") -> list[str]:
        """Return what the servers refused the replicas, by their logs and their own count, which
        is told to who shows this token."""
        found: list[str] = []
        for pod in await self.replicas():
            log = self.kubelet.logs / f"{pod['metadata']['name']}.log"
            found += [line for line in log.read_text().splitlines() if "orbidden" in line]
            status, text = await self.ask(pod, "/metrics", token=token)
            assert (status, "rest_client_requests_total" in text) == (200, True), text
            found += [line for line in text.splitlines() if 'code="403"' in line]
        return found

    async def ask(self, pod: Document, path: str, *, token: str = "") -> tuple[int, str]:
        """Ask a replica at the port of its metrics: by TLS, if that is another than of probes."""
        (container,) = pod["spec"]["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        guarded = "metrics" in ports
        url = (
            f"http{'s' * guarded}://{pod['status']['podIP']}:{ports.get('metrics', ports['http'])}"
        )
        name = f"{CERTIFICATE}.{self.namespace}.svc" if guarded else None
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        trust = await self._trust() if guarded else True
        async with (
            aiohttp.ClientSession() as session,
            session.get(url + path, headers=headers, ssl=trust, server_hostname=name) as answer,
        ):
            return answer.status, await answer.text()

    async def _trust(self) -> ssl.SSLContext:
        data = (await self.admin.get(self.admin.secrets(CERTIFICATE)))["data"]
        authority = base64.b64decode(data["ca.crt"]).decode()
        return ssl.create_default_context(cadata=authority)

    def values(self, **more: Any) -> dict[str, Any]:
        """Return values that let pods of one machine share its loopback interface."""
        address = {"fieldRef": {"fieldPath": "status.podIP"}}
        webhook = {
            "enabled": True,
            "url": f"https://127.0.0.1:{self.webhook_port}/validate",
        }
        return {
            "manager": {
                "address": "$(POD_IP)",
                "extraEnv": [{"name": "POD_IP", "valueFrom": address}],
                "config": CONFIG,
            },
            "nodeSelector": {LABEL: NODE},
            "webhook": webhook,
            **more,
        }


def kubeconfig(server: str, ca: bytes, token: str) -> Document:
    authority = base64.b64encode(ca).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [
            {"name": "c", "cluster": {"server": server, "certificate-authority-data": authority}}
        ],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }


def helm_at(helm: Helm, folder: Path, config: Document) -> Helm:
    path = folder / "kubeconfig.yaml"
    path.write_text(yaml.safe_dump(config))
    path.chmod(0o600)
    return Helm(helm.binary, helm.home, path)


@asynccontextmanager
async def site(
    admin: Bench, helm: Helm, folder: Path, *, asks_webhooks: bool
) -> AsyncIterator[Site]:
    """Have a Node that runs pods, and a way to the webhook, while the context lasts."""
    spec = admin.peer.spec
    server, ca = spec.server, spec.tls.ca_data
    assert isinstance(spec.credentials, StaticToken)
    config = kubeconfig(server, ca, spec.credentials.token)
    with PodNetwork() as network:
        kubelet = Kubelet(admin, folder / "kubelet", network, server=server, ca=ca)
        await kubelet.join()
        balancer = await asyncio.start_server(_Balancer(admin).serve, "127.0.0.1", 0)
        running = asyncio.create_task(kubelet.run())
        try:
            yield Site(
                admin=admin,
                helm=helm_at(helm, folder, config),
                kubelet=kubelet,
                server=server,
                ca=ca,
                webhook_port=balancer.sockets[0].getsockname()[1],
                asks_webhooks=asks_webhooks,
            )
            assert not running.done(), "the kubelet ended by itself"
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
            balancer.close()
            await admin.send("DELETE", f"/api/v1/nodes/{NODE}")


@final
class _Balancer:
    """Leads connections to the webhook of a ready replica, as a Service would."""

    def __init__(self, admin: Bench) -> None:
        self._admin = admin

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(await self._address(), 9443)
        except OSError:
            writer.close()
            return
        async with asyncio.TaskGroup() as group:
            group.create_task(_pipe(reader, back))
            group.create_task(_pipe(there, writer))

    async def _address(self) -> str:
        selector = "app.kubernetes.io/component=manager"
        pods = (await self._admin.get(self._admin.pods(), labelSelector=selector))["items"]
        for pod in pods:
            status = pod.get("status", {})
            ready = any(
                c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", ())
            )
            if ready and "deletionTimestamp" not in pod["metadata"]:
                return str(status["podIP"])
        raise OSError("no replica is ready")


async def _pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await source.read(_READ_AT_ONCE):
            sink.write(chunk)
            await sink.drain()
    sink.close()


async def until_gone(admin: Bench, paths: list[str], *, within: float = 60.0) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + within
    while left := [path for path in paths if not await admin.gone(path)]:
        assert clock.monotonic() < deadline, f"still there: {left}"
        await clock.sleep(0.2)
