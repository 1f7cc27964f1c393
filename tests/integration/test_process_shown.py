"""What a process shows of itself: metrics by TLS to who may read them, spans, and no secret."""

from __future__ import annotations

import asyncio
import base64
import gzip
import os
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, final

import aiohttp
import orjson
import trustme
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mcm.api.meta import JSONObject
from mcm.client.transport import Request, Response
from mcm.clock import SystemClock
from mcm.http_server import Limits, listening, read_body
from mcm.sandbox import samples
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.cluster import RunningSandbox, SandboxSettings, create_all, sandbox
from tests.unit.endpoints.test_assembly import free_port

CLOCK = SystemClock()
PATIENCE = 100.0
ROTATIONS: Final = "mcm_endpoints_certificate_rotations_total"


@final
class Process:
    """``mcm run`` in a sandbox: its ports, what it logged, and who asks it."""

    def __init__(self, cluster: RunningSandbox, folder: Path) -> None:
        self.cluster = cluster
        self.server: ApiServer = cluster.server
        self.port, self.metrics_port = free_port(), free_port()
        self.log = folder / "mcm.log"
        self.session: aiohttp.ClientSession

    @asynccontextmanager
    async def running(self, *flags: str, **environment: str) -> AsyncIterator[None]:
        """Run while the context lasts, from when it leads until it has ended in order."""
        command = (
            *("-m", "mcm", "run", f"--target-kubeconfig={self.cluster.kubeconfig}"),
            *("--address=127.0.0.1", f"--port={self.port}", f"--metrics-port={self.metrics_port}"),
            *flags,
        )
        with self.log.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, *command), stdout=log, stderr=log, env=os.environ | environment
            )
            try:
                async with aiohttp.ClientSession() as self.session:
                    await self.until(self.leads)
                    yield
                process.terminate()
                async with asyncio.timeout(PATIENCE):
                    assert await process.wait() == 0, self.log.read_text()
            finally:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()

    async def leads(self) -> bool:
        return "leading: " in self.log.read_text()

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not await condition():
                    await CLOCK.sleep(0.1)
        except TimeoutError:
            raise AssertionError(self.log.read_text()[-5000:]) from None

    async def token(self, account: str) -> str:
        path = f"/api/v1/namespaces/default/serviceaccounts/{account}/token"
        request = Request("POST", path, headers={"content-type": "application/json"}, body=b"{}")
        response = await self.server.handle(request)
        assert isinstance(response, Response) and response.status == 201, response
        return str(orjson.loads(response.body)["status"]["token"])

    async def probe(self, path: str) -> int:
        async with self.session.get(f"http://127.0.0.1:{self.port}{path}") as answer:
            return answer.status

    async def page(self, path: str) -> bytes:
        """Return a page of the port of metrics, where it is plain."""
        async with self.session.get(f"http://127.0.0.1:{self.metrics_port}{path}") as answer:
            assert answer.status == 200, await answer.text()
            return await answer.read()


# ---- metrics -------------------------------------------------------------------------------------


@final
class Scraper:
    """Trusts the authorities of the certificate, and asks over a new connection each time."""

    def __init__(self, process: Process, folder: Path) -> None:
        self._process = process
        self._folder = folder
        self.trusted = ssl.create_default_context()

    def certify(self) -> bytes:
        """Write a new pair; return the certificate as a client sees it."""
        authority = trustme.CA()
        authority.configure_trust(self.trusted)
        pair = authority.issue_cert("127.0.0.1")
        (self._folder / "tls.key").write_bytes(pair.private_key_pem.bytes())
        (self._folder / "tls.crt").write_bytes(pair.cert_chain_pems[0].bytes())
        return ssl.PEM_cert_to_DER_cert(pair.cert_chain_pems[0].bytes().decode())

    def tear(self) -> None:
        """Leave the certificate as one that is only half written."""
        path = self._folder / "tls.crt"
        path.write_bytes(path.read_bytes()[:200])

    async def scrape(self, token: str = "", path: str = "/metrics") -> tuple[int, str]:
        url = f"https://127.0.0.1:{self._process.metrics_port}{path}"
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connector = aiohttp.TCPConnector(ssl=self.trusted, force_close=True)
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.get(url, headers=headers) as answer,
        ):
            return answer.status, await answer.text()

    async def shown(self) -> bytes:
        """Return the certificate that a new connection is shown."""
        _, writer = await asyncio.open_connection(
            "127.0.0.1", self._process.metrics_port, ssl=self.trusted
        )
        try:
            tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
            return tls.getpeercert(binary_form=True) or b""
        finally:
            writer.close()

    def looked(self, token: str, result: str, times: int) -> Callable[[], Awaitable[bool]]:
        """Whether the files were looked at so often, with such a result."""

        async def counted() -> bool:
            text = (await self.scrape(token))[1]
            sample = f'{ROTATIONS}{{result="{result}"}} '
            found = [line for line in text.splitlines() if line.startswith(sample)]
            return bool(found) and float(found[0].removeprefix(sample)) >= times

        return counted


def reader_of_metrics() -> Iterator[JSONObject]:
    """Two accounts, the first of which may read metrics."""
    for name in ("prometheus", "curious"):
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named(name)}
    group = "rbac.authorization.k8s.io"
    yield {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "metrics"},
        "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
    }
    yield {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "metrics"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "metrics"},
        "subjects": [{"kind": "ServiceAccount", "name": "prometheus", "namespace": "default"}],
    }


def _named(name: str) -> JSONObject:
    return {"name": name, "namespace": "default"}


async def test_metrics_are_scraped_by_tls_with_the_token_of_an_account(tmp_path: Path) -> None:
    settings = SandboxSettings(tmp_path / "kubeconfig", port=0, authorization="RBAC")
    async with sandbox(settings) as cluster:
        await create_all(cluster.server, list(reader_of_metrics()))
        process = Process(cluster, tmp_path)
        scraper = Scraper(process, tmp_path)
        first = scraper.certify()
        async with process.running("--metrics-authorization", f"--metrics-tls-cert-dir={tmp_path}"):
            token = await process.token("prometheus")
            status, text = await scraper.scrape(token)
            assert status == 200 and "mcm_machine_controller_frozen" in text
            assert (await scraper.scrape())[0] == 401
            assert (await scraper.scrape("a.b.c"))[0] == 401
            assert (await scraper.scrape(await process.token("curious")))[0] == 403
            assert (await scraper.scrape(token, "/configz"))[0] == 403
            assert [await process.probe(path) for path in ("/healthz", "/readyz")] == [200, 200]
            assert await process.probe("/metrics") == 404

            scraper.tear()
            await process.until(scraper.looked(token, "refused", 1))
            assert await scraper.shown() == first
            second = scraper.certify()
            await process.until(scraper.looked(token, "taken", 1))
            assert await scraper.shown() == second != first
        log = process.log.read_text()
        assert log.count("/metrics keeps the certificate in use: ") == 1
        assert token not in log and "Traceback" not in log


# ---- traces and secrets --------------------------------------------------------------------------

PLANTED: Final = {
    "user data": "planted-user-data-1f9a",
    "credentials": "planted-credentials-77c2",
    "provider spec": "planted-provider-spec-5b3d",
    "header of the backend": "planted-backend-header-04e8",
}


@final
class Sink:
    """A tracing backend that keeps each payload."""

    def __init__(self) -> None:
        self.payloads: list[bytes] = []

    async def take(self, request: web.BaseRequest) -> web.Response:
        assert request.headers["planted"] == PLANTED["header of the backend"]
        body = await read_body(request, Limits())
        gzipped = request.headers.get("content-encoding") == "gzip"
        self.payloads.append(gzip.decompress(body) if gzipped else body)
        return web.Response()

    def spans(self) -> set[str]:
        """Return the names of all spans."""
        return {
            span.name
            for payload in self.payloads
            for resource in ExportTraceServiceRequest.FromString(payload).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }


def planted_fleet() -> Iterator[JSONObject]:
    """The sample fleet, quick and of one machine, with secrets where users have them."""
    for found in samples.load():
        if found["kind"] == "Secret":
            user_data = f"echo {PLANTED['user data']} <<BOOTSTRAP_TOKEN>>"
            yield found | {
                "stringData": {"userData": user_data, "accessKey": PLANTED["credentials"]}
            }
        elif found["kind"] == "MachineClass":
            latencies = dict.fromkeys(
                ("createLatency", "bootLatency", "joinLatency", "deleteLatency"), "100ms"
            )
            labels = {"password": PLANTED["provider spec"]}
            yield found | {"providerSpec": latencies | {"tags": {"vm": labels}}}
        else:
            spec = found["spec"]
            assert isinstance(spec, dict)
            yield found | {"spec": spec | {"replicas": 1}}


def phases(server: ApiServer) -> dict[str, str]:
    """Return the phase of each machine by its name."""
    found: dict[str, str] = {}
    for machine in server.objects("machine.sapcloud.io", "machines"):
        meta, status = machine["metadata"], machine.get("status") or {}
        assert isinstance(meta, dict) and isinstance(status, dict)
        current = status.get("currentStatus") or {}
        assert isinstance(current, dict)
        found[str(meta["name"])] = str(current.get("phase", ""))
    return found


def secrets_of(process: Process, tokens: set[str]) -> dict[str, bytes]:
    """Return what must be found nowhere, by what it is."""
    kubeconfig = process.cluster.kubeconfig.read_text()
    login = kubeconfig.split("token: ", 1)[1].split()[0]
    secret = PLANTED | {"login": login} | {f"bootstrap token {n}": t for n, t in enumerate(tokens)}
    encoded = {
        f"{what}, base64": base64.b64encode(s.encode()).decode() for what, s in secret.items()
    }
    return {what: text.encode() for what, text in (secret | encoded).items()}


def bootstrap_tokens(server: ApiServer) -> set[str]:
    found: set[str] = set()
    for secret in server.objects("", "secrets"):
        data = secret.get("data") or {}
        assert isinstance(data, dict)
        if "token-secret" in data:
            found.add(base64.b64decode(str(data["token-secret"])).decode())
    return found


async def test_spans_of_a_machines_life_arrive_and_no_secret_is_shown_anywhere(
    tmp_path: Path,
) -> None:
    sink = Sink()
    async with (
        listening(sink.take, host="127.0.0.1", port=0, clock=CLOCK) as port,
        sandbox(SandboxSettings(tmp_path / "kubeconfig", port=0)) as cluster,
    ):
        process = Process(cluster, tmp_path)
        server = cluster.server
        tokens: set[str] = set()

        async def runs() -> bool:
            tokens.update(bootstrap_tokens(server))
            return list(phases(server).values()) == ["Running"]

        async def drained() -> bool:
            await runs()
            return "drain pass" in sink.spans() and "delete_machine" in sink.spans()

        async with process.running(
            *("--v=10", "--profiling", "--contention-profiling"),
            f"--otlp-endpoint=http://127.0.0.1:{port}",
            OTEL_BSP_SCHEDULE_DELAY="100",
            OTEL_EXPORTER_OTLP_HEADERS=f"planted={PLANTED['header of the backend']}",
        ):
            await create_all(server, list(planted_fleet()))
            await process.until(runs)
            (name,) = phases(server)
            path = f"/apis/machine.sapcloud.io/v1alpha1/namespaces/default/machines/{name}"
            await server.handle(Request("DELETE", path))
            await process.until(drained)
            pages = {
                path: await process.page(path)
                for path in (
                    *("/metrics", "/configz", "/debug/flags/v", "/debug/tasks", "/debug/threads"),
                    "/debug/pprof/goroutine?format=collapsed",
                    "/debug/pprof/block?format=collapsed",
                    "/debug/pprof/heap?seconds=0.1&format=collapsed",
                )
            }
        assert {"reconcile machine", "create_machine", "PATCH machines.machine.sapcloud.io"} <= (
            sink.spans()
        )
        shown = pages | {
            "the log": process.log.read_bytes(),
            "the spans": b"".join(sink.payloads),
        }
        assert b"DEBUG" in shown["the log"] and tokens
        assert all(name.encode() in shown[where] for where in ("the log", "the spans"))
        secrets = secrets_of(process, tokens)
        assert {
            (what, where)
            for what, s in secrets.items()
            for where, text in shown.items()
            if s in text
        } == set()
