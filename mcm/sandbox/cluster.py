"""A whole sandbox cluster: API server, HTTP front, world and kubeconfig, as one context manager."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from mcm.api.crds import crd_manifests
from mcm.api.meta import JSONObject
from mcm.client.errors import AlreadyExists, ConfigurationError, error_from_status
from mcm.client.transport import Request, Response
from mcm.clock import Clock, SystemClock
from mcm.providers.simulated import virtual_machine
from mcm.sandbox import samples
from mcm.sandbox.apiserver.authorization.authorizer import Authorization
from mcm.sandbox.apiserver.front.http import Certificates, serve_https
from mcm.sandbox.apiserver.front.kubeconfig import check_destination, write_kubeconfig
from mcm.sandbox.apiserver.front.webhook_calls import call_webhook
from mcm.sandbox.apiserver.server import ApiServer, ServerSettings
from mcm.sandbox.world.storage.classes import class_manifests
from mcm.sandbox.world.world import World

logger = logging.getLogger(__name__)

CONTROL_PLANE = "control-plane"
"""The Node, and the VM under it, that a sandbox has on request."""


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """``port`` 0 takes a free one; ``node_grace`` and ``heartbeat_interval`` are in seconds.

    ``control_plane_node``: a Node that no machine stands for, with room for some pods.
    """

    kubeconfig: Path
    port: int = 7443
    samples: bool = False
    node_grace: float = 20.0
    heartbeat_interval: float = 5.0
    authorization: Authorization = "AlwaysAllow"
    control_plane_node: bool = False


@dataclass(frozen=True, slots=True)
class RunningSandbox:
    server: ApiServer
    url: str
    kubeconfig: Path


@asynccontextmanager
async def sandbox(
    settings: SandboxSettings, *, clock: Clock | None = None
) -> AsyncIterator[RunningSandbox]:
    """Run a cluster while the context lasts: CRDs applied, kubeconfig written, kubelets at work.

    Raises ConfigurationError if the port or the kubeconfig's folder cannot be used.
    """
    check_destination(settings.kubeconfig)
    clock = clock or SystemClock()
    server = ApiServer(
        clock=clock,
        random=random.Random(),
        settings=ServerSettings(authorization=settings.authorization),
    )
    server.asking.caller = call_webhook
    await create_all(server, first_objects())
    certificates = Certificates.load_or_create(_state_dir(settings))
    async with serve_https(server, port=settings.port, certificates=certificates) as front:
        write_kubeconfig(settings.kubeconfig, front)
        world = World(
            server,
            clock=clock,
            randomness=random.Random(),
            node_grace=settings.node_grace,
            heartbeat_interval=settings.heartbeat_interval,
            root_ca=front.ca.decode(),
        )
        life = asyncio.create_task(world.run())
        try:
            if settings.control_plane_node:
                await create_all(server, [control_plane_vm()])
            if settings.samples:
                await create_all(server, [*samples.load(), *samples.load_workload()])
            yield RunningSandbox(server, front.url, settings.kubeconfig)
        finally:
            life.cancel()
            await asyncio.wait({life})


async def run_sandbox(settings: SandboxSettings, stop: asyncio.Event) -> None:
    """Run a sandbox by itself until ``stop``."""
    async with sandbox(settings) as cluster:
        logger.info("sandbox cluster at %s; try: %s", cluster.url, kubectl_hint(cluster.kubeconfig))
        await stop.wait()


def kubectl_hint(kubeconfig: Path) -> str:
    return f"kubectl --kubeconfig {kubeconfig} get machines,nodes"


def first_objects() -> list[JSONObject]:
    """Return what every sandbox begins with: the kinds of machines, and classes of storage."""
    return [*crd_manifests(), virtual_machine.crd_manifest(), *class_manifests()]


def control_plane_vm() -> JSONObject:
    """Return a VM of no machine and no class, whose Node is there for pods of the cluster itself.

    It is not tainted, as in a cluster of a single node: else nothing would run on it.
    """
    return {
        "apiVersion": f"{virtual_machine.GROUP}/{virtual_machine.VERSION}",
        "kind": virtual_machine.VIRTUAL_MACHINES.kind,
        "metadata": {"name": CONTROL_PLANE, "namespace": "default"},
        "spec": {
            "nodeName": CONTROL_PLANE,
            "capacity": {"cpu": "4", "memory": "16Gi"},
            "nodeLabels": {"node-role.kubernetes.io/control-plane": ""},
        },
    }


async def create_all(server: ApiServer, manifests: Iterable[JSONObject]) -> None:
    """Create objects, leaving those that exist as they are."""
    for manifest in manifests:
        request = Request(
            "POST",
            server.registry.collection_path(manifest),
            headers={"content-type": "application/json", "user-agent": "sandbox-setup"},
            body=orjson.dumps(manifest),
        )
        response = await server.handle(request)
        if not isinstance(response, Response) or response.status < 300:
            continue
        error = error_from_status(response.status, response.body)
        if not isinstance(error, AlreadyExists):
            raise error


def _state_dir(settings: SandboxSettings) -> Path:
    """The CA outlives a run, so that a kubeconfig copied elsewhere stays good."""
    folder = settings.kubeconfig.resolve().parent / "sandbox"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigurationError(
            f"--kubeconfig: cannot make the folder {folder}: {error.strerror}"
        ) from error
    return folder
