"""What is shown is what the table says: every family, its type, its labels; no other."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from mcm.api.core import PODS
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation, name_of
from mcm.simulation.virtualtime import run_virtual
from tests.metrics.exposition import complete, shown
from tests.metrics.table import families

_IMPLIED = frozenset({"le", "quantile"})
_UNBOUNDED = frozenset({"url", "createdAt", "version"})


class Shown:
    """An exposition, read: families by the names that Prometheus sees."""

    def __init__(self, text: bytes) -> None:
        parsed = list(parse_text(text.decode()))
        self.names = re.findall("^# TYPE (.*) .*$", text.decode(), re.MULTILINE)
        self.families: Mapping[str, Metric] = dict(zip(self.names, parsed, strict=True))

    def labels(self, name: str) -> set[str]:
        return {k for s in self.families[name].samples for k in s.labels} - _IMPLIED

    def values(self, name: str, label: str) -> set[str]:
        return {s.labels[label] for s in self.families[name].samples if label in s.labels}


@pytest.fixture(scope="module")
def lived() -> tuple[Shown, Shown, bytes]:
    """A fleet that ran and rolled, then the same after it was deleted; the first as OpenMetrics."""
    results: list[bytes] = []

    async def main() -> None:
        async with Simulation(seed=7) as sim:
            complete(sim)
            await sim.apply(samples.load())
            await sim.until(lambda: sim.running() == 3, within=120)
            [deployment] = sim.objects(MACHINE_DEPLOYMENTS)
            spec = {"minReadySeconds": 5, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 3}
            rolling = {"maxSurge": "34%", "maxUnavailable": "67%"}
            await sim.client.patch(
                MACHINE_DEPLOYMENTS,
                name_of(deployment),
                {"spec": {**spec, "strategy": {"rollingUpdate": rolling}}},
                namespace="default",
            )
            await sim.pass_time(60)
            machine = name_of(sim.objects(MACHINES)[0])
            await sim.client.delete(MACHINES, machine, namespace="default")
            await sim.pass_time(120)
            results.append(b"".join((await shown(sim)).pieces))
            accept = "application/openmetrics-text; version=1.0.0"
            results.append(b"".join((await shown(sim, accept=accept)).pieces))
            await sim.client.delete(MACHINE_DEPLOYMENTS, name_of(deployment), namespace="default")
            for pod in sim.objects(PODS):
                await sim.client.delete(PODS, name_of(pod), namespace="default")
            await sim.until(lambda: not sim.objects(MACHINES), within=900)
            await sim.pass_time(30)
            results.append(b"".join((await shown(sim)).pieces))

    run_virtual(main)
    alive, openmetrics, gone = results
    return Shown(alive), Shown(gone), openmetrics


def test_every_family_is_in_the_table_and_every_row_is_shown(
    lived: tuple[Shown, Shown, bytes],
) -> None:
    assert sorted(lived[0].names) == sorted(families())


def test_types_are_those_of_the_table(lived: tuple[Shown, Shown, bytes]) -> None:
    shown_types = {name: f.type for name, f in lived[0].families.items()}
    assert shown_types == {name: row.type for name, row in families().items()}


@pytest.mark.parametrize("when", [0, 1], ids=["a fleet", "no fleet"])
def test_labels_are_those_of_the_table(lived: tuple[Shown, Shown, bytes], when: int) -> None:
    seen = lived[0] if when == 0 else lived[1]
    for name, row in families().items():
        assert seen.labels(name) in (set(row.labels), set()), name


def test_most_families_have_values(lived: tuple[Shown, Shown, bytes]) -> None:
    empty = {name for name, f in lived[0].families.items() if not f.samples}
    assert empty == {
        "mcm_drain_handovers_total",
        "mcm_drain_requests_total",
        "mcm_endpoints_authorization_total",
        "mcm_endpoints_certificate_rotations_total",
        "mcm_machine_creation_held_back_machines",
        "mcm_machine_deployment_failed_machines",
        "mcm_machine_deployment_info_spec_rollback_to_revision",
        "mcm_machine_deployment_status_collision_count",
        "mcm_machine_set_failed_machines",
        "mcm_machine_set_status_condition",
        "mcm_reflector_failures_total",
        "mcm_shard_info",
        "rest_client_request_retries_total",
    }


def test_percentages_are_shown_as_machines(lived: tuple[Shown, Shown, bytes]) -> None:
    prefix = "mcm_machine_deployment_info_spec_rolling_update"
    values = [
        lived[0].families[f"{prefix}_{which}"].samples[0].value
        for which in ("max_surge", "max_unavailable")
    ]
    assert values == [2, 2]


def test_what_is_gone_left_no_series(lived: tuple[Shown, Shown, bytes]) -> None:
    of_objects = {
        name
        for name, row in families().items()
        if {"name", "namespace"} <= set(row.labels) and "cluster" not in row.labels
    }
    of_deployments = {n for n, row in families().items() if "machine_deployment" in row.labels}
    left = {
        name: lived[1].families[name].samples
        for name in of_objects | of_deployments
        if lived[1].families[name].samples
    }
    assert left == {}
    assert len(of_objects) > 25 and len(of_deployments) == 6


def test_no_label_of_a_request_names_an_object(lived: tuple[Shown, Shown, bytes]) -> None:
    urls = lived[0].values("rest_client_request_latency_seconds", "url")
    assert "/api/v1/nodes/{name}" in urls
    names = lived[0].values("mcm_machine_info", "name") | {"machine-controller-manager"}
    assert not [url for url in urls for name in names if name in url]


def test_there_are_no_twins_that_say_when_a_counter_was_made(
    lived: tuple[Shown, Shown, bytes],
) -> None:
    assert b"_created" not in lived[2]
    assert not [name for name in lived[0].names if name.endswith("_created")]


def test_openmetrics_holds_the_same_families(lived: tuple[Shown, Shown, bytes]) -> None:
    read = parse_openmetrics(lived[2].decode())  # type: ignore[no-untyped-call]
    parsed = {f.name: f.type for f in read}
    expected = {
        name.removesuffix("_total") if row.type == "counter" else name: row.type
        for name, row in families().items()
    }
    # It knows no counter without the suffix.
    assert parsed == {**expected, "mcm_machine_num_failed_join": "unknown"}
