"""What a driver may do to us, and what becomes of it."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, NoReturn, cast

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from mcm.clock import LoopClock
from mcm.controllers.provider import DriverMetrics, Provider, ProviderFailed
from mcm.controllers.provider.bounded import CANCEL_GRACE
from mcm.driver import (
    Code,
    CreateMachineRequest,
    CreateMachineResponse,
    DeleteMachineRequest,
    Driver,
    DriverError,
    GetMachineStatusRequest,
    InitializeMachineRequest,
    ListMachinesRequest,
    ListMachinesResponse,
    UnsupportedDriver,
    UpdateMachineRequest,
    UpdateMachineResponse,
)
from mcm.fence import Fence, Unfenced
from mcm.leaderelection import LeadershipLost
from mcm.simulation.virtualtime import run_virtual
from tests.unit.machine.bench import EPOCH, ScriptedDriver
from tests.unit.machine.objects import class_, machine

PASSWORD = "correct-horse-battery"
VM = CreateMachineResponse("cloud:///m", "node-m")

Answer = Callable[[], Awaitable[Any]]


def request(name: str = "m") -> CreateMachineRequest:
    named = msgspec.structs.replace(class_(), provider="cloud")
    return CreateMachineRequest(machine(name), named, {"password": PASSWORD.encode()})


class LeaseUntil(Fence):
    """A lease that is held until a moment, unless that moment is moved."""

    def __init__(self, clock: LoopClock, end: float) -> None:
        self._clock = clock
        self.end = end

    def check(self) -> None:
        if not self.time_left():
            raise LeadershipLost("not leading")

    def time_left(self) -> float:
        return max(0.0, self.end - self._clock.monotonic())


class Doing(UnsupportedDriver):
    """A driver whose creations do whatever they are told."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked = 0

    async def create_machine(self, request: CreateMachineRequest) -> Any:
        self.asked += 1
        return await self.answer()


def gate(
    driver: Answer | Doing | Driver,
    *,
    fence: Fence | None = None,
    registry: CollectorRegistry | None = None,
) -> Provider:
    return Provider(
        cast("Driver", Doing(driver) if callable(driver) else driver),
        clock=LoopClock(EPOCH),
        fence=fence or Unfenced(),
        metrics=DriverMetrics.of(registry) if registry else None,
        limit=60.0,
    )


def virtual(test: Callable[[LoopClock], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        run_virtual(lambda: test(LoopClock(EPOCH)))

    del run.__wrapped__  # pytest would take the clock for a fixture
    return run


async def failure_of(answer: Answer) -> ProviderFailed:
    with pytest.raises(ProviderFailed) as caught:
        await gate(answer).create(request())
    return caught.value


async def forever() -> NoReturn:
    await asyncio.Event().wait()
    raise AssertionError


# ---- measured -----------------------------------------------------------------------------------


@virtual
async def test_calls_are_timed_and_failures_counted_by_code(clock: LoopClock) -> None:
    registry = CollectorRegistry()
    driver = ScriptedDriver(clock)
    provider = gate(driver, registry=registry)
    driver.latency = 3.0
    await provider.create(request())
    driver.fail("create", Code.RESOURCE_EXHAUSTED)
    with pytest.raises(ProviderFailed) as caught:
        await provider.create(request())
    assert caught.value.code is Code.RESOURCE_EXHAUSTED
    labels = {"provider": "cloud", "operation": "create_machine"}
    name = "mcm_cloud_api_driver_request_duration_seconds"
    assert registry.get_sample_value(f"{name}_count", labels) == 2
    assert registry.get_sample_value(f"{name}_sum", labels) == 6.0
    labels["error_code"] = "ResourceExhausted"
    failed = "mcm_cloud_api_driver_requests_failed_total"
    assert registry.get_sample_value(failed, labels) == 1


@virtual
async def test_a_call_that_hangs_ends_and_cancellation_is_no_failure(clock: LoopClock) -> None:
    registry = CollectorRegistry()
    driver = ScriptedDriver(clock)
    driver.latency = 1e6
    provider = gate(driver, registry=registry)
    with pytest.raises(ProviderFailed) as caught:
        await provider.create(request())
    assert caught.value.code is Code.DEADLINE_EXCEEDED
    assert "create_machine did not answer within 60 s" in caught.value.text
    assert clock.monotonic() == 60.0
    call = asyncio.create_task(provider.create(request()))
    await clock.sleep(1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    labels = {"provider": "cloud", "operation": "create_machine"}
    failed = "mcm_cloud_api_driver_requests_failed_total"
    counted = registry.get_sample_value(failed, {**labels, "error_code": "DeadlineExceeded"})
    assert counted == 1
    assert registry.get_sample_value(failed, {**labels, "error_code": "Internal"}) is None


# ---- what a driver may answer -------------------------------------------------------------------


def answering(value: object) -> Answer:
    async def answer() -> object:
        return value

    return answer


def raising(error: BaseException) -> Answer:
    async def answer() -> object:
        raise error

    return answer


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "create_machine returned None instead of CreateMachineResponse"),
        ("cloud:///m", "returned a value of type str instead of CreateMachineResponse"),
        (ListMachinesResponse({}), "returned a value of type ListMachinesResponse instead of"),
        (CreateMachineResponse(None, "n"), "CreateMachineResponse with None as provider_id"),  # type: ignore[arg-type]
        (CreateMachineResponse("p", 5), "with a value of type int as node_name"),  # type: ignore[arg-type]
        (CreateMachineResponse("p", "n", addresses=("10.0.0.1",)), "of type tuple as addresses"),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_is_no_answer_to_the_verb_is_told_as_such(value: object, told: str) -> None:
    failure = run_virtual(lambda: failure_of(answering(value)))
    assert failure.code is Code.INTERNAL
    assert told in failure.text


@virtual
async def test_lists_are_looked_at_too(clock: LoopClock) -> None:
    class Listing(ScriptedDriver):
        async def list_machines(self, request: ListMachinesRequest) -> ListMachinesResponse:
            return ListMachinesResponse({"cloud:///m": None})  # type: ignore[dict-item]

    with pytest.raises(ProviderFailed, match="ListMachinesResponse with a value of type dict"):
        await gate(Listing(clock)).list(ListMachinesRequest(class_(), {}))


@virtual
async def test_a_verb_that_is_no_coroutine_function_is_told_as_such(clock: LoopClock) -> None:
    class Blocking(ScriptedDriver):
        def create_machine(self, request: CreateMachineRequest) -> Any:
            return VM

    with pytest.raises(ProviderFailed, match="no coroutine function"):
        await gate(Blocking(clock)).create(request())


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Wild(BaseException):
    pass


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (DriverError(Code.NOT_FOUND, "no such image"), Code.NOT_FOUND, "[no such image]"),
        (DriverError("NotFound", None), Code.UNKNOWN, "[None]"),  # type: ignore[arg-type]
        (TimeoutError("too slow"), Code.DEADLINE_EXCEEDED, "too slow"),
        (KeyError("size"), Code.UNKNOWN, "KeyError: 'size'"),
        (Unspeakable(), Code.UNKNOWN, "Unspeakable: <no text: RuntimeError>"),
        (Wild("grr"), Code.UNKNOWN, "Wild: grr"),
        (GeneratorExit(), Code.UNKNOWN, "GeneratorExit"),
        (SystemExit(3), Code.UNKNOWN, "the driver tried to end the process: 3"),
        (asyncio.CancelledError(), Code.INTERNAL, "ended as if it had been cancelled"),
        (ValueError("\ud800"), Code.UNKNOWN, "ValueError: ?"),
    ],
)  # fmt: skip
def test_whatever_a_driver_raises_becomes_a_failure(
    error: BaseException, code: Code, told: str
) -> None:
    failure = run_virtual(lambda: failure_of(raising(error)))
    assert failure.code is code
    assert told in failure.text
    failure.text.encode()


@virtual
async def test_a_driver_that_cancels_itself_does_not_cancel_us(clock: LoopClock) -> None:
    async def shoot_own_foot() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await clock.sleep(1)

    failure = await failure_of(shoot_own_foot)
    assert failure.code is Code.INTERNAL
    me = asyncio.current_task()
    assert me is not None
    assert not me.cancelling()


def test_an_error_code_that_asks_for_initialisation_keeps_what_it_carries() -> None:
    error = DriverError(
        Code.UNINITIALIZED, "half", provider_id="p", node_name="n", last_known_state="s"
    )
    known = run_virtual(lambda: failure_of(raising(error))).error
    assert known is not None
    assert (known.provider_id, known.node_name, known.last_known_state) == ("p", "n", "s")


def test_a_long_text_is_cut_and_can_be_read_back_all_the_same() -> None:
    failure = run_virtual(lambda: failure_of(raising(DriverError(Code.ABORTED, "x" * 1_000_000))))
    assert len(failure.text) < 2200
    assert failure.text.endswith("…]")


# ---- secrets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False])
def test_no_value_of_the_secret_gets_out(known: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Not in the text, not in the log, and not in a traceback that anybody makes of it later."""

    async def fail() -> None:
        try:
            raise KeyError(PASSWORD)
        except KeyError as inner:
            text = f"login as root:{PASSWORD} failed"
            raise DriverError(Code.UNAUTHENTICATED, text) if known else ValueError(text) from inner

    failure = run_virtual(lambda: failure_of(fail))
    assert "login as root:*** failed" in failure.text
    assert "login as root:*** failed" in str(failure.as_driver_error())
    shown = "".join(traceback.format_exception(failure))
    logged = " ".join(str(vars(record)) for record in caplog.records)
    assert PASSWORD not in shown + logged + repr(failure) + repr(failure.error)
    assert ("a driver raised what it must not" in logged) is not known
    assert known or "KeyError" in logged


def test_a_value_that_would_be_cut_in_two_is_masked_before() -> None:
    text = "x" * 2040 + PASSWORD
    failure = run_virtual(lambda: failure_of(raising(DriverError(Code.INTERNAL, text))))
    assert PASSWORD[:6] not in failure.text


@virtual
async def test_what_a_call_raises_after_its_time_is_logged_by_nobody(clock: LoopClock) -> None:
    told: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(str(context)))

    async def late() -> None:
        try:
            await forever()
        except asyncio.CancelledError:
            await clock.sleep(100)
            raise ValueError(PASSWORD) from None

    with pytest.raises(ProviderFailed, match=r"did not answer .* which the driver ignores"):
        await gate(late).create(request())
    await clock.sleep(200)
    import gc

    gc.collect()
    assert told == []


# ---- what the driver can ------------------------------------------------------------------------


def test_a_driver_can_update_if_it_has_such_a_verb_of_its_own() -> None:
    class Updating(UnsupportedDriver):
        async def update_machine(self, request: UpdateMachineRequest) -> UpdateMachineResponse:
            return UpdateMachineResponse()

    class FromBeforeThereWasSuchAVerb:
        async def create_machine(self, request: CreateMachineRequest) -> CreateMachineResponse:
            return VM

    assert gate(cast("Driver", Updating())).can_update
    assert not gate(cast("Driver", UnsupportedDriver())).can_update
    assert not gate(cast("Driver", FromBeforeThereWasSuchAVerb())).can_update


# ---- the fence ----------------------------------------------------------------------------------


@virtual
async def test_nothing_passes_a_closed_fence(clock: LoopClock) -> None:
    driver = ScriptedDriver(clock)
    provider = gate(driver, fence=LeaseUntil(clock, 0.0))
    m, c = machine(), class_()
    for call in (
        lambda: provider.create(CreateMachineRequest(m, c, {})),
        lambda: provider.initialize(InitializeMachineRequest(m, c, {})),
        lambda: provider.update(UpdateMachineRequest(m, c, {}, provider_id="cloud:///m")),
        lambda: provider.delete(DeleteMachineRequest(m, c, {})),
        lambda: provider.status(GetMachineStatusRequest(m, c, {})),
        lambda: provider.list(ListMachinesRequest(c, {})),
    ):
        with pytest.raises(LeadershipLost):
            await call()
    assert driver.calls == []


@virtual
async def test_a_call_is_cancelled_when_the_lease_is_lost_under_it(clock: LoopClock) -> None:
    registry, ended = CollectorRegistry(), list[float]()

    async def slow() -> object:
        try:
            await clock.sleep(50)
        finally:
            ended.append(clock.monotonic())
        return VM

    with pytest.raises(LeadershipLost):
        await gate(slow, fence=LeaseUntil(clock, 10.0), registry=registry).create(request())
    assert ended == [10.0]
    failed = registry.get_sample_value(
        "mcm_cloud_api_driver_requests_failed_total",
        {"provider": "cloud", "operation": "create_machine", "error_code": "Canceled"},
    )
    assert failed is None


@virtual
async def test_a_lease_renewed_meanwhile_lets_a_long_call_end(clock: LoopClock) -> None:
    lease = LeaseUntil(clock, 10.0)

    async def renew() -> None:
        while True:
            await clock.sleep(9)
            lease.end = clock.monotonic() + 10.0

    async def slow() -> object:
        await clock.sleep(50)
        return VM

    renewal = asyncio.create_task(renew())
    assert await gate(slow, fence=lease).create(request()) == VM
    assert clock.monotonic() == 50.0
    renewal.cancel()


@virtual
async def test_a_failure_after_the_lease_was_lost_is_the_loss(clock: LoopClock) -> None:
    """A driver that writes through our own client is stopped by the fence itself."""
    lease = LeaseUntil(clock, 10.0)

    async def stopped() -> None:
        lease.end = 0.0
        raise DriverError(Code.INTERNAL, "not leading")

    with pytest.raises(LeadershipLost):
        await gate(stopped, fence=lease).create(request())


@virtual
async def test_a_driver_that_swallows_the_cancellation_costs_seconds(clock: LoopClock) -> None:
    release = asyncio.Event()

    async def stubborn() -> object:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return VM

    with pytest.raises(LeadershipLost):
        await gate(stubborn, fence=LeaseUntil(clock, 10.0)).create(request())
    assert clock.monotonic() == 10.0 + CANCEL_GRACE
    release.set()


# ---- time, and our own cancellation -------------------------------------------------------------


@virtual
async def test_a_call_that_cannot_be_ended_is_never_joined_by_a_second(clock: LoopClock) -> None:
    release = asyncio.Event()

    async def stubborn() -> object:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return VM

    driver, registry = Doing(stubborn), CollectorRegistry()
    provider = gate(driver, registry=registry)
    with pytest.raises(ProviderFailed, match=r"did not answer .* which the driver ignores"):
        await provider.create(request())
    assert clock.monotonic() == 60.0 + CANCEL_GRACE
    with pytest.raises(ProviderFailed) as caught:
        await provider.create(request())
    assert caught.value.code is Code.INTERNAL
    assert "cancelled at 2026-01-01T00:01:00Z and still runs" in caught.value.text
    assert "machine ns/m" in caught.value.text
    assert driver.asked == 1
    assert registry.get_sample_value("mcm_cloud_api_driver_runaway_calls") == 1
    other = asyncio.create_task(provider.create(request("other")))
    await clock.sleep(1)
    assert driver.asked == 2
    release.set()
    assert await other == VM
    assert await provider.create(request()) == VM
    assert registry.get_sample_value("mcm_cloud_api_driver_runaway_calls") == 0


@virtual
async def test_an_answer_given_on_cancellation_counts(clock: LoopClock) -> None:
    async def hurried() -> object:
        try:
            await forever()
        except asyncio.CancelledError:
            return VM

    assert await gate(hurried).create(request()) == VM


@virtual
async def test_our_own_cancellation_ends_the_call_and_propagates(clock: LoopClock) -> None:
    cleaned = asyncio.Event()

    async def tidy() -> None:
        try:
            await forever()
        finally:
            await clock.sleep(1)
            cleaned.set()

    call = asyncio.create_task(gate(tidy).create(request()))
    await clock.sleep(5)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert call.cancelled()
    assert cleaned.is_set()


@virtual
async def test_a_second_cancellation_waits_for_nothing(
    clock: LoopClock,
) -> None:
    async def tidy() -> None:
        try:
            await forever()
        finally:
            await clock.sleep(2)

    provider = gate(tidy)
    call = asyncio.create_task(provider.create(request()))
    await clock.sleep(5)
    call.cancel()
    await clock.sleep(1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert clock.monotonic() == 6.0
    with pytest.raises(ProviderFailed, match="still runs"):
        await provider.create(request())
    await clock.sleep(2)
    call = asyncio.create_task(provider.create(request()))
    await clock.sleep(1)
    assert not call.done()
    call.cancel()
    await asyncio.wait({call})


@virtual
async def test_cancelled_at_any_moment_no_task_is_left(clock: LoopClock) -> None:
    async def steps() -> object:
        for _ in range(4):
            await clock.sleep(0)
        return VM

    for moment in range(10):
        call = asyncio.create_task(gate(steps).create(request()))
        for _ in range(moment):
            await clock.sleep(0)
        call.cancel()
        await asyncio.wait({call})
        await clock.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}


def test_the_names_of_calls_tell_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        name = ""

        async def named() -> object:
            nonlocal name
            task = asyncio.current_task()
            name = task.get_name() if task else ""
            return VM

        await gate(named).create(request())
        assert name == "create_machine machine ns/m"

    with caplog.at_level(logging.DEBUG):
        run_virtual(main)
    assert PASSWORD not in caplog.text
