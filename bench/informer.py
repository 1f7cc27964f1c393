"""Events a CPU-second from bytes to a work queue, and bytes a cached Machine.

What is measured is the whole way: chunks of a watch stream as the network brings them, lines,
typed objects, the store with the indexes controllers use, and one handler that enqueues a key.
Nothing is stubbed but the socket. Usage: ``python -m bench.informer [--machines N] [--json]``.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import TypeVar

import orjson

from mcm.api import codec
from mcm.api.machine import MACHINES, Machine
from mcm.api.meta import JSONObject, KubeObject, Resource
from mcm.client.client import ListPage
from mcm.client.transport import StreamResponse
from mcm.clock import SystemClock
from mcm.informers import Change, Informer
from mcm.workqueue.queue import WorkQueue

S = TypeVar("S", bound=KubeObject)

_CHUNK = 64 * 1024
_NAMESPACE = "shoot--project--cluster"
_TIME = "2026-01-01T10:00:00Z"
_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


@dataclass(frozen=True, slots=True)
class Result:
    machines: int
    bytes_per_machine_json: int
    events: int
    events_per_cpu_second: int
    list_objects_per_cpu_second: int
    bytes_per_cached_machine: int
    bytes_per_cached_machine_after_updates: int


def machine(number: int, *, version: int, phase: str = "Running") -> JSONObject:
    """A machine as a server with field management sends it: about 3 kB."""
    name = f"shoot--project--cluster-worker-z{number % 3}-6f9c8-{number:05d}"
    return {
        "apiVersion": MACHINES.api_version,
        "kind": MACHINES.kind,
        "metadata": _metadata(number, name, version),
        "spec": {
            "class": {
                "apiGroup": MACHINES.group,
                "kind": "MachineClass",
                "name": f"shoot--project--cluster-worker-z{number % 3}-abc12",
            },
            "providerID": f"aws:///eu-west-1/i-{number:017x}",
            "drainTimeout": "2h0m0s",
            "healthTimeout": "10m0s",
            "nodeTemplate": {
                "metadata": {
                    "labels": {
                        "worker.gardener.cloud/pool": "worker",
                        "node.kubernetes.io/role": "node",
                        "topology.kubernetes.io/zone": f"eu-west-1{'abc'[number % 3]}",
                    },
                    "annotations": {"checksum/cloud-config-data": "5f3c" * 16},
                },
                "spec": {"taints": [{"key": "dedicated", "value": "a", "effect": "NoSchedule"}]},
            },
        },
        "status": {
            "conditions": [
                {
                    "type": kind,
                    "status": "True" if kind == "Ready" else "False",
                    "reason": f"KubeletHas{kind}",
                    "message": f"kubelet reports its status for {kind}",
                    "lastHeartbeatTime": _TIME,
                    "lastTransitionTime": _TIME,
                }
                for kind in _CONDITIONS
            ],
            "currentStatus": {"phase": phase, "lastUpdateTime": _TIME},
            "lastOperation": {
                "description": f"Machine {name} successfully joined the cluster",
                "lastUpdateTime": _TIME,
                "state": "Successful",
                "type": "Create",
            },
            "addresses": [
                {"type": "InternalIP", "address": f"10.250.{number >> 8}.{number & 255}"}
            ],
        },
    }


def _metadata(number: int, name: str, version: int) -> JSONObject:
    return {
        "name": name,
        "generateName": name[:-5],
        "namespace": _NAMESPACE,
        "uid": f"6a1b2c3d-0000-4000-8000-{number:012d}",
        "resourceVersion": str(version),
        "generation": 2,
        "creationTimestamp": _TIME,
        "labels": {
            "machine-template-hash": "6f9c8",
            "name": name[:-12],
            "node": f"ip-10-250-{number >> 8}-{number & 255}.eu-west-1.compute.internal",
        },
        "annotations": {"machinepriority.machine.sapcloud.io": "3"},
        "finalizers": ["machine.sapcloud.io/machine-controller-manager"],
        "ownerReferences": [
            {
                "apiVersion": MACHINES.api_version,
                "kind": "MachineSet",
                "name": name[:-6],
                "uid": f"11111111-2222-4333-8444-{number % 30:012d}",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": [
            {
                "manager": "machine-controller-manager",
                "operation": operation,
                "apiVersion": MACHINES.api_version,
                "time": _TIME,
                "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": {"f:annotations": {".": {}}, "f:labels": {".": {}, "f:node": {}}},
                    "f:spec": {"f:class": {"f:kind": {}, "f:name": {}}, "f:providerID": {}},
                },
            }
            for operation in ("Update", "Apply")
        ],
    }


class Recording:
    """A server that lists some machines, then plays a recorded stream and falls silent."""

    def __init__(self, body: bytes, chunks: Sequence[bytes]) -> None:
        self._body = body
        self._chunks = chunks
        self.play = asyncio.Event()
        self.played = asyncio.Event()

    async def list_page(
        self,
        resource: Resource[S],
        *,
        namespace: str = "",
        limit: int | None = None,
        continue_token: str = "",
        resource_version: str = "",
    ) -> ListPage[S]:
        page = codec.decode_list(resource, self._body)
        return ListPage(page.items, page.metadata.resource_version)

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource[S],
        *,
        namespace: str = "",
        resource_version: str = "",
        timeout_seconds: int,
        allow_bookmarks: bool = True,
        send_initial_events: bool = False,
        read_timeout: float | None,
    ) -> AsyncIterator[StreamResponse]:
        yield StreamResponse(200, {}, self._play())

    async def _play(self) -> AsyncIterator[bytes]:
        await self.play.wait()
        for chunk in self._chunks:
            yield chunk
        self.played.set()
        await asyncio.Event().wait()


def measure(machines: int, rounds: int) -> Result:
    """Mirror ``machines`` objects, then let each change ``rounds`` times."""
    objects = [machine(n, version=1000 + n) for n in range(machines)]
    listed = orjson.dumps({"metadata": {"resourceVersion": str(1000 + machines)}, "items": objects})
    stream = b"".join(_events(machines, rounds))
    chunks = [stream[at : at + _CHUNK] for at in range(0, len(stream), _CHUNK)]
    size = len(orjson.dumps(objects[0]))
    del objects, stream
    list_seconds, watch_seconds = asyncio.run(_timed(Recording(listed, chunks)))
    after_list, after_updates = asyncio.run(_weighed(Recording(listed, chunks), machines))
    return Result(
        machines=machines,
        bytes_per_machine_json=size,
        events=machines * rounds,
        events_per_cpu_second=round(machines * rounds / watch_seconds),
        list_objects_per_cpu_second=round(machines / list_seconds),
        bytes_per_cached_machine=after_list,
        bytes_per_cached_machine_after_updates=after_updates,
    )


def _events(machines: int, rounds: int) -> Iterable[bytes]:
    version = 10_000_000
    for turn in range(rounds):
        phase = ("Pending", "Running")[turn % 2]
        for number in range(machines):
            version += 1
            obj = machine(number, version=version, phase=phase)
            yield orjson.dumps({"type": "MODIFIED", "object": obj}) + b"\n"


def _informer(source: Recording) -> tuple[Informer[Machine], WorkQueue[str]]:
    clock = SystemClock()
    informer = Informer(source, MACHINES, clock=clock, randomness=random.Random(0))
    queue: WorkQueue[str] = WorkQueue("machines", clock=clock)

    def enqueue(change: Change[Machine]) -> None:
        queue.add(change.object.metadata.key)

    informer.store.add_index("owner", _owners)
    informer.store.add_index("node", _nodes)
    informer.add_handler(enqueue)
    return informer, queue


def _owners(obj: Machine) -> Iterable[str]:
    owner = obj.metadata.controller_ref()
    return (owner.uid,) if owner else ()


def _nodes(obj: Machine) -> Iterable[str]:
    return (obj.node_name,) if obj.node_name else ()


async def _timed(source: Recording) -> tuple[float, float]:
    informer, queue = _informer(source)
    started = time.process_time()
    running = asyncio.create_task(informer.run())
    await informer.wait_synced()
    synced = time.process_time()
    source.play.set()
    await source.played.wait()
    played = time.process_time()
    assert len(queue) == len(informer.store)
    await _stop(running)
    return synced - started, played - synced


async def _weighed(source: Recording, machines: int) -> tuple[int, int]:
    informer, _ = _informer(source)
    tracemalloc.start()
    before = _live_bytes()
    running = asyncio.create_task(informer.run())
    await informer.wait_synced()
    after_list = _live_bytes() - before
    source.play.set()
    await source.played.wait()
    after_updates = _live_bytes() - before
    tracemalloc.stop()
    await _stop(running)
    return after_list // machines, after_updates // machines


def _live_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def _stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--machines", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=4, help="changes of each machine")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    result = asdict(measure(arguments.machines, arguments.rounds))
    if arguments.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name.replace('_', ' '):45} {value:>12,}")


if __name__ == "__main__":
    main()
