"""Who else takes part in an update in place, played on the bench: set, people, and node agent."""

from __future__ import annotations

from mcm.api.core import NODES, Node
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_UPDATE_FAILED_REASON,
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
)
from mcm.controllers.in_place_marks import Stage, in_place_condition
from tests.unit.machine.bench import Bench

CANDIDATE: dict[str, str | None] = {LABEL_CANDIDATE_FOR_UPDATE: "true"}
SELECTED: dict[str, str | None] = {LABEL_SELECTED_FOR_UPDATE: "true"}
BOTH = CANDIDATE | SELECTED
NEITHER: dict[str, str | None] = dict.fromkeys(BOTH)


async def label(b: Bench, labels: dict[str, str | None], name: str = "m") -> None:
    """The set, or a person, asks."""
    patch: JSONObject = {"metadata": {"labels": labels}}
    await b.client.patch(NODES, b.driver.node_name(name), patch)


async def select(b: Bench, name: str = "m") -> None:
    await label(b, BOTH, name)


async def report(b: Bench, result: str | None, *, reason: str = "", name: str = "m") -> None:
    """The node agent says what came of it."""
    metadata: JSONObject = {"labels": {LABEL_UPDATE_RESULT: result}}
    if reason:
        metadata["annotations"] = {ANNOTATION_UPDATE_FAILED_REASON: reason}
    await b.client.patch(NODES, b.driver.node_name(name), {"metadata": metadata})


async def hand_over(b: Bench, name: str = "m") -> None:
    """The new set owns the machine: it takes all marks off and uncordons, in one write."""
    metadata: JSONObject = {
        "labels": {**NEITHER, LABEL_UPDATE_RESULT: None},
        "annotations": {ANNOTATION_UPDATE_FAILED_REASON: None},
    }
    patch: JSONObject = {"metadata": metadata, "spec": {"unschedulable": False}}
    await b.client.patch(NODES, b.driver.node_name(name), patch)


async def until_stage(
    b: Bench, stage: Stage | None, name: str = "m", *, within: float = 60.0
) -> float:
    async def reached() -> bool:
        return stage_of(await b.node(name)) == stage

    return await b.until(reached, within=within)


def stage_of(node: Node) -> str | None:
    condition = in_place_condition(node)
    return condition.reason if condition else None


def stages_written(b: Bench) -> list[str | None]:
    """The steps in the order in which they were written on the Node."""
    found: list[str | None] = []
    for write in b.written("nodes", "node-m"):
        status = write.body.get("status")
        if not isinstance(status, dict) or write.status != 200:
            continue
        conditions = status["conditions"]
        found += [c.get("reason") for c in conditions if c["type"] == "InPlaceUpdate"]
    return found


def phases_written(b: Bench) -> list[str]:
    found: list[str] = []
    for write in b.written("machines", "m"):
        status = write.body.get("status")
        current = status.get("currentStatus") if isinstance(status, dict) else None
        if isinstance(current, dict) and "phase" in current and write.status == 200:
            found.append(current["phase"])
    return found
