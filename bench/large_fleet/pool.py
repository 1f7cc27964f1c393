"""One pool of machines at rest: what the manager, left alone in virtual time, makes of it.

So a copy of it needs nothing more from that manager, whatever it comes to write in future.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import orjson

from mcm.api.core import NODES, SECRETS
from mcm.api.machine import MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject, KubeObject, Resource
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual

NAME: Final = "pool-0000"
"""What deployment and class are called, and the names of all the rest begin with."""
NAMESPACE: Final = "default"
COPIED: Final[tuple[Resource[KubeObject], ...]] = (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    MACHINE_CLASSES,
    VIRTUAL_MACHINES,
    NODES,
)
SHARED: Final[tuple[Resource[KubeObject], ...]] = (SECRETS,)
"""Of which there is one, however many pools there are."""

_SECRET: Final = "user-data"
_AT_REST: Final = 600.0
_BEFORE: Final = timedelta(hours=2)

Pool = Mapping[Resource[KubeObject], list[bytes]]
"""Encoded objects, as stored, by what they are."""


def pool_at_rest(machines: int) -> Pool:
    """Return a pool of that many machines, all of which have been running for minutes."""
    found: dict[Resource[KubeObject], list[bytes]] = {}

    async def main() -> None:
        async with Simulation(seed=1, epoch=datetime.now(UTC) - _BEFORE) as simulation:
            await simulation.apply([_secret(), _class(), _deployment(machines)])
            await simulation.until(lambda: simulation.running() == machines, within=_AT_REST)
            await simulation.pass_time(_AT_REST)
            for resource in (*COPIED, *SHARED):
                found[resource] = [orjson.dumps(o) for o in simulation.objects(resource)]

    run_virtual(main)
    return found


def _secret() -> JSONObject:
    return {
        "apiVersion": SECRETS.api_version,
        "kind": SECRETS.kind,
        "metadata": {"name": _SECRET, "namespace": NAMESPACE},
        "type": "Opaque",
        "stringData": {"userData": "#!/bin/sh\necho joining as <<MACHINE_NAME>>\n" + "# \n" * 300},
    }


def _class() -> JSONObject:
    return {
        "apiVersion": MACHINE_CLASSES.api_version,
        "kind": MACHINE_CLASSES.kind,
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "provider": "simulated",
        "secretRef": {"name": _SECRET, "namespace": NAMESPACE},
        "nodeTemplate": {
            "capacity": {"cpu": "8", "gpu": "0", "memory": "32Gi"},
            "instanceType": "sim.large",
            "region": "sandbox",
            "zone": "sandbox-a",
        },
        "providerSpec": {"createLatency": "0s", "bootLatency": "0s", "joinLatency": "0s"},
    }


def _deployment(machines: int) -> JSONObject:
    labels: JSONObject = {"name": NAME}
    return {
        "apiVersion": MACHINE_DEPLOYMENTS.api_version,
        "kind": MACHINE_DEPLOYMENTS.kind,
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": machines,
            "selector": {"matchLabels": labels},
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
            },
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "class": {
                        "apiGroup": MACHINE_CLASSES.group,
                        "kind": MACHINE_CLASSES.kind,
                        "name": NAME,
                    },
                    "nodeTemplate": {
                        "metadata": {
                            "labels": {"worker.gardener.cloud/pool": NAME},
                            "annotations": {"checksum/cloud-config-data": "5f3c" * 16},
                        },
                    },
                },
            },
        },
    }
