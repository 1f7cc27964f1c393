"""What a user does with a fleet, and sees of it."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, final

from mcm.clock import SystemClock
from tests.envtest.bench import STRATEGIC, Bench, Document

GROUP = "machine.sapcloud.io/v1alpha1"
USER_DATA = "#!/bin/sh\necho joining as <<MACHINE_NAME>> with <<BOOTSTRAP_TOKEN>>\n"

_FAST = {
    "createLatency": "0s",
    "deleteLatency": "0s",
    "bootLatency": "200ms",
    "joinLatency": "200ms",
}
_LOOK_EVERY = 0.2


@final
class Fleet:
    """A deployment ``fleet`` and its classes, in the bench's namespace."""

    def __init__(self, admin: Bench) -> None:
        self.admin = admin
        self._clock = SystemClock()

    # ---- acts -----------------------------------------------------------------------------------

    async def create(self, *, replicas: int) -> None:
        data = {"userData": base64.b64encode(USER_DATA.encode()).decode()}
        secret = {"metadata": {"name": "cloud"}, "type": "Opaque", "data": data}
        await self.admin.create(self.admin.secrets(), secret)
        for name in ("small", "large"):
            await self.admin.create(self.path("machineclasses"), self._class(name))
        await self.admin.create(
            self.path("machinedeployments"), _deployment(self.admin.namespace, replicas)
        )

    async def scale(self, replicas: int) -> None:
        path = self.path("machinedeployments", "fleet") + "/scale"
        await self.admin.patch(path, {"spec": {"replicas": replicas}})

    async def roll_to(self, machine_class: str) -> None:
        change = {"template": {"spec": {"class": {"name": machine_class}}}}
        await self.admin.patch(self.path("machinedeployments", "fleet"), {"spec": change})

    async def delete(self) -> None:
        await self.admin.delete(self.path("machinedeployments", "fleet"))

    async def delete_classes(self) -> None:
        for name in ("small", "large"):
            await self.admin.delete(self.path("machineclasses", name))
        await self.admin.delete(self.admin.secrets("cloud"))

    async def allow_disruptions(self, budget: str, allowed: int) -> None:
        """Say in a budget's status what the disruption controller would."""
        path = self.admin.path("poddisruptionbudgets", budget, group="policy/v1")
        status = {
            "observedGeneration": (await self.admin.get(path))["metadata"]["generation"],
            "disruptionsAllowed": allowed,
            "currentHealthy": 1 + allowed,
            "desiredHealthy": 1,
            "expectedPods": 2,
        }
        await self.admin.patch(f"{path}/status", {"status": status}, media=STRATEGIC)

    # ---- looks ----------------------------------------------------------------------------------

    def path(self, plural: str, name: str = "") -> str:
        return self.admin.path(plural, name, group=GROUP)

    async def machines(self) -> list[Document]:
        items: list[Document] = (await self.admin.get(self.path("machines")))["items"]
        return items

    async def vms(self) -> list[str]:
        group = "simulation.machine.sapcloud.io/v1alpha1"
        return await self.admin.names(self.admin.path("virtualmachines", group=group))

    async def nodes(self) -> list[str]:
        """Return the nodes of this fleet: others may be in the cluster."""
        return await self.admin.names("/api/v1/nodes", labelSelector=f"pool={self.admin.namespace}")

    async def tokens(self) -> list[str]:
        secrets = await self.admin.names("/api/v1/namespaces/kube-system/secrets")
        return [name for name in secrets if name.startswith("bootstrap-token-")]

    async def running(self) -> Counter[str]:
        """Return how many machines run, by class."""
        return Counter(
            machine["spec"]["class"]["name"]
            for machine in await self.machines()
            if machine.get("status", {}).get("currentStatus", {}).get("phase") == "Running"
        )

    async def runs(self, **expected: int) -> bool:
        """Tell whether exactly these machines are there, and run."""
        return await self.running() == expected and len(await self.machines()) == sum(
            expected.values()
        )

    async def until(
        self, condition: Callable[[], Awaitable[bool]], *, within: float = 30.0, what: str
    ) -> float:
        """Wait until the condition holds; return the seconds it took."""
        started = self._clock.monotonic()
        while not await condition():
            passed = self._clock.monotonic() - started
            assert passed < within, f"not within {within} s: {what}\n{await self.describe()}"
            await self._clock.sleep(_LOOK_EVERY)
        return self._clock.monotonic() - started

    async def describe(self) -> str:
        lines = [_line(machine) for machine in await self.machines()]
        lines.append(f"  VMs: {await self.vms()}, nodes: {await self.nodes()}")
        return "\n".join(lines)

    def _class(self, name: str) -> Document:
        return {
            "apiVersion": GROUP,
            "kind": "MachineClass",
            "metadata": {"name": name},
            "provider": "simulated",
            "secretRef": {"name": "cloud", "namespace": self.admin.namespace},
            "nodeTemplate": {
                "capacity": {"cpu": "2", "gpu": "0", "memory": "4Gi"},
                "instanceType": f"sim.{name}",
                "region": "envtest",
                "zone": "envtest-a",
            },
            "providerSpec": _FAST,
        }


def _deployment(pool: str, replicas: int) -> Document:
    labels = {"name": "fleet"}
    template: dict[str, Any] = {
        "metadata": {"labels": labels},
        "spec": {
            "class": {"kind": "MachineClass", "name": "small"},
            "nodeTemplate": {"metadata": {"labels": {"pool": pool}}},
        },
    }
    rolling = {"maxSurge": 2, "maxUnavailable": 1}
    return {
        "apiVersion": GROUP,
        "kind": "MachineDeployment",
        "metadata": {"name": "fleet"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "template": template,
        },
    }


def _line(machine: Document) -> str:
    status = machine.get("status", {})
    phase = status.get("currentStatus", {}).get("phase", "new")
    return (
        f"  {machine['metadata']['name']}: {phase}"
        f" {status.get('lastOperation', {}).get('description', '')}"
    )
