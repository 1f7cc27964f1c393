"""A bench whose cloud has tags on VMs, interfaces and disks, and can fail at any of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from mcm.api.machine import MACHINE_CLASSES, MACHINES
from mcm.api.meta import JSONObject
from mcm.clock import LoopClock
from mcm.driver import (
    Code,
    CreateMachineRequest,
    CreateMachineResponse,
    DriverError,
    UpdateMachineRequest,
    UpdateMachineResponse,
)
from tests.unit.machine.bench import NAMESPACE, Bench, ScriptedDriver, bench

RESOURCES: Final = ("vm", "network", "disk")
FOREIGN: Final = "somebody-elses"

Tags = dict[str, dict[str, str]]


class TaggingDriver(ScriptedDriver):
    """Tags are by machine and resource. ``fails_at`` names where an update fails, by call.

    Like a real cloud it cannot tell whose a tag is but by what the request says.
    """

    def __init__(self, clock: LoopClock) -> None:
        super().__init__(clock)
        self.tags: dict[str, Tags] = {}
        self.requests: list[UpdateMachineRequest] = []
        self.fails_at: Callable[[str], str] = lambda _: ""
        self.code = Code.UNAVAILABLE
        self.updating: dict[str, int] = {}
        self.began: list[float] = []
        self.most_updates = 0

    async def create_machine(self, request: CreateMachineRequest) -> CreateMachineResponse:
        new = request.machine.metadata.name not in self.vms
        made = await super().create_machine(request)
        if new:
            wanted = _tags(request.machine_class.provider_spec)
            self.tags[request.machine.metadata.name] = {
                r: {**wanted.get(r, {}), FOREIGN: "1"} for r in RESOURCES
            }
        return made

    async def update_machine(self, request: UpdateMachineRequest) -> UpdateMachineResponse:
        name = request.machine.metadata.name
        self.requests.append(request)
        self.began.append(self._clock.monotonic())
        self.updating[name] = self.updating.get(name, 0) + 1
        assert self.updating[name] == 1, "two calls for one machine"
        self.most_updates = max(self.most_updates, sum(self.updating.values()))
        try:
            await self._call("update", name)
            await self._bring(name, request)
        finally:
            self.updating[name] -= 1
        return UpdateMachineResponse()

    async def _bring(self, name: str, request: UpdateMachineRequest) -> None:
        failing = self.fails_at(name)
        wanted = _tags(request.machine_class.provider_spec)
        last = request.last_applied_provider_spec
        known = [_tags(s) for s in (*((last,) if last else ()), *request.attempted_provider_specs)]
        for resource in RESOURCES:
            if failing == resource:
                raise DriverError(self.code, f"{resource} of {name} is not to be had")
            ours = {key for tags in known for key in tags.get(resource, {})}
            present = self.tags[name][resource]
            for key in ours - wanted.get(resource, {}).keys():
                present.pop(key, None)
            present.update(wanted.get(resource, {}))
            await self._clock.sleep(0)

    def is_at(self, name: str, spec: JSONObject) -> bool:
        """Whether the VM has just the tags of ``spec``, and those of others."""
        wanted = _tags(spec)
        return self.tags.get(name) == {r: {**wanted.get(r, {}), FOREIGN: "1"} for r in RESOURCES}


def _tags(spec: JSONObject) -> Tags:
    tags = spec.get("tags", {})
    assert isinstance(tags, dict)
    return tags


def tagged(**vm: str) -> JSONObject:
    """A provider spec whose tags are the same everywhere."""
    return {"size": "s", "tags": {resource: dict(vm) for resource in RESOURCES}}


class TagBench:
    """A bench whose cloud has tags."""

    def __init__(self, b: Bench) -> None:
        self.b = b
        self.cloud = TaggingDriver(b.clock)
        b.driver = self.cloud

    async def change(self, spec: JSONObject) -> None:
        """Make the class say ``spec`` and nothing else."""
        present = await self.b.client.get(MACHINE_CLASSES, "c", namespace=NAMESPACE)
        gone = {key: None for key in present.provider_spec if key not in spec}
        old = present.provider_spec.get("tags")
        assert old is None or isinstance(old, dict)
        new = spec.get("tags")
        assert isinstance(new, dict)
        tags = {r: {**dict.fromkeys((old or {}).get(r, {})), **new.get(r, {})} for r in RESOURCES}
        patch: JSONObject = {"providerSpec": {**spec, **gone, "tags": tags}}
        await self.b.client.patch(MACHINE_CLASSES, "c", patch, namespace=NAMESPACE)

    async def hide_last_operation(self) -> None:
        """Write another one, as a health check does."""
        other: JSONObject = {"lastOperation": {"type": "HealthCheck", "state": "Successful"}}
        await self.b.client.patch(
            MACHINES, "m", {"status": other}, namespace=NAMESPACE, subresource="status"
        )

    async def until_at(self, spec: JSONObject, *names: str, within: float = 60.0) -> float:
        async def reached() -> bool:
            return all(self.cloud.is_at(name, spec) for name in names or ("m",))

        return await self.b.until(reached, within=within)

    async def annotation(
        self, name: str = "m", key: str = "last-applied-providerspec"
    ) -> str | None:
        return (await self.b.machine(name)).metadata.annotations.get(key)


@asynccontextmanager
async def tag_bench(spec: JSONObject, *, has_target: bool = True) -> AsyncIterator[TagBench]:
    """A bench with a class that says ``spec``, and running controllers."""
    async with bench(has_target=has_target, started=False) as b:
        t = TagBench(b)
        await b.make_class()
        await t.change(spec)
        await b.start()
        yield t
