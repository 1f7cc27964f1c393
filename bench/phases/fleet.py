"""What a user does with a deployment of machines."""

from __future__ import annotations

from typing import Final, final

from bench.instant import manifests
from mcm.api.machine import MACHINE_DEPLOYMENTS
from mcm.client.client import Client

FLEET: Final = "fleet"
WARM_UP: Final = "warm-up"


@final
class Fleet:
    """One deployment in one namespace."""

    def __init__(self, client: Client, namespace: str, name: str = FLEET) -> None:
        self.name = name
        self._client = client
        self._namespace = namespace

    async def create(self, replicas: int) -> None:
        body = manifests.deployment(self.name, replicas)
        await self._client.create(MACHINE_DEPLOYMENTS, body, namespace=self._namespace)

    async def scale(self, replicas: int) -> None:
        await self._patch({"replicas": replicas})

    async def roll_to(self, machine_class: str) -> None:
        await self._patch({"template": {"spec": {"class": {"name": machine_class}}}})

    async def delete(self) -> None:
        await self._client.delete(MACHINE_DEPLOYMENTS, self.name, namespace=self._namespace)

    async def _patch(self, spec: dict[str, object]) -> None:
        await self._client.patch(
            MACHINE_DEPLOYMENTS, self.name, {"spec": spec}, namespace=self._namespace
        )
