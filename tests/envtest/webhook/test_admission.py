"""A real API server asks the webhook of an `mcm run` that leads nothing; a real kubectl is told."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import final

import orjson
import pytest
import trustme
import yaml

from mcm.clock import SystemClock
from mcm.webhook.configuration import NAME, webhook_configuration
from tests.envtest import assets
from tests.envtest.bench import Bench, Document, Peer
from tests.envtest.contract.objects import machine_deployment
from tests.envtest.control_plane import ControlPlane
from tests.envtest.processes import ServerProcess, free_ports

pytestmark = pytest.mark.envtest

NAMESPACE = "webhook"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
WITHIN = 60.0


@final
class Field:
    """Administrator and kubectl of a real cluster, and the folder of the webhook's certificate."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane = plane
        self.folder = folder
        self.admin = Bench(Peer("real", plane.spec(), plane.compact, plane.spec), NAMESPACE)
        self.metrics_port, self.port = free_ports(2)
        (folder / "ca.crt").write_bytes(plane.ca)
        self.kubeconfig = folder / "kubeconfig.yaml"
        self.kubeconfig.write_text(yaml.safe_dump(self._kubeconfig()))

    def issue(self, authority: trustme.CA) -> None:
        pair = authority.issue_cert("127.0.0.1")
        (self.folder / "tls.crt").write_bytes(b"".join(b.bytes() for b in pair.cert_chain_pems))
        (self.folder / "tls.key").write_bytes(pair.private_key_pem.bytes())

    async def ask_us(self, authority: trustme.CA) -> None:
        """Let the API server ask, and refuse what it cannot ask about."""
        url = f"https://127.0.0.1:{self.port}/validate"
        manifest: Document = webhook_configuration(
            url=url, ca=authority.cert_pem.bytes(), fail=True
        )
        own = {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}
        manifest["webhooks"][0]["namespaceSelector"] = own
        await self.admin.send("DELETE", f"{CONFIGURATIONS}/{NAME}")
        await self.admin.create(CONFIGURATIONS, manifest)

    async def kubectl(self, *arguments: str, stdin: object = None) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            str(assets.locate() / "kubectl"),
            f"--kubeconfig={self.kubeconfig}",
            f"--namespace={NAMESPACE}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate(orjson.dumps(stdin) if stdin is not None else b"")
        return process.returncode or 0, said.decode()

    async def apply(self, obj: Document) -> tuple[int, str]:
        return await self.kubectl("apply", "-f", "-", stdin=obj)

    @asynccontextmanager
    async def manager(self) -> AsyncIterator[ServerProcess]:
        """A whole `mcm run`, as people start it."""
        command = [
            sys.executable, "-m", "mcm", "run",
            f"--control-kubeconfig={self.kubeconfig}",
            f"--target-kubeconfig={self.kubeconfig}",
            f"--namespace={NAMESPACE}",
            "--address=127.0.0.1",
            f"--port={self.metrics_port}",
            f"--webhook-port={self.port}",
            f"--webhook-cert-dir={self.folder}",
            "--max-replicas=500",
        ]  # fmt: skip
        process = ServerProcess("mcm", command, self.folder / "mcm.log")
        try:
            yield process
            assert not process.ended, process.tail()
        finally:
            process.terminate()

    def _kubeconfig(self) -> Document:
        cluster = {
            "server": self.plane.url,
            "certificate-authority": str(self.folder / "ca.crt"),
        }
        context = {"cluster": "c", "user": "u", "namespace": NAMESPACE}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "x",
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": self.plane.token}}],
            "contexts": [{"name": "x", "context": context}],
        }


@pytest.fixture
async def field(control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Field]:
    field = Field(control_plane, tmp_path)
    try:
        await field.admin.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        for name in ("machine-controller-manager", "machine-controller"):
            await field.admin.create(LEASES, _lease_of_another(name))
        yield field
    finally:
        await field.admin.send("DELETE", f"{CONFIGURATIONS}/{NAME}")
        await field.admin.aclose()


async def until(is_so: Callable[[], Awaitable[bool]], what: str, process: ServerProcess) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + WITHIN
    while not await is_so():
        assert not process.ended, process.tail()
        assert clock.monotonic() < deadline, f"not within {WITHIN:.0f} s: {what}"
        await clock.sleep(0.2)


async def test_the_api_server_refuses_what_the_webhook_refuses(field: Field) -> None:
    first, second = trustme.CA(), trustme.CA()
    pools, invalid = field.admin.deployments, machine_deployment("invalid", replicas=1000)
    await field.admin.create(pools(), invalid)  # before anybody is asked
    field.issue(first)
    async with field.manager() as process:
        await field.ask_us(first)

        async def refuses() -> bool:
            bad = machine_deployment("bad", replicas=501)
            code, said = await field.kubectl("create", "--dry-run=server", "-f", "-", stdin=bad)
            return code != 0 and 'The MachineDeployment "bad" is invalid: spec.replicas' in said

        await until(refuses, "the API server asks the webhook", process)

        unknown = {"type": "BlueGreen"}
        code, said = await field.apply(machine_deployment("bad", strategy=unknown))
        assert code != 0
        assert 'spec.strategy.type: Invalid value "BlueGreen"' in said, said
        code, said = await field.apply(machine_deployment("good"))
        assert (code, "good created" in said) == (0, True), said
        code, said = await field.apply(machine_deployment("good", progressDeadlineSeconds=0))
        assert (code, "Warning: spec.progressDeadlineSeconds: 0" in said) == (0, True), said

        code, said = await field.kubectl("scale", "machinedeployment/good", "--replicas=2000000000")
        assert code != 0
        assert "spec.replicas: Invalid value 2000000000: must be at most 500" in said, said
        code, said = await field.kubectl("scale", "machinedeployment/good", "--replicas=4")
        assert code == 0, said
        assert (await field.admin.get(pools("good")))["spec"]["replicas"] == 4

        # What was invalid before may be labelled, mended, deleted; not made worse.
        code, said = await field.kubectl("label", "machinedeployment/invalid", "a=b")
        assert (code, "Warning: spec.replicas" in said) == (0, True), said
        worse = json.dumps({"spec": {"minReadySeconds": -1}})
        code, said = await field.kubectl("patch", "mcd", "invalid", "--type=merge", "-p", worse)
        assert (code != 0, "spec.minReadySeconds" in said, "spec.replicas" in said) == (
            True, True, True,
        ), said  # fmt: skip
        code, said = await field.kubectl("delete", "machinedeployment/invalid")
        assert code == 0, said

        # Nobody stops for another certificate; whoever trusts the old one only is not answered.
        field.issue(second)
        await field.ask_us(second)
        await until(refuses, "the webhook shows the new certificate", process)
        code, said = await field.apply(machine_deployment("good", replicas=3))
        assert code == 0, said
        lease = await field.admin.get(f"{LEASES}/machine-controller-manager")
        assert lease["spec"]["holderIdentity"] == "somebody-else", "it never led"


def _lease_of_another(name: str) -> Document:
    spec = {
        "holderIdentity": "somebody-else",
        "leaseDurationSeconds": 36000,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 1,
    }
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": spec,
    }
