"""Shards of one namespace, the fleets they share out, and the law that each act is held to."""

from __future__ import annotations

import copy
from datetime import timedelta
from typing import Any, Final

from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject, Resource
from mcm.controllers.settings import ControllerSettings
from mcm.options import Options, Sharding
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox import samples
from mcm.sharding.shard import MARK
from mcm.simulation.harness import Simulation, name_of
from tests.simulation.several.managers import Act, Managers, Process

LABEL: Final = "shard"
_KINDS: Final[dict[str, Resource[Any]]] = {
    "machine": MACHINES,
    "machineset": MACHINE_SETS,
    "machinesafetyovershooting": MACHINE_SETS,
    "machinedeployment": MACHINE_DEPLOYMENTS,
    "machinesafetyfreeze": MACHINE_DEPLOYMENTS,
}
DIVIDED: Final = (MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES)


def shard(name: str, selector: str = "") -> Options:
    settings = ControllerSettings(orphan_vms_period=timedelta(minutes=1))
    return Options(settings=settings, sharding=Sharding(name, selector or f"{LABEL}={name}"))


def start(managers: Managers, name: str, selector: str = "", *, process: str = "") -> Process:
    """Start a process of a shard, called like it unless told otherwise."""
    return managers.start(process or name, shard(name, selector))


def hold_to_the_law(managers: Managers) -> None:
    """From now on whoever acts for an object must be the shard that the server has on it."""
    managers.judge = lambda act: offence(managers, act)


def offence(managers: Managers, act: Act) -> str:
    controller, _, key = act.reconcile.partition(" ")
    resource = _KINDS.get(controller)
    if resource is None:
        return ""
    wanted = next(p.options.sharding.name for p in managers.processes if p.name == act.by)
    for obj in managers.sim.objects(resource):
        if key_of(obj) == key:
            return "" if mark_of(obj) == wanted else f"it is marked {mark_of(obj)!r}"
    return ""


def fleet(labels: dict[str, str], *, replicas: int = 2) -> list[JSONObject]:
    """Return the sample's class and secret, and a deployment for each of ``labels``: name to value
    of the shard label, which its machines do not bear."""
    found: list[JSONObject] = []
    for manifest in samples.load():
        if manifest["kind"] != "MachineDeployment":
            found.append(manifest)
            continue
        for name, value in labels.items():
            found.append(_deployment(manifest, name, value, replicas))
    return found


def _deployment(sample: JSONObject, name: str, value: str, replicas: int) -> JSONObject:
    made: Any = copy.deepcopy(sample)
    made["metadata"].update(name=name, labels={LABEL: value} if value else {})
    made["spec"]["replicas"] = replicas
    made["spec"]["selector"] = {"matchLabels": {"name": name}}
    made["spec"]["template"]["metadata"]["labels"] = {"name": name}
    return made  # type: ignore[no-any-return]


def mark_of(obj: JSONObject) -> str:
    meta: Any = obj["metadata"]
    return str((meta.get("annotations") or {}).get(MARK, ""))


def key_of(obj: JSONObject) -> str:
    meta: Any = obj["metadata"]
    return f"{meta['namespace']}/{meta['name']}"


def marks(sim: Simulation, prefix: str = "") -> set[str]:
    """Return all marks of objects whose names begin so."""
    return {
        mark_of(obj)
        for resource in DIVIDED
        for obj in sim.objects(resource)
        if name_of(obj).startswith(prefix)
    }


async def label(sim: Simulation, name: str, value: str | None) -> None:
    """Give a deployment another shard label."""
    patch: JSONObject = {"metadata": {"labels": {LABEL: value}}}
    await sim.client.patch(MACHINE_DEPLOYMENTS, name, patch, namespace="default")


async def scale(sim: Simulation, name: str, replicas: int) -> None:
    patch: JSONObject = {"spec": {"replicas": replicas}}
    await sim.client.patch(MACHINE_DEPLOYMENTS, name, patch, namespace="default")


def vm_names(sim: Simulation) -> list[str]:
    return sorted(name_of(vm) for vm in sim.objects(VIRTUAL_MACHINES))
