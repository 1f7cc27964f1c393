"""What users see of a driver that misbehaves, and who finds out what came of a cancelled call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from mcm.api.core import SECRETS
from mcm.api.machine import MACHINES
from mcm.driver import Code, CreateMachineRequest, DriverError
from mcm.events import EVENTS
from mcm.fence import Fence
from mcm.leaderelection import LeadershipLost
from tests.unit.machine.bench import USER_DATA, Bench, bench, on_bench, with_settings

Misdeed = Callable[[], Awaitable[Any]]


class Gate(Fence):
    """A fence that a test closes."""

    open = True

    def check(self) -> None:
        if not self.open:
            raise LeadershipLost("not leading")

    def time_left(self) -> float:
        return 2.0 if self.open else 0.0


def misbehave(b: Bench, verb: str, misdeed: Misdeed) -> None:
    async def instead(_: object) -> object:
        b.driver.calls.append((verb, "misdeed"))
        return await misdeed()

    setattr(b.driver, verb, instead)


async def nothing() -> None:
    return None


async def cancelled() -> None:
    raise asyncio.CancelledError


async def ended() -> None:
    raise SystemExit(1)


@on_bench
@pytest.mark.parametrize("misdeed", [nothing, cancelled, ended])
@pytest.mark.parametrize("verb", ["create_machine", "get_machine_status", "initialize_machine"])
async def test_a_machine_says_how_its_driver_breaks_the_contract(
    verb: str, misdeed: Misdeed
) -> None:
    async with bench() as b:
        misbehave(b, verb, misdeed)
        await b.make_class()
        for n in range(20):
            await b.make_machine(f"m{n}")
        for n in range(20):  # more than there are workers to lose
            await b.until_phase("CrashLoopBackOff", f"m{n}")
        description = (await b.machine("m7")).status.last_operation.description
        assert verb in description or "tried to end the process: 1" in description
        assert "ProviderError" in b.events()


@on_bench
@pytest.mark.parametrize("misdeed", [nothing, cancelled, ended])
async def test_a_deletion_says_how_its_driver_breaks_the_contract(misdeed: Misdeed) -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        original = b.driver.delete_machine
        misbehave(b, "delete_machine", misdeed)
        await b.delete_machine()
        await b.settle(5)
        description = (await b.machine()).status.last_operation.description
        assert "delete_machine" in description or "end the process" in description
        assert description.endswith("Initiate VM deletion")
        b.driver.delete_machine = original  # type: ignore[method-assign]
        await b.until_gone(within=700)


@on_bench
async def test_no_value_of_the_classs_secret_is_shown_on_machine_event_or_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    async with bench() as b:
        await b.make_class()
        await b.settle()
        tokens: list[str] = []

        async def create(request: CreateMachineRequest) -> None:
            data = request.secret["userData"].decode()
            tokens.append(data.split()[2])
            if len(tokens) % 2:
                raise ValueError(f"bad {data} or {data.encode().hex()[:4]} {tokens[-1]}")
            raise DriverError(Code.INVALID_ARGUMENT, f"bad {data}")

        b.driver.create_machine = create  # type: ignore[method-assign,assignment]
        await b.make_machine()
        await b.settle(200)
        assert len(tokens) > 1
        stored = [*b.objects(MACHINES), *b.objects(EVENTS)]
        logged = [vars(record) for record in caplog.records if record.name.startswith("mcm.c")]
        shown = str(stored) + str(logged)
        assert "bad ***" in shown
        assert "a driver raised what it must not" in shown
        for secret in (*tokens, USER_DATA[:16], USER_DATA[-8:]):
            assert secret not in shown
        assert b.objects(SECRETS)


@on_bench
async def test_a_creation_cut_short_by_a_lost_lease_is_found_by_the_next_leader() -> None:
    async with bench(started=False) as b:
        b.fence = fence = Gate()
        await b.start()
        original = b.driver.create_machine

        async def create(request: CreateMachineRequest) -> object:
            made = await original(request)
            await b.clock.sleep(300)  # the VM exists, the answer takes its time
            return made

        b.driver.create_machine = create  # type: ignore[method-assign,assignment]
        await b.make_class()
        await b.make_machine()
        await b.settle(10)
        before = await b.machine()
        assert b.driver.made == 1
        fence.open = False
        await b.settle(30)
        after = await b.machine()
        assert after.metadata.resource_version == before.metadata.resource_version
        assert "ProviderError" not in b.events()
        assert b.driver.count("create") == 1
        await b.crash()

        b.driver.create_machine = original  # type: ignore[method-assign]
        b.fence = Gate()
        await b.start()
        await b.until_phase("Pending", within=30)
        assert (await b.machine()).spec.provider_id == b.driver.vms["m"]
        assert b.driver.made == 1


@on_bench
async def test_a_deletion_cut_short_by_a_lost_lease_is_ended_by_the_next_leader() -> None:
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.crash()
        b.fence = fence = Gate()
        await b.start()
        b.driver.latency = 300.0
        await b.delete_machine()
        await b.settle(10)
        assert b.driver.count("delete") == 1
        before = await b.machine()
        fence.open = False
        await b.settle(30)
        after = await b.machine()
        assert after.metadata.resource_version == before.metadata.resource_version
        await b.crash()
        b.driver.latency, b.fence = 0.0, Gate()
        await b.start()
        await b.until_gone(within=30)
        assert not b.driver.vms


@on_bench
async def test_no_orphan_is_collected_behind_a_closed_fence() -> None:
    async with bench(started=False) as b:
        b.fence = fence = Gate()
        await b.start()
        await b.make_class()
        b.driver.vms["lost"] = "cloud:///lost"
        await b.settle(250)
        assert b.driver.count("list") > 0
        fence.open = False
        await b.settle(3000)
        assert b.driver.vms == {"lost": "cloud:///lost"}
        assert b.driver.count("delete") == 0
        fence.open = True
        await b.settle(3000)
        assert not b.driver.vms


@on_bench
async def test_machines_are_made_in_order_of_arrival() -> None:
    async with bench(settings=with_settings(machine_concurrent_syncs=2)) as b:
        await b.make_class()
        await b.settle()
        b.driver.latency = 5.0
        for n in range(12):
            await b.make_machine(f"m{n:02}")
            await b.settle(0.1)
        await b.until_phase("Pending", "m11", within=200)
        made = [name for verb, name in b.driver.calls if verb == "status"]
        assert made == [f"m{n:02}" for n in range(12)]


@on_bench
async def test_a_class_with_slow_creations_holds_up_no_other() -> None:
    async with bench(settings=with_settings(machine_concurrent_syncs=10)) as b:
        original = b.driver.create_machine

        async def create(request: CreateMachineRequest) -> object:
            if request.machine_class.metadata.name == "slow":
                await b.clock.sleep(300)
            return await original(request)

        b.driver.create_machine = create  # type: ignore[method-assign,assignment]
        await b.make_class("slow")
        await b.make_class("quick", with_secret=False)
        await b.settle()
        b.driver.latency = 1.0
        for n in range(30):
            await b.make_machine(f"slow-{n}", class_="slow")
        await b.settle(5)
        for n in range(10):
            await b.make_machine(f"quick-{n}", class_="quick")
        assert await b.until_phase("Pending", "quick-9", within=299) < 60
        await b.settle(900)
        assert len(b.driver.vms) == 40
