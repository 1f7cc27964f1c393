"""The Go original ends at one of its recorded writes, and we go on from the objects it left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from mcm.api.core import NODES, SECRETS
from mcm.api.machine import MACHINES
from mcm.api.meta import Resource, T
from mcm.simulation.harness import phase_of
from tests.thoroughness import part_of
from tests.unit.machine.bench import Bench, bench, on_bench
from tests.unit.machine.takeover import recorded
from tests.unit.machine.takeover.actors import Kubelets

# The last machine goes with 736: afterwards there is nothing to take over.
LIFE = [e for e in recorded.events() if 229 <= e.version < 736]


def told_apart() -> Iterator[recorded.Event]:
    """The first of all events that leave the fleet in one kind of state."""
    seen = set()
    for event in LIFE:
        state = kind_of(recorded.at(event.version), event)
        if state not in seen:
            seen.add(state)
            yield event


def kind_of(moment: recorded.Moment, event: recorded.Event) -> tuple[object, ...]:
    """What there is of the machine that an event concerns, and what stands on it."""
    machine = moment.machines.get(event.name, {})
    node = moment.objects["nodes"].get(event.name, {})
    status = machine.get("status", {})
    text = status.get("lastOperation", {}).get("description", "").replace(event.name, "M")
    return (
        event.resource,
        event.kind,
        "deletionTimestamp" in machine.get("metadata", {}),
        bool(machine.get("metadata", {}).get("finalizers")),
        machine.get("spec", {}).get("providerID", "") != "",
        status.get("currentStatus", {}).get("phase"),
        text.partition(" in ")[0][:60],
        event.name in moment.vms,
        tuple(
            sorted((c["type"], c["status"]) for c in node.get("status", {}).get("conditions", ()))
        ),
        node.get("spec", {}).get("unschedulable", False),
        len(moment.tokens),
    )


CUTS = list(told_apart())


@pytest.mark.parametrize(
    "event", part_of(CUTS, one_in=4), ids=lambda e: f"{e.version}-{e.resource}-{e.kind}"
)
def test_whatever_stood_there_is_finished(event: recorded.Event) -> None:
    moment = recorded.at(event.version)
    staying = {n for n, m in moment.machines.items() if "deletionTimestamp" not in m["metadata"]}
    to_make = staying - moment.vms

    @on_bench
    async def main() -> None:
        async with bench(started=False, epoch=recorded.soon_after(moment)) as b:
            recorded.put(b.server, moment)
            b.driver.vms.update({name: f"fake:///{name}" for name in moment.vms})
            b.driver.node_names.update({name: name for name in moment.machines})
            kubelets = asyncio.create_task(Kubelets(b).run())
            await b.start()
            try:
                await until(b, lambda: as_wanted(b, staying))
                await b.settle(30)
            finally:
                kubelets.cancel()
            assert as_wanted(b, staying)
            assert b.driver.made == len(to_make)
            assert {n for n in b.driver.vms if n not in to_make} == staying - to_make
            assert tokens(b) == set(), "those of the original go with what they were made for"
            for name in moment.machines:
                assert len(b.written("machines", name)) <= 8, b.written("machines", name)
            b.writes.clear()
            await b.settle(1500)
            assert b.writes == []

    main()


async def until(b: Bench, condition: Callable[[], bool]) -> None:
    async def holds() -> bool:
        return condition()

    await b.until(holds, within=60)


def as_wanted(b: Bench, staying: set[str]) -> bool:
    phases = {str(m["metadata"]["name"]): phase_of(m) for m in documents(b, MACHINES)}
    return (
        phases == dict.fromkeys(staying, "Running")
        and set(b.driver.vms) == staying
        and set(names(b, NODES)) == staying
    )


def tokens(b: Bench) -> set[str]:
    return {name for name in names(b, SECRETS) if name.startswith("bootstrap-token-")}


def names(b: Bench, resource: Resource[T]) -> list[str]:
    return [str(o["metadata"]["name"]) for o in documents(b, resource)]


def documents(b: Bench, resource: Resource[T]) -> list[recorded.Document]:
    return b.objects(resource)
