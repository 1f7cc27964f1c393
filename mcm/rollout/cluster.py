"""What a namespace of the cluster has of a deployment: the objects that the commands look at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import orjson

from mcm.api.machine import (
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineDeployment,
    MachineSet,
)
from mcm.api.meta import JSONObject, Resource, T
from mcm.client.client import Client
from mcm.client.errors import ConfigurationError, Forbidden, NotFound
from mcm.cluster_commands.connecting import read_all


@final
@dataclass(frozen=True, slots=True)
class Cluster:
    """One namespace of one API server. Every call raises what the client raises."""

    client: Client
    namespace: str

    async def deployment(self, name: str) -> MachineDeployment:
        """Read a deployment; NotFound says in which namespace there is none."""
        try:
            return await self.client.get(MACHINE_DEPLOYMENTS, name, namespace=self.namespace)
        except NotFound as error:
            raise self._not_found(error) from None

    async def raw_deployment(self, name: str, *, required: bool = True) -> JSONObject | None:
        """Read a deployment with the fields that no type here knows; None if there need not be
        one, and is none."""
        try:
            body = await self.client.get_raw(MACHINE_DEPLOYMENTS.path(self.namespace, name))
        except NotFound as error:
            if _is_of_an_object(error) and not required:
                return None
            raise self._not_found(error) from None
        raw: JSONObject = orjson.loads(body)
        return raw

    async def deployments(self) -> tuple[MachineDeployment, ...]:
        return await self._all(MACHINE_DEPLOYMENTS)

    async def sets(self) -> tuple[MachineSet, ...]:
        return await self._all(MACHINE_SETS)

    async def machines(self) -> tuple[Machine, ...]:
        return await self._all(MACHINES)

    async def classes(self) -> frozenset[str] | None:
        """Return the names of the machine classes; None if they may not be read."""
        try:
            return frozenset(c.metadata.name for c in await self._all(MACHINE_CLASSES))
        except (Forbidden, NotFound):
            return None

    async def _all(self, resource: Resource[T]) -> tuple[T, ...]:
        return await read_all(self.client, resource, namespace=self.namespace)

    def _not_found(self, error: NotFound) -> ConfigurationError:
        if _is_of_an_object(error):
            return ConfigurationError(f"{error} in namespace {self.namespace}")
        return ConfigurationError(
            f"the server does not know {MACHINE_DEPLOYMENTS.name}: its definition is not installed "
            "(`mcm crds` prints it)"
        )


def _is_of_an_object(error: NotFound) -> bool:
    """Tell an object that is not there from a kind that is not served."""
    return error.message.startswith(MACHINE_DEPLOYMENTS.name)
