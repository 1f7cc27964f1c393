from __future__ import annotations

from collections import deque

from mcm.api.core import PersistentVolume, Secret
from mcm.api.machine import MachineClass
from mcm.api.meta import ObjectMeta
from mcm.clock import LoopClock
from mcm.controllers.machine.draining.volume_ids import PATIENCE, RETRY, VolumeIds
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.provider import Provider
from mcm.controllers.settings import ControllerSettings
from mcm.driver import (
    Code,
    DriverError,
    GetVolumeIDsRequest,
    GetVolumeIDsResponse,
    UnsupportedDriver,
)
from mcm.fence import Unfenced
from mcm.informers.store import Store
from tests.unit.machine.bench import EPOCH, on_bench
from tests.unit.machine.objects import class_, machine


class Driver(UnsupportedDriver):
    """Answers with what stands in the volume, after ``latency`` seconds."""

    def __init__(self, clock: LoopClock) -> None:
        self._clock = clock
        self.asked: list[str] = []
        self.latency = 0.0
        self.failures: deque[DriverError] = deque()

    async def get_volume_ids(self, request: GetVolumeIDsRequest) -> GetVolumeIDsResponse:
        (spec,) = request.pv_specs
        self.asked.append(str(spec["id"]))
        if self.latency:
            await self._clock.sleep(self.latency)
        if self.failures:
            raise self.failures.popleft()
        return GetVolumeIDsResponse((str(spec["id"]),) if spec["id"] else ())


class Desk:
    """The resolver, its driver, and the volumes that are mirrored."""

    def __init__(self, driver: UnsupportedDriver | None = None) -> None:
        self.clock = LoopClock(EPOCH)
        self.driver = Driver(self.clock)
        self.classes: Store[MachineClass] = Store()
        self.volumes: Store[PersistentVolume] = Store()
        secrets: Store[Secret] = Store()
        self.classes.put(class_())
        control = ControlCluster(
            machines=Store(),
            classes=self.classes,
            secrets=secrets,
            client=None,  # type: ignore[arg-type]
            writer=None,  # type: ignore[arg-type]
            events=None,  # type: ignore[arg-type]
            clock=self.clock,
            defaults=ControllerSettings(),
        )
        gate = Provider(driver or self.driver, clock=self.clock, fence=Unfenced())  # type: ignore[arg-type]
        self.ids = VolumeIds(control, gate, self.volumes)

    def volume(self, name: str, *, version: str = "1", uid: str = "u", id_: str = "") -> None:
        self.volumes.put(
            PersistentVolume(
                metadata=ObjectMeta(name=name, uid=uid, resource_version=version),
                spec={"flexVolume": {}, "id": id_ or f"id-{name}"},
            )
        )

    async def learn(self) -> dict[str, tuple[str, ...]]:
        await self.ids.learn(machine(), self.volumes.list())
        return dict(self.ids.known)


@on_bench
async def test_a_volume_is_asked_for_once_until_it_changes_or_goes() -> None:
    desk = Desk()
    desk.volume("a")
    desk.volume("b")
    assert await desk.learn() == {"a": ("id-a",), "b": ("id-b",)}
    await desk.learn()
    assert desk.driver.asked == ["id-a", "id-b"]
    desk.volume("a", version="2", id_="other")
    assert (await desk.learn())["a"] == ("other",)
    desk.volume("b", version="3", uid="another volume of that name", id_="new")
    assert (await desk.learn())["b"] == ("new",)
    assert len(desk.driver.asked) == 4
    desk.volumes.remove("a", uid="u", version="4")
    assert set(await desk.learn()) == {"b"}


@on_bench
async def test_a_volume_that_the_provider_does_not_know_is_not_asked_for_again() -> None:
    desk = Desk()
    desk.volumes.put(
        PersistentVolume(
            metadata=ObjectMeta(name="a", uid="u", resource_version="1"),
            spec={"flexVolume": {}, "id": ""},
        )
    )
    assert await desk.learn() == {}
    await desk.clock.sleep(10 * RETRY)
    assert await desk.learn() == {}
    assert len(desk.driver.asked) == 1


@on_bench
async def test_a_driver_without_the_verb_is_asked_once() -> None:
    desk = Desk(UnsupportedDriver())
    desk.volume("a")
    desk.volume("b")
    assert await desk.learn() == {}
    desk = Desk()
    desk.driver.failures.append(DriverError(Code.UNIMPLEMENTED, "no"))
    desk.volume("a")
    desk.volume("b")
    assert await desk.learn() == {}
    await desk.clock.sleep(10 * RETRY)
    await desk.learn()
    assert desk.driver.asked == ["id-a"]


@on_bench
async def test_a_failure_is_asked_about_again_after_a_while() -> None:
    desk = Desk()
    desk.driver.failures.append(DriverError(Code.UNAVAILABLE, "later"))
    desk.volume("a")
    assert await desk.learn() == {}
    await desk.clock.sleep(RETRY - 1)
    assert await desk.learn() == {}
    assert len(desk.driver.asked) == 1
    await desk.clock.sleep(1)
    assert await desk.learn() == {"a": ("id-a",)}


@on_bench
async def test_a_driver_that_hangs_holds_a_drain_up_for_a_moment_and_not_in_each_pass() -> None:
    desk = Desk()
    desk.driver.latency = 3600
    for name in "abc":
        desk.volume(name)
    began = desk.clock.monotonic()
    assert await desk.learn() == {}
    assert desk.clock.monotonic() - began <= PATIENCE + 0.1
    assert len(desk.driver.asked) == 1
    desk.driver.latency = 0
    assert await desk.learn() == {"b": ("id-b",), "c": ("id-c",)}


@on_bench
async def test_slow_answers_are_kept_though_time_is_up_before_the_last() -> None:
    desk = Desk()
    desk.driver.latency = 2
    for name in "abcd":
        desk.volume(name)
    assert await desk.learn() == {"a": ("id-a",), "b": ("id-b",)}
    assert set(await desk.learn()) == {"a", "b", "d"}, "the third is asked again later"


@on_bench
async def test_without_its_class_nobody_can_be_asked() -> None:
    desk = Desk()
    desk.classes.remove(class_().metadata.key, uid=class_().metadata.uid, version="9")
    assert not desk.classes
    desk.volume("a")
    assert await desk.learn() == {}
    assert desk.driver.asked == []
