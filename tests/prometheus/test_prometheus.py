"""A real Prometheus scrapes a fleet in trouble: alerts fire, and every query finds something."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcm.clock import SystemClock
from tests.metrics.table import families
from tests.prometheus import dashboard, rules
from tests.prometheus.server import Prometheus, scraping
from tests.prometheus.troubled_fleet import troubled_fleet, waiting_replica

MUST_FIRE = frozenset(
    {
        "McmNoLeader",
        "McmQueueStuck",
        "McmMachinesFailToJoin",
        "McmDrainBlocked",
        "McmMachineSetFrozen",
        "McmApiErrors",
        "McmOrphanVms",
        "McmCreationBackoff",
        "McmRolloutStopped",
    }
)
_PATIENCE = 60.0
_LOOK_EVERY = 0.5
_SUFFIXES = ("", "_bucket", "_count", "_sum")


@dataclass
class Seen:
    """What the Prometheus knew."""

    fired: set[str]
    targets: list[dict[str, Any]]
    rule_errors: Mapping[str, str]
    metrics: set[str]
    up: list[str]
    duplicates: list[str]
    unanswered: list[str]
    """Places of the dashboard that had nothing to show."""


@pytest.fixture(scope="module")
def seen(binaries: Path, tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """One fleet with many troubles, watched until each of them was told."""
    folder = tmp_path_factory.mktemp("prometheus")
    logging.getLogger("mcm").setLevel(logging.CRITICAL)  # it has much to say
    try:
        return asyncio.run(_watch(binaries, folder))
    finally:
        logging.getLogger("mcm").setLevel(logging.NOTSET)


async def _watch(binaries: Path, folder: Path) -> Seen:
    text = rules.shortened(rules.FILE.read_text())
    async with troubled_fleet() as working, waiting_replica() as waiting:
        ports = {"working": working, "waiting": waiting}
        async with scraping(binaries / "prometheus", folder, ports, text) as prometheus:
            fired = await _until_fired(prometheus)
            unanswered = await _unanswered(prometheus)
            found = await prometheus.query('count by (__name__) ({__name__!=""})')
            return Seen(
                fired=fired,
                targets=await prometheus.targets(),
                rule_errors=await prometheus.troubled_rules(),
                metrics={series["metric"]["__name__"] for series in found},
                up=[s["value"][1] for s in await prometheus.query("up")],
                duplicates=[
                    line
                    for line in (folder / "log").read_text().splitlines()
                    if "duplicate" in line or "out-of-order" in line
                ],
                unanswered=unanswered,
            )


async def _until_fired(prometheus: Prometheus) -> set[str]:
    clock, fired = SystemClock(), set[str]()
    deadline = clock.monotonic() + _PATIENCE
    while not fired >= MUST_FIRE and clock.monotonic() < deadline:
        await clock.sleep(_LOOK_EVERY)
        fired |= await prometheus.firing()
    return fired


async def _unanswered(prometheus: Prometheus) -> list[str]:
    """Ask what each panel asks, of all instances and within the last seconds."""
    found = []
    for place, query in dashboard.queries():
        asked = re.sub(r"\$(namespace|job|instance)", ".*", rules.shortened(query))
        if not await prometheus.query(asked):
            found.append(place)
    return found


def test_both_replicas_are_scraped_without_complaint(seen: Seen) -> None:
    assert seen.up == ["1", "1"]
    assert [target["lastError"] for target in seen.targets] == ["", ""]
    assert seen.duplicates == []


@pytest.mark.parametrize("alert", sorted(MUST_FIRE))
def test_an_alert_fires_on_its_trouble(seen: Seen, alert: str) -> None:
    assert alert in seen.fired


def test_every_rule_can_be_evaluated(seen: Seen) -> None:
    assert seen.rule_errors == {}


def test_every_metric_of_every_alert_is_scraped(seen: Seen) -> None:
    read = {name for rule in rules.shipped() for name in rules.metrics_in(rule.expr)}
    assert read <= seen.metrics


def test_what_is_scraped_is_what_the_table_names(seen: Seen) -> None:
    possible = {f"{name}{suffix}" for name in families() for suffix in _SUFFIXES}
    own = {m for m in seen.metrics if not m.startswith(("scrape_", "ALERTS")) and m != "up"}
    assert own <= possible


def test_every_panel_of_the_dashboard_has_something_to_show(seen: Seen) -> None:
    assert seen.unanswered == []
