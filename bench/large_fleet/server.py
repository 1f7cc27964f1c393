"""A large fleet's API server in a process of its own, so that what it costs is not counted.

``python -m bench.large_fleet.server FOLDER machines=10000 pods=100000`` writes a kubeconfig into
``FOLDER``, says when it serves, and then does what the lines of its standard input say, until that
ends; each is answered by one line. Both are JSON.
"""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, final

import orjson

from bench.large_fleet.copies import Size, settled, stored
from bench.large_fleet.heartbeats import Heartbeats
from bench.large_fleet.pool import NAMESPACE, Pool
from mcm.api.machine import MACHINE_DEPLOYMENTS
from mcm.api.meta import JSONObject
from mcm.client.transport import Request
from mcm.clock import SystemClock
from mcm.sandbox.apiserver.front.certificates import Certificates
from mcm.sandbox.apiserver.front.http import serve_https
from mcm.sandbox.apiserver.front.kubeconfig import write_kubeconfig
from mcm.sandbox.apiserver.server import ApiServer, ServerSettings
from mcm.sandbox.apiserver.store import Change

KUBECONFIG: Final = "kubeconfig"
_WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_NO_ACT: Final = frozenset({"leases", "events", "tokenreviews", "subjectaccessreviews"})
"""Writes to these are no act of a controller."""


@final
class FleetServer:
    """What the lines of the standard input ask for. Times are of the machine's monotonic clock,
    which all its processes share."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._heartbeats = Heartbeats(server)
        self._acts: list[tuple[float, str]] = []
        self._holders: list[tuple[float, str, str]] = []
        server.witnesses.append(self._note)
        server.store.subscribe(self._note_lease, "leases.coordination.k8s.io")
        self.commands: Mapping[str, Callable[[JSONObject], JSONObject]] = {
            "requests": self._requests,
            "heartbeats": self._beat,
            "acts": self._told_acts,
            "scale": self._scale,
        }

    def _note(self, request: Request, status: int) -> None:
        acted = request.method in _WRITES and status < 300
        if acted and _NO_ACT.isdisjoint(request.path.split("/")):
            self._acts.append((time.monotonic(), f"{request.method} {request.path}"))

    def _note_lease(self, change: Change) -> None:
        def holder(body: JSONObject | None) -> str:
            spec = body.get("spec") if body else None
            return str(spec.get("holderIdentity") or "") if isinstance(spec, dict) else ""

        now = holder(change.stored.body)
        if now != holder(change.previous.body if change.previous else None):
            self._holders.append((time.monotonic(), change.stored.name, now))

    def _requests(self, _: JSONObject) -> JSONObject:
        """How many requests were answered, by agent, verb and resource, and Nodes reported."""
        counts: JSONObject = {}
        for kind, number in self._server.requests.snapshot().items():
            key = f"{kind.agent} {kind.verb} {kind.resource}"
            before = counts.get(key, 0)
            counts[key] = number + (before if isinstance(before, int) else 0)
        return {"requests": counts, "heartbeats": self._heartbeats.sent}

    def _beat(self, command: JSONObject) -> JSONObject:
        """Let every Node's kubelet report once in so many seconds; 0: no more."""
        period = command.get("every", 0)
        self._heartbeats.set_period(float(period) if isinstance(period, int | float) else 0.0)
        return {}

    def _told_acts(self, _: JSONObject) -> JSONObject:
        """The writes to anything but leases and events, and who came to hold which lease, since
        the last time."""
        acts, self._acts = self._acts, []
        holders, self._holders = self._holders, []
        return {"acts": [list(act) for act in acts], "holders": [list(one) for one in holders]}

    def _scale(self, command: JSONObject) -> JSONObject:
        """Ask one deployment for more machines."""
        storage = f"{MACHINE_DEPLOYMENTS.plural}.{MACHINE_DEPLOYMENTS.group}"
        name, more = command["deployment"], command["by"]
        live = self._server.store.collection(storage).get(f"{NAMESPACE}/{name}")
        assert live is not None
        assert isinstance(more, int)
        body = orjson.loads(live.encoded)
        body["spec"]["replicas"] += more
        body["metadata"]["generation"] += 1
        self._server.store.replace(storage, live, body)
        return {"at": time.monotonic(), "replicas": body["spec"]["replicas"]}


async def _serve(folder: Path, size: Size, pool: Pool) -> None:
    server = ApiServer(
        clock=SystemClock(),
        random=random.Random(),
        settings=ServerSettings(bookmark_period=60.0),
    )
    await stored(server, size, pool)
    fleet = FleetServer(server)
    gc.collect()
    gc.freeze()
    async with serve_https(server, certificates=Certificates.load_or_create(folder)) as front:
        write_kubeconfig(folder / KUBECONFIG, front)
        _say({"objects": sum(len(found) for found in server.store.collections())})
        while line := await asyncio.to_thread(sys.stdin.buffer.readline):
            command = orjson.loads(line)
            _say(fleet.commands[command["do"]](command))


def _say(answer: JSONObject) -> None:
    sys.stdout.buffer.write(orjson.dumps(answer) + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    folder, *sizes = sys.argv[1:]
    given = {name: int(number) for name, _, number in (s.partition("=") for s in sizes)}
    size = Size(**given)
    pool = settled(size)
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(Path(folder), size, pool))


if __name__ == "__main__":
    main()
