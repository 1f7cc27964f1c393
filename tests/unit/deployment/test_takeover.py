"""Taking a fleet over from the Go original in the middle of anything.

The recorded objects are put before the controllers as they stood at some moment of a life: created,
scaled, rolled to another class, paused, resumed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject, KubeObject, Resource
from mcm.controllers import deployment, machineset
from tests.unit.machineset.cluster import Cluster, Running, Write, play

RECORDED = Path(__file__).parents[1] / "api" / "recorded"
RESOURCES = cast(
    "tuple[Resource[KubeObject], ...]", (MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES, NODES)
)
NAMESPACE = "default"


def events(plural: str) -> list[tuple[str, JSONObject]]:
    lines = (RECORDED / f"{plural}.jsonl").read_text().splitlines()
    return [(e["type"], e["object"]) for e in map(json.loads, lines)]


def meta(obj: JSONObject) -> dict[str, str]:
    return cast("dict[str, str]", obj["metadata"])


def version_of(moment: int) -> int:
    """The resource version of the deployment's event number ``moment``."""
    return int(meta(events("machinedeployments")[moment][1])["resourceVersion"])


def objects_at(resource: Resource[KubeObject], version: int) -> list[JSONObject]:
    found: dict[str, JSONObject] = {}
    for kind, obj in events(resource.plural):
        if int(meta(obj)["resourceVersion"]) > version:
            continue
        if kind == "DELETED":
            found.pop(meta(obj)["name"], None)
        else:
            found[meta(obj)["name"]] = obj
    return list(found.values())


def take_over(moment: int) -> list[Write]:
    """Return what the controllers write when they find the fleet as it was at ``moment``."""

    async def scenario() -> list[Write]:
        cluster = Cluster(namespace=NAMESPACE)
        for resource in RESOURCES:
            cluster.show(resource, objects_at(resource, version_of(moment)))
        built = (*deployment.build(cluster.context), *machineset.build(cluster.context))
        async with Running(cluster, built) as controllers:
            await controllers.settle(60)
        return cluster.writes

    return play(scenario)


@pytest.mark.parametrize(
    "moment", [8, 13, 41], ids=["all machines run", "scaled to 4", "updated, paused and resumed"]
)
def test_a_fleet_at_rest_is_not_written_to(moment: int) -> None:
    assert take_over(moment) == []


THE_UPDATE = 14


@pytest.mark.parametrize("moment", [m for m in range(4, 42) if m != THE_UPDATE])
def test_no_moment_makes_us_replace_what_need_not_be_replaced(moment: int) -> None:
    writes = take_over(moment)
    assert not [w for w in writes if w.verb == "create" and w.resource == "machinesets"]
    deleted = [w.name for w in writes if (w.verb, w.resource) == ("delete", "machines")]
    assert len(deleted) <= 1
    assert all(name.startswith("demo-785cb-") for name in deleted)  # of the former class


def test_an_update_is_carried_on_from_where_it_stood() -> None:
    """The original created the new set (16): the old one shrinks by the one machine that may be
    missing, as it did there."""
    sizes = [
        (w.name, w.body["spec"])
        for w in take_over(16)
        if w.resource == "machinesets" and "spec" in w.body
    ]
    assert sizes == [("demo-785cb", {"replicas": 3})]


def test_after_an_update_the_nodes_are_given_back_to_the_autoscaler() -> None:
    writes = take_over(33)
    assert {w.resource for w in writes} == {"nodes"}
    assert len(writes) == 3


def test_a_deletion_is_carried_on() -> None:
    writes = take_over(42)
    assert {w.name for w in writes if w.verb == "delete"} >= {"demo-64485", "demo-785cb"}
