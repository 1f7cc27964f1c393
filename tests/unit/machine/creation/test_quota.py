"""A thousand machines and a quota of ten: one asks at a time, the others wait and say so."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from itertools import pairwise

import pytest

from mcm.api.core import SECRETS
from mcm.api.machine import MACHINE_CLASSES, MACHINES
from mcm.api.meta import JSONObject
from mcm.driver import (
    Code,
    CreateMachineRequest,
    CreateMachineResponse,
    DriverError,
    GetMachineStatusRequest,
    GetMachineStatusResponse,
)
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench, with_settings

FLEET, QUOTA, PLACES = 1000, 10, 20
EVERY = timedelta(minutes=3)
SETTINGS = with_settings(
    machine_concurrent_syncs=PLACES,
    resource_exhausted_retry=EVERY,
    creation_timeout=timedelta(hours=24),
)


class Cloud:
    """Gives out VMs while there is quota, a second each; counts calls and those at once."""

    def __init__(self, b: Bench, *, code: Code = Code.RESOURCE_EXHAUSTED) -> None:
        self.quota = QUOTA
        self.refusals: list[tuple[float, str]] = []
        self.at_once: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self._b, self._code = b, code
        self._inner = b.driver.create_machine
        b.driver.create_machine = self.create  # type: ignore[method-assign]

    async def create(self, request: CreateMachineRequest) -> CreateMachineResponse:
        class_ = request.machine_class.metadata.name
        self.at_once[class_] += 1
        self.most[class_] = max(self.most[class_], self.at_once[class_])
        try:
            await asyncio.sleep(1.0)  # noqa: TID251 - virtual time
            if len(self._b.driver.vms) >= self.quota:
                self.refusals.append((self._b.clock.monotonic(), class_))
                raise DriverError(self._code, f"quota of {self.quota} VMs exceeded")
            return await self._inner(request)
        finally:
            self.at_once[class_] -= 1

    def forget_peaks(self) -> None:
        self.most.clear()


def phases(b: Bench) -> Counter[str]:
    found: Counter[str] = Counter()
    for obj in b.objects(MACHINES):
        status = obj.get("status")
        current = status.get("currentStatus") if isinstance(status, dict) else None
        found[str(current.get("phase", "")) if isinstance(current, dict) else ""] += 1
    return found


async def last_text(b: Bench, name: str) -> str:
    return (await b.machine(name)).status.last_operation.description


@pytest.mark.timeout(600)  # half a minute, on a busy machine some
@on_bench
async def test_a_thousand_machines_and_a_quota_of_ten() -> None:
    async with bench(settings=SETTINGS) as b:
        await b.make_class()
        cloud = Cloud(b)
        await b.settle(1)
        for n in range(FLEET):
            await b.make_machine(f"m-{n}")
        await b.settle(60)
        # Those under way when the first was refused found out by themselves, and nobody else.
        assert len(b.driver.vms) == QUOTA
        assert len(cloud.refusals) <= PLACES + PLACES // 5
        assert phases(b) == {"Pending": QUOTA, "CrashLoopBackOff": FLEET - QUOTA}
        waiting = (await b.machine("m-900")).status.last_operation
        assert waiting.error_code == "ResourceExhausted"
        assert waiting.description.startswith("Waiting with all machines of class c, as machine m-")
        assert "quota of 10 VMs exceeded" in waiting.description
        assert "This one waits until 2026-01-02T00:0" in waiting.description
        statuses = [w for w in b.written("machines") if w.path.endswith("/status")]
        assert len(statuses) <= FLEET

        # An hour of that: one call a period, and not one write.
        await b.settle(EVERY.total_seconds())
        refused, writes = len(cloud.refusals), len(b.written("machines"))
        cloud.forget_peaks()
        hour = 3600.0
        await b.settle(hour)
        probes = [at for at, _ in cloud.refusals[refused:]]
        assert hour / (EVERY.total_seconds() + 1) - 1 <= len(probes) <= 1 + hour / 180
        assert all(b - a >= EVERY.total_seconds() for a, b in pairwise(probes))
        assert cloud.most["c"] == 1
        # The one that tries repeats after half an hour that it is refused.
        assert len(b.written("machines")) - writes <= 3

        # More, but not enough: no stampede either.
        cloud.quota = 100
        refused = len(cloud.refusals)
        await b.settle(EVERY.total_seconds() + 60)
        assert len(b.driver.vms) == 100
        assert len(cloud.refusals) - refused <= PLACES + PLACES // 5

        cloud.quota = FLEET
        # One period, doubling, and then as fast as there are places.
        await b.settle(EVERY.total_seconds() + FLEET / PLACES + 30)
        assert phases(b) == {"Pending": FLEET}
        assert b.driver.made == FLEET
        machine_writes = b.written("machines")
        assert len(machine_writes) <= 5 * FLEET
        assert len(b.events()) <= FLEET


@on_bench
async def test_who_has_begun_but_not_asked_for_its_vm_waits_as_well_once_another_is_refused() -> (
    None
):
    async with bench(settings=SETTINGS) as b:
        await b.make_class()
        cloud = Cloud(b)
        cloud.quota = 0
        inner, seconds = b.driver.get_machine_status, iter(range(1, 10**6))

        async def slow(request: GetMachineStatusRequest) -> GetMachineStatusResponse:
            await asyncio.sleep(next(seconds) / 2)  # noqa: TID251 - virtual time
            return await inner(request)

        b.driver.get_machine_status = slow  # type: ignore[method-assign]
        await b.settle(1)
        for n in range(60):
            await b.make_machine(f"m-{n}")
        await b.settle(150)
        # The first was refused after a second, in which two more had come as far as that.
        assert len(cloud.refusals) <= 3
        assert phases(b) == {"CrashLoopBackOff": 60}
        cloud.quota = 60
        await b.settle(1800)
        assert phases(b) == {"Pending": 60}
        assert b.driver.made == 60


@on_bench
async def test_another_zone_and_another_class_are_not_held() -> None:
    async with bench(settings=SETTINGS) as b:
        await b.make_class()
        class_: JSONObject = {
            "metadata": {"name": "d"},
            "providerSpec": {},
            "secretRef": {"name": "s", "namespace": NAMESPACE},
        }
        await b.client.create(MACHINE_CLASSES, class_, namespace=NAMESPACE)
        await b.settle(1)
        b.driver.fail("create", Code.RESOURCE_EXHAUSTED, "z1 is full")
        zones = {"m-1": "z1", "m-2": "z1", "m-3": "z2"}
        for name, zone in zones.items():
            template = {"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}}
            await b.make_machine(name, spec={"nodeTemplate": template})
            await b.settle(1)
        await b.make_machine("m-4", class_="d")
        await b.settle(1)
        found = {name: (await b.machine(name)).phase for name in (*zones, "m-4")}
        assert found == {
            "m-1": "CrashLoopBackOff",
            "m-2": "CrashLoopBackOff",
            "m-3": "Pending",
            "m-4": "Pending",
        }
        assert "zone z1" in await last_text(b, "m-2")
        assert b.driver.count("create") == 3


@on_bench
async def test_a_new_secret_lets_all_machines_try_at_once() -> None:
    async with bench(settings=SETTINGS) as b:
        await b.make_class()
        await b.settle(1)
        b.driver.fail("create", Code.UNAUTHENTICATED, "wrong key")
        await b.make_machine("first")
        await b.until_phase("CrashLoopBackOff", "first")
        for n in range(20):
            await b.make_machine(f"m-{n}")
        await b.settle(5)
        assert b.driver.count("create") == 1
        assert "wrong key" in await last_text(b, "m-7")
        patch: JSONObject = {"data": {"key": "bmV3"}}
        await b.client.patch(SECRETS, "s", patch, namespace=NAMESPACE)
        await b.settle(2)
        assert phases(b) == {"Pending": 21}


@on_bench
async def test_the_first_retry_keeps_the_time_an_operator_set() -> None:
    async with bench(settings=SETTINGS) as b:
        await b.make_class()
        cloud = Cloud(b)
        cloud.quota = 0
        await b.make_machine()
        await b.settle(4 * EVERY.total_seconds())
        times = [at for at, _ in cloud.refusals]
        assert len(times) == 4
        gaps = [b - a for a, b in pairwise(times)]
        assert all(EVERY.total_seconds() <= gap <= EVERY.total_seconds() + 2 for gap in gaps)


@on_bench
async def test_a_machine_deleted_while_it_tries_lets_the_next_one_try() -> None:
    async with bench(settings=SETTINGS) as b:
        await b.make_class()
        cloud = Cloud(b)
        cloud.quota = 0
        for name in ("a", "b", "c"):
            await b.make_machine(name)
            await b.settle(2)
        await b.delete_machine("a")
        await b.until_gone("a")
        cloud.quota = 5
        await b.until_phase("Pending", "c", within=EVERY.total_seconds() + 5)
        assert phases(b) == {"Pending": 2}


@on_bench
async def test_a_successor_finds_out_anew_and_nothing_is_made_twice() -> None:
    async with bench(settings=SETTINGS) as b:
        await b.make_class()
        cloud = Cloud(b)
        await b.settle(1)
        for n in range(100):
            await b.make_machine(f"m-{n}")
        await b.settle(30)
        refused = len(cloud.refusals)
        await b.crash()
        await b.start()
        await b.settle(30)
        assert len(cloud.refusals) - refused <= PLACES + PLACES // 5
        assert b.driver.made == QUOTA
        cloud.quota = 100
        await b.settle(EVERY.total_seconds() + 60)
        assert phases(b) == {"Pending": 100}
        assert b.driver.made == 100
