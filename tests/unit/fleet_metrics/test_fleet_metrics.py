"""The kept lines of the fleet equal a fresh collection, whatever happened, and cost little."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from mcm import prometheus_text
from mcm.api.core import NodeCondition
from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    ClassSpec,
    CurrentStatus,
    DeploymentStrategy,
    Machine,
    MachineDeployment,
    MachineDeploymentSpec,
    MachineDeploymentStatus,
    MachineSet,
    MachineSetSpec,
    MachineSetStatus,
    MachineSpec,
    MachineStatus,
    RollingUpdate,
)
from mcm.api.meta import ObjectMeta, Resource, T
from mcm.client.client import Client
from mcm.clock import Clock, SystemClock
from mcm.controllers.fleet_metrics.fleet import SLICE, FleetMetrics
from mcm.informers.factory import InformerFactory
from tests.unit.fleet_metrics.fresh_collection import FleetCollector


class Fleet:
    """Mirrors that are fed by hand, and what is kept about them."""

    def __init__(self, clock: Clock | None = None) -> None:
        absent = cast("Client", _NoClient())
        self.informers = InformerFactory(absent, clock=SystemClock())
        self.registry = CollectorRegistry()
        self.metrics = FleetMetrics(
            self.informers, clock=clock or SystemClock(), registry=self.registry
        )
        self._version = 0

    def put(self, obj: Machine | MachineSet | MachineDeployment) -> None:
        match obj:
            case Machine():
                self._put(MACHINES, obj)
            case MachineSet():
                self._put(MACHINE_SETS, obj)
            case MachineDeployment():
                self._put(MACHINE_DEPLOYMENTS, obj)

    def _put(self, resource: Resource[T], obj: T) -> None:
        self._version += 1
        meta, version = obj.metadata, str(self._version)
        fields = msgspec.structs.asdict(cast("msgspec.Struct", obj))
        fields["metadata"] = msgspec.structs.replace(meta, uid=meta.name, resource_version=version)
        informer = self.informers.informer(resource)
        informer.deliver(informer.store.put(resource.type(**fields)))

    def remove(self, kind: int, name: str) -> None:
        self._version += 1
        for informer in self.informers.informers()[kind : kind + 1]:
            gone = informer.store.remove(f"ns/{name}", uid=name, version=str(self._version))
            informer.deliver(gone)

    async def shown(self) -> str:
        return b"".join(await self.metrics.exposition()).decode()

    def fresh(self) -> CollectorRegistry:
        registry = CollectorRegistry()
        registry.register(FleetCollector(self.informers))
        return registry


class _NoClient:
    field_manager = "mcm"


_names = st.sampled_from(["a", "b", "c", "d"])
_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ['"', "\\", "\n", '\\n"', "aws:///eu/i-1", "é"]
)
_numbers = st.integers(0, 2**31 - 1)
_conditions = st.lists(
    st.builds(
        NodeCondition,
        type=_texts,
        status=st.sampled_from(["True", "False", "Unknown", "", "odd"]),
    ),
    max_size=3,
    unique_by=lambda condition: condition.type,
).map(tuple)
_metas = st.builds(
    ObjectMeta,
    name=_names,
    namespace=st.just("ns"),
    creation_timestamp=st.none() | st.just(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
)
_machines = st.builds(
    Machine,
    metadata=_metas,
    spec=st.builds(
        MachineSpec,
        provider_id=_texts,
        class_=st.builds(ClassSpec, api_group=_texts, kind=_texts, name=_texts),
    ),
    status=st.builds(
        MachineStatus,
        conditions=_conditions,
        current_status=st.builds(
            CurrentStatus, phase=st.sampled_from(["", "Running", "Failed", "Terminating", "odd"])
        ),
    ),
)
_sets = st.builds(
    MachineSet,
    metadata=_metas,
    spec=st.builds(MachineSetSpec, replicas=_numbers),
    status=st.builds(MachineSetStatus, replicas=_numbers, ready_replicas=_numbers),
)
_deployments = st.builds(
    MachineDeployment,
    metadata=_metas,
    spec=st.builds(MachineDeploymentSpec, replicas=_numbers, paused=st.booleans()),
    status=st.builds(MachineDeploymentStatus, replicas=_numbers, unavailable_replicas=_numbers),
)
_steps = st.one_of(
    st.tuples(st.just("put"), _machines | _sets | _deployments),
    st.tuples(st.just("remove"), st.tuples(st.integers(0, 2), _names)),
    st.just(("scrape", None)),
)


@given(st.lists(_steps, max_size=25))
@settings(deadline=None)
def test_what_is_kept_equals_a_fresh_collection(steps: list[tuple[str, object]]) -> None:
    async def scenario() -> None:
        fleet = Fleet()
        for what, argument in [*steps, ("scrape", None)]:
            match what, argument:
                case "put", Machine() | MachineSet() | MachineDeployment() as obj:
                    fleet.put(obj)
                case "remove", (int(kind), str(name)):
                    fleet.remove(kind, name)
                case _:
                    shown = await fleet.shown()
                    fresh = generate_latest(fleet.fresh()).decode()
                    assert by_family(shown) == by_family(fresh)

    asyncio.run(scenario())


def by_family(text: str) -> dict[str, list[str]]:
    """The sorted lines of each family, which must stand together."""
    families: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.split("\n"):
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in families
            current = families[name] = []
        current.append(line)
    return {name: sorted(lines) for name, lines in families.items()}


async def test_openmetrics_wants_the_same_lines() -> None:
    fleet = Fleet()
    fleet.put(_machine(1, provider_id='x"\\'))
    fresh = generate_openmetrics(fleet.fresh()).decode()  # type: ignore[no-untyped-call]
    assert by_family(await fleet.shown() + "# EOF\n") == by_family(fresh)


async def test_what_is_shown_can_be_read() -> None:
    fleet = Fleet()
    fleet.put(_machine(1, provider_id='x"\\\n'))
    families = {f.name: f for f in text_string_to_metric_families(await fleet.shown())}
    [info] = families["mcm_machine_info"].samples
    assert info.labels["spec_provider_id"] == 'x"\\\n'
    assert families["mcm_machine_items_total"].samples[0].value == 1


async def test_a_scrape_renders_what_changed_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rendered: list[str] = []

    def counted(name: str, labels: dict[str, str], value: float) -> str:
        if name == "mcm_machine_info":
            rendered.append(labels["name"])
        return prometheus_text.line(name, labels, value)

    monkeypatch.setattr("mcm.controllers.fleet_metrics.fleet.line", counted)
    fleet = Fleet()
    for number in range(1000):
        fleet.put(_machine(number))
    await fleet.shown()
    assert len(rendered) == 1000
    rendered.clear()
    await fleet.shown()
    assert rendered == []
    fleet.put(_machine(7, provider_id="new"))
    fleet.put(_machine(8, provider_id="new"))
    fleet.put(_machine(8, provider_id="newer"))
    await fleet.shown()
    assert sorted(rendered) == ["m7", "m8"]


class Counting:
    """A clock that sees how often the loop may turn."""

    def __init__(self) -> None:
        self.turns = 0

    def now(self) -> datetime:
        raise AssertionError("nobody needs to know")

    def monotonic(self) -> float:
        raise AssertionError("nobody needs to know")

    async def sleep(self, seconds: float) -> None:
        assert seconds == 0
        self.turns += 1


async def test_the_loop_turns_while_a_large_fleet_is_rendered() -> None:
    clock = Counting()
    fleet = Fleet(clock)
    for number in range(10 * SLICE):
        fleet.put(_machine(number))
    await fleet.metrics.exposition()
    assert clock.turns == 10
    await fleet.metrics.exposition()
    assert clock.turns == 10


async def test_two_scrapes_at_once_both_show_all() -> None:
    fleet = Fleet()
    for number in range(5 * SLICE):
        fleet.put(_machine(number))
    shown: Iterable[str] = await asyncio.gather(fleet.shown(), fleet.shown())
    assert [text.count("mcm_machine_info{") for text in shown] == [5 * SLICE] * 2


def _machine(number: int, *, provider_id: str = "") -> Machine:
    return Machine(
        metadata=ObjectMeta(name=f"m{number}", namespace="ns"),
        spec=MachineSpec(provider_id=provider_id),
    )


async def test_an_object_that_makes_no_sense_costs_its_own_lines_only() -> None:
    fleet = Fleet()
    odd = RollingUpdate(max_surge="some", max_unavailable=1)
    for name, update in (("odd", odd), ("fine", RollingUpdate(max_surge="50%", max_unavailable=0))):
        spec = MachineDeploymentSpec(replicas=4, strategy=DeploymentStrategy(rolling_update=update))
        meta = ObjectMeta(name=name, namespace="ns")
        fleet.put(MachineDeployment(metadata=meta, spec=spec))
    shown = await fleet.shown()
    surge = "mcm_machine_deployment_info_spec_rolling_update_max_surge"
    assert f'{surge}{{name="fine",namespace="ns"}} 2.0\n' in shown
    assert '"odd"' not in shown
    assert "mcm_machine_deployment_items_total 2.0\n" in shown
    where = {"kind": "Machinedeployment-count", "binary": "machine-controller-manager"}
    assert fleet.registry.get_sample_value("mcm_misc_scrape_failure_total", where) == 1
