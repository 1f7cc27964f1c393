"""Asks an API server as fast as it answers: ``python -m bench.clusters.generator KUBECONFIG NS``.

The requests are bytes that were made beforehand, sent by threads that each own a connection and
look at no more of an answer than where it ends. So the generator takes a small part of a core (it
tells how much), and what is measured is the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import ssl
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final
from urllib.parse import urlsplit

import orjson

from bench.instant import manifests
from mcm.api.core import NODES, SECRETS
from mcm.api.machine import MACHINES
from mcm.client import kubeconfig
from mcm.client.connection import ConnectionSpec
from mcm.client.credentials import impersonation_headers
from mcm.client.errors import ConfigurationError
from mcm.client.http import credentials_provider
from mcm.client.tls import build_context, read_material
from mcm.clock import SystemClock

_JSON, _MERGE = "application/json", "application/merge-patch+json"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_LARGEST_READ = 256 * 1024
_PATIENCE = 30.0


class ServerRefused(Exception):
    """A request failed; the text holds it and the answer."""


@final
@dataclass(frozen=True, slots=True)
class Target:
    """Where and how to ask: ``headers`` go with every request."""

    host: str
    port: int
    context: ssl.SSLContext | None
    server_name: str
    headers: str

    def request(self, method: str, path: str, body: object = None, media: str = _JSON) -> bytes:
        content = b"" if body is None else orjson.dumps(body)
        head = f"{method} {path} HTTP/1.1\r\n{self.headers}"
        if content:
            head += f"Content-Type: {media}\r\nContent-Length: {len(content)}\r\n"
        return f"{head}\r\n".encode() + content


@final
class Connection:
    """One connection, one request at a time."""

    def __init__(self, target: Target) -> None:
        plain = socket.create_connection((target.host, target.port), timeout=_PATIENCE)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket: socket.socket = plain
        if target.context is not None:
            name = target.server_name or target.host
            self._socket = target.context.wrap_socket(plain, server_hostname=name)

    def ask(self, request: bytes) -> None:
        """Send, and read the whole answer. Raises :class:`ServerRefused`."""
        self._socket.sendall(request)
        answer = self._socket.recv(_LARGEST_READ)
        while not is_whole(answer):
            more = self._socket.recv(_LARGEST_READ)
            if not more:
                raise ServerRefused(f"closed in an answer to {request[:200]!r}")
            answer += more
        if answer[9:10] != b"2":
            raise ServerRefused(f"{request[:200]!r} was answered with {answer[:600]!r}")

    def close(self) -> None:
        self._socket.close()


def is_whole(answer: bytes) -> bool:
    head, end, body = answer.partition(b"\r\n\r\n")
    if not end:
        return False
    length = _LENGTH.search(head)
    if length is not None:
        return len(body) >= int(length[1])
    # A JSON text has no line breaks within strings: this can only be the last chunk.
    return _CHUNKED.search(head) is not None and body.endswith(b"0\r\n\r\n")


def steps(target: Target, namespace: str, count: int) -> Iterator[tuple[str, Sequence[bytes]]]:
    """Yield what is measured, in this order: its name, and the requests.

    Each object is asked for once in each step, so that nothing but the server's own work is shared.
    A machine is patched as in its life: first while it is small, and once it bears what its Node
    tells; steps of one name count together.
    """
    names = [f"raw-{namespace[-6:]}-{number:05}" for number in range(count)]
    fewer = names[: max(1, count // 2)]
    machines, nodes, secrets = MACHINES.path(namespace), NODES.path(), SECRETS.path(namespace)
    events = f"/api/v1/namespaces/{namespace}/events"
    marked, again = (
        {"metadata": {"annotations": {"bench.machine.sapcloud.io/turn": turn}}} for turn in "12"
    )

    def each(
        method: str, of: str, chosen: Iterable[str], body: object = None, sub: str = ""
    ) -> list[bytes]:
        return [target.request(method, f"{of}/{name}{sub}", body, _MERGE) for name in chosen]

    def made(of: str, chosen: Iterable[str], body: Callable[[str], object]) -> list[bytes]:
        return [target.request("POST", of, body(name)) for name in chosen]

    yield "POST machines", made(machines, names, lambda n: manifests.machine(n, namespace))
    yield "PATCH machines", each("PATCH", machines, names, marked)
    for status in (manifests.pending_machine("raw"), manifests.running_machine("raw")):
        yield "PATCH machines/status", each("PATCH", machines, names, status, "/status")
    yield "PATCH machines", each("PATCH", machines, names, again)
    yield "GET machines", each("GET", machines, names)
    yield "DELETE machines", each("DELETE", machines, names)
    yield "POST nodes", made(nodes, fewer, lambda n: manifests.node(n, f"raw:///{n}", namespace))
    yield "PATCH nodes", each("PATCH", nodes, fewer, marked)
    yield "DELETE nodes", each("DELETE", nodes, fewer)
    yield (
        "POST secrets",
        made(secrets, fewer, lambda n: manifests.named(manifests.secret(bootstrap_tokens=True), n)),
    )
    yield "DELETE secrets", each("DELETE", secrets, fewer)
    yield "POST events", made(events, fewer, lambda n: manifests.event(n, namespace))
    yield "PATCH events", each("PATCH", events, fewer, {"count": 2})
    yield "DELETE events", each("DELETE", events, fewer)


def seconds_for(connections: Sequence[Connection], requests: Sequence[bytes]) -> float:
    """Return how long it took until all requests were answered."""
    waiting = iter(requests)
    taking = threading.Lock()
    failures: list[Exception] = []

    def work(connection: Connection) -> None:
        while not failures:
            with taking:
                request = next(waiting, None)
            if request is None:
                return
            try:
                connection.ask(request)
            except (OSError, ServerRefused) as error:
                failures.append(error)

    threads = [threading.Thread(target=work, args=(each,)) for each in connections]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise ServerRefused(str(failures[0]))
    return time.perf_counter() - began


async def target_of(spec: ConnectionSpec) -> Target:
    """Log in as ``spec`` says. Raises ConfigurationError for a way of reaching it that is too
    indirect to measure by."""
    if spec.proxy:
        raise ConfigurationError("raw rates cannot be measured through a proxy")
    url = urlsplit(spec.server)
    if url.path.strip("/"):
        raise ConfigurationError("raw rates cannot be measured at a server behind a path")
    provider = credentials_provider(spec.credentials, clock=SystemClock(), environ=dict(os.environ))
    credential = await provider.current()
    given = [*credential.headers, *impersonation_headers(spec.impersonation)]
    lines = [("Host", url.netloc), ("Accept", _JSON), ("User-Agent", "bench-generator"), *given]
    secure = url.scheme == "https"
    return Target(
        host=url.hostname or "",
        port=url.port or (443 if secure else 80),
        context=build_context(read_material(spec.tls)) if secure else None,
        server_name=spec.tls_server_name,
        headers="".join(f"{name}: {value}\r\n" for name, value in lines),
    )


def measure(target: Target, namespace: str, *, count: int, connections: int) -> dict[str, object]:
    """Carry out all steps; return rates (requests a second) and what the generator used."""
    opened = [Connection(target) for _ in range(connections)]
    seconds: defaultdict[str, float] = defaultdict(float)
    asked: Counter[str] = Counter()
    cpu = 0.0
    try:
        for name, requests in steps(target, namespace, count):
            before = time.process_time()
            seconds[name] += seconds_for(opened, requests)
            cpu += time.process_time() - before
            asked[name] += len(requests)
    finally:
        for connection in opened:
            connection.close()
    return {
        "rates": {name: round(count / seconds[name], 1) for name, count in asked.items()},
        "connections": connections,
        "requests": asked.total(),
        "seconds": round(sum(seconds.values()), 3),
        "generator_cpu_seconds": round(cpu, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kubeconfig")
    parser.add_argument("namespace", help="one that exists; Nodes are made beside it")
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--connections", type=int, default=DEFAULT_CONNECTIONS)
    given = parser.parse_args()
    try:
        target = asyncio.run(target_of(kubeconfig.load(given.kubeconfig)))
        found = measure(target, given.namespace, count=given.objects, connections=given.connections)
    except (ConfigurationError, ServerRefused, OSError) as error:
        sys.exit(f"raw rates: {error}")
    print(json.dumps(found))


DEFAULT_CONNECTIONS: Final = 32

if __name__ == "__main__":
    main()
