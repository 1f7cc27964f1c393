"""A real etcd and kube-apiserver on the loopback interface, thrown away afterwards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import final

import aiohttp
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from mcm.client.connection import ConnectionSpec, StaticToken, TLSSpec
from mcm.client.errors import TransportError
from mcm.client.http import HTTPTransport
from mcm.client.transport import Request
from mcm.clock import SystemClock
from mcm.sandbox.apiserver.front.certificates import Certificates
from tests.envtest.processes import ServerProcess, free_ports

ADMIN = "admin"
MANAGER = "system:serviceaccount:default:mcm"
"""The user the manager runs as: nobody grants it anything but the chart's roles."""
CLOUD_AND_KUBELETS = "simulated-cloud"
"""The user that boots VMs and plays their kubelets, with the chart's roles for that."""
STRANGER = "stranger"
"""A user nobody granted anything."""
UNCACHED = "configmaps"
"""Watched straight from etcd, so that a compaction shows at once."""

_GROUPS = {ADMIN: "system:masters"}
_READY_WITHIN = 60.0
_TRIES = 3


class StartFailed(Exception):
    """A server did not come up; the text holds the end of its log."""


@final
class ControlPlane:
    """``folder`` gets data, certificates and logs. Users log in by token, RBAC decides.

    Further flags come after those here, and so win; ``groups`` has one for a user who is to have
    another than the rest; ``ready_within`` is the seconds that each process may take to start.
    """

    def __init__(
        self,
        assets: Path,
        folder: Path,
        *,
        apiserver_flags: Sequence[str] = (),
        etcd_flags: Sequence[str] = (),
        groups: Mapping[str, str] | None = None,
        ready_within: float = _READY_WITHIN,
    ) -> None:
        self.logs = folder / "logs"
        self._assets = assets
        self._folder = folder
        self._apiserver_flags = apiserver_flags
        self._etcd_flags = etcd_flags
        self._ready_within = ready_within
        self._groups = {**_GROUPS, **(groups or {})}
        self._certificates = Certificates.load_or_create(folder / "certificates")
        self._etcd: ServerProcess | None = None
        self._apiserver: ServerProcess | None = None
        self._etcd_port = self._peer_port = self.port = 0

    # ---- how to reach it ------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def ca(self) -> bytes:
        return self._certificates.ca

    @property
    def token(self) -> str:
        return token_of(ADMIN)

    def spec(self, user: str = ADMIN) -> ConnectionSpec:
        return ConnectionSpec(
            self.url,
            tls=TLSSpec(ca_data=self.ca),
            credentials=StaticToken(token_of(user)),
            namespace="default",
        )

    @property
    def pids(self) -> tuple[int, ...]:
        """Return those of the processes that were started."""
        return tuple(p.pid for p in (self._etcd, self._apiserver) if p is not None)

    # ---- life -----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Return once it is ready. Raises StartFailed."""
        self.logs.mkdir(parents=True, exist_ok=True)
        self._write_users()
        self._write_account_key()
        for attempt in range(1, _TRIES + 1):
            self._etcd_port, self._peer_port, self.port = free_ports(3)
            try:
                await self._start_etcd()
                await self.start_apiserver()
                return
            except StartFailed as error:
                self.stop()
                # Somebody else may have taken a port between our look and the servers'.
                if "address already in use" not in str(error) or attempt == _TRIES:
                    raise

    def stop(self) -> None:
        for process in (self._apiserver, self._etcd):
            if process is not None:
                process.terminate()

    async def start_apiserver(self) -> None:
        """Start it, or start it again after :meth:`kill_apiserver`; return once it is ready."""
        self._apiserver = ServerProcess(
            "kube-apiserver", self._apiserver_command(), self.logs / "kube-apiserver.log"
        )
        await _until_ready(self._apiserver, self._apiserver_is_ready, self._ready_within)

    def kill_apiserver(self) -> None:
        """End it as a crash does."""
        assert self._apiserver is not None
        self._apiserver.kill()

    async def compact(self) -> None:
        """Make etcd forget every state but the current one."""
        async with aiohttp.ClientSession(self._etcd_url, raise_for_status=True) as session:
            # Any key will do: the answer's header tells the store's revision.
            async with session.post("/v3/kv/range", json={"key": "AA=="}) as answer:
                revision = (await answer.json())["header"]["revision"]
            body = {"revision": revision, "physical": True}
            async with session.post("/v3/kv/compaction", json=body) as answer:
                await answer.read()

    def tails(self) -> str:
        running = (self._etcd, self._apiserver)
        return "\n".join(f"--- {p.name} ({p.log})\n{p.tail()}" for p in running if p is not None)

    # ---- etcd -----------------------------------------------------------------------------------

    @property
    def _etcd_url(self) -> str:
        return f"http://127.0.0.1:{self._etcd_port}"

    async def _start_etcd(self) -> None:
        peer = f"http://127.0.0.1:{self._peer_port}"
        command = [
            str(self._assets / "etcd"),
            "--name=envtest",
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={self._etcd_url}",
            f"--advertise-client-urls={self._etcd_url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=envtest={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
            *self._etcd_flags,
        ]
        self._etcd = ServerProcess("etcd", command, self.logs / "etcd.log")
        await _until_ready(self._etcd, self._etcd_is_healthy, self._ready_within)

    async def _etcd_is_healthy(self) -> bool:
        async with aiohttp.ClientSession() as session:
            try:
                async with session.get(f"{self._etcd_url}/health") as answer:
                    return answer.status == 200
            except aiohttp.ClientConnectionError:
                return False

    # ---- kube-apiserver -------------------------------------------------------------------------

    def _apiserver_command(self) -> list[str]:
        certificates = self._folder / "certificates"
        return [
            str(self._assets / "kube-apiserver"),
            f"--etcd-servers={self._etcd_url}",
            "--etcd-compaction-interval=0",  # only compact() compacts
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--cert-dir={self._folder}",
            f"--tls-cert-file={certificates / 'tls.crt'}",
            f"--tls-private-key-file={certificates / 'tls.key'}",
            f"--token-auth-file={self._users}",
            "--authorization-mode=RBAC",
            "--anonymous-auth=false",
            f"--service-account-key-file={self._account_key}",
            f"--service-account-signing-key-file={self._account_key}",
            "--service-account-issuer=https://envtest",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            # Nobody makes service accounts, and pods here need none.
            "--disable-admission-plugins=ServiceAccount",
            # Some clusters guard references that block a deletion: the chart must do there, too.
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
            f"--watch-cache-sizes={UNCACHED}#0",
            "--profiling=false",
            *self._apiserver_flags,
        ]

    async def _apiserver_is_ready(self) -> bool:
        transport = HTTPTransport(self.spec(), clock=SystemClock())
        try:
            answer = await transport.request(Request("GET", "/readyz", timeout=5.0))
            return answer.status == 200
        except TransportError:
            return False
        finally:
            await transport.aclose()

    @property
    def _users(self) -> Path:
        return self._folder / "users.csv"

    @property
    def _account_key(self) -> Path:
        return self._folder / "service-accounts.key"

    def _write_users(self) -> None:
        users = (ADMIN, MANAGER, CLOUD_AND_KUBELETS, STRANGER)
        groups = {user: json.dumps(self._groups.get(user, "people")) for user in users}
        rows = (f"{token_of(user)},{user},{user},{groups[user]}\n" for user in users)
        self._users.write_text("".join(rows))

    def _write_account_key(self) -> None:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        self._account_key.write_bytes(pem)


async def _until_ready(
    process: ServerProcess, is_ready: Callable[[], Awaitable[bool]], within: float
) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + within
    while not await is_ready():
        if process.ended:
            raise StartFailed(f"{process.name} ended by itself:\n{process.tail()}")
        if clock.monotonic() > deadline:
            raise StartFailed(
                f"{process.name} was not ready within {within:.0f} s:\n{process.tail()}"
            )
        await clock.sleep(0.1)


def token_of(user: str) -> str:
    """Tokens need not be secret: the server lives on the loopback interface for minutes."""
    return f"token-of-{user.replace(':', '-')}"


def run(coroutine: Awaitable[None]) -> None:
    """Run to the end on a loop of its own, leaving the thread's current loop alone."""

    async def whole() -> None:
        await coroutine

    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(whole())
