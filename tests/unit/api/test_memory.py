"""What an object costs in memory, on machines as a fleet of the field has them."""

from __future__ import annotations

import copy
import gc
import tracemalloc
from collections.abc import Callable

import orjson

from mcm.api import codec
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject

_COUNT = 500
_LIMIT = 7 * 1024
_POOL_LABELS = {
    "node.kubernetes.io/role": "node",
    "worker.gardener.cloud/pool": "pool-1",
    "worker.gardener.cloud/cri-name": "containerd",
    "worker.gardener.cloud/kubernetes-version": "1.32.2",
    "worker.gardener.cloud/system-components": "true",
    "kubernetes.io/arch": "amd64",
    "networking.gardener.cloud/node-local-dns-enabled": "true",
}
_CONDITIONS = {
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "KernelDeadlock": ("False", "KernelHasNoDeadlock", "kernel has no deadlock"),
    "ReadonlyFilesystem": ("False", "FilesystemIsNotReadOnly", "Filesystem is not read-only"),
}


def _fleet(example: JSONObject) -> bytes:
    """A list of machines like the example, each with names of its own and six conditions."""
    body = orjson.dumps({"items": [_padded(example, number) for number in range(_COUNT)]})
    assert 3_000 < len(body) / _COUNT < 5_000
    return body


def _padded(example: JSONObject, number: int) -> JSONObject:
    machine = copy.deepcopy(example)
    _part(machine, "metadata").update(
        name=f"shoot--project--pool-z1-6d8f9-{number:05}",
        namespace="shoot--project--cluster",
        uid=f"d641886d-e3dd-41f5-b0f8-{number:012}",
        resourceVersion=str(1_000_000 + number),
    )
    node = f"ip-10-250-{number // 250}-{number % 250}.eu-central-1.compute.internal"
    _part(machine, "metadata", "labels")["node"] = node
    _part(machine, "spec")["providerID"] = f"aws:///eu-central-1/i-{number:017x}"
    _part(machine, "spec", "nodeTemplate", "metadata")["labels"] = _POOL_LABELS
    _part(machine, "status")["conditions"] = [
        {
            "type": name,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": "2026-11-21T04:51:33Z",
            "lastTransitionTime": "2026-11-21T04:51:33Z",
        }
        for name, (status, reason, message) in _CONDITIONS.items()
    ]
    return machine


def _part(obj: JSONObject, *path: str) -> JSONObject:
    for name in path:
        inner = obj[name]
        assert isinstance(inner, dict)
        obj = inner
    return obj


def test_a_machine_of_the_field_fits_in_seven_kibibytes(
    recorded: Callable[[str], list[codec.WatchFrame]],
) -> None:
    frame = next(f for f in recorded("machines") if b'"phase":"Running"' in bytes(f.object))
    body = _fleet(orjson.loads(bytes(frame.object)))
    codec.decode_list(MACHINES, body)  # decoders and shared texts are there already
    gc.collect()

    tracemalloc.start()
    try:
        page = codec.decode_list(MACHINES, body)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(page.items) == _COUNT and page.bad == ()
    assert held / _COUNT < _LIMIT


def test_conditions_of_different_machines_share_their_texts(
    recorded: Callable[[str], list[codec.WatchFrame]],
) -> None:
    frame = next(f for f in recorded("machines") if b'"phase":"Running"' in bytes(f.object))
    first, second = codec.decode_list(
        MACHINES, b'{"items":[%s,%s]}' % (bytes(frame.object), bytes(frame.object))
    ).items
    third = codec.decode_object(MACHINES, frame.object)
    for machine in (second, third):
        assert machine == first and machine is not first
        assert machine.status.conditions[0].reason is first.status.conditions[0].reason
