"""Machines by name, whose Nodes hold pods with disks: as many as a test needs, cheaply made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, cast

import orjson

from mcm.api.core import NODES
from mcm.api.machine import MACHINES
from mcm.api.meta import Resource
from mcm.api.timestamps import parse_rfc3339
from mcm.client.transport import Request
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of, phase_of

Manifest = dict[str, Any]


def without_machines() -> list[Manifest]:
    """Return the sample's secret and classes."""
    found = [cast("Manifest", manifest) for manifest in samples.load()]
    return [m for m in found if m["kind"] != "MachineDeployment"]


def machine(name: str, **spec: Any) -> Manifest:
    """Return a machine of no set: its Node will have its name."""
    return {
        "apiVersion": "machine.sapcloud.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "default", "labels": {"name": "pool"}},
        "spec": {
            "class": {"apiGroup": "machine.sapcloud.io", "kind": "MachineClass", "name": "small"},
            **spec,
        },
    }


def pod(
    name: str, node: str, *, claims: Iterable[str] = (), grace: int = 1, app: str = "app"
) -> Manifest:
    volumes = [
        {"name": f"v{i}", "persistentVolumeClaim": {"claimName": claim}}
        for i, claim in enumerate(claims)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": app},
            "annotations": {"simulation.machine.sapcloud.io/termination-seconds": str(grace)},
        },
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": grace,
            "containers": [{"name": "main", "image": "app"}],
            "volumes": volumes,
        },
    }


def budget(app: str, **spec: Any) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def disk(name: str, *, mode: str = "ReadWriteOnce") -> Iterator[Manifest]:
    """Yield a volume that is attached and detached at once, and its claim, both of that name."""
    size, modes = {"storage": "1Gi"}, [mode]
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": size,
            "accessModes": modes,
            "claimRef": {"namespace": "default", "name": name},
            "csi": {
                "driver": "disks.example.org",
                "volumeHandle": name,
                "volumeAttributes": {"attachSeconds": "0", "detachSeconds": "0.2"},
            },
        },
    }
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "accessModes": modes,
            "resources": {"requests": size},
            "volumeName": name,
            "storageClassName": "",
        },
    }


class EvictionsAsked:
    """Counts the manager's requests for evictions by the pods' UIDs, as they are sent."""

    def __init__(self, sim: Simulation) -> None:
        self.by_uid: Counter[str] = Counter()
        sim.faults.delay(0.0, method="POST", path=r"/eviction$", where=self._note)

    def _note(self, request: Request) -> bool:
        options = orjson.loads(request.body)["deleteOptions"]
        self.by_uid[options["preconditions"]["uid"]] += 1
        return False


class Moments:
    """When machines came into which phase first, and Nodes were found silent, in seconds of the
    simulation."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self.first: dict[tuple[str, str], float] = {}
        self.silent: dict[str, float] = {}
        sim.on_change(MACHINES, self._look_at_machines)
        sim.on_change(NODES, self._look_at_nodes)

    def _look_at_machines(self) -> None:
        now = self._sim.clock.monotonic()
        for found in self._sim.objects(MACHINES):
            self.first.setdefault((name_of(found), phase_of(found)), now)

    def _look_at_nodes(self) -> None:
        now = self._sim.clock.monotonic()
        for found in objects(self._sim, NODES):
            for condition in found.get("status", {}).get("conditions", ()):
                if condition["type"] == "Ready" and condition["status"] == "Unknown":
                    self.silent.setdefault(found["metadata"]["name"], now)


def objects(sim: Simulation, resource: Resource[Any]) -> list[Manifest]:
    return cast("list[Manifest]", sim.objects(resource))


def named(sim: Simulation, resource: Resource[Any], name: str) -> Manifest | None:
    return next((o for o in objects(sim, resource) if o["metadata"]["name"] == name), None)


def moment(text: str) -> datetime:
    return parse_rfc3339(text)
