from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from mcm.sandbox.apiserver.garbage.collector import (
    USER_AGENT,
    GarbageCollector,
    controller_reference,
)
from mcm.simulation.virtualtime import run_virtual
from tests.unit.sandbox_core.workbench import (
    CONFIG_MAPS,
    DEFINITIONS,
    NODES,
    SECRETS,
    WIDGETS,
    Document,
    Workbench,
    config_map,
    owned_by,
    virtual_workbench,
    widget,
)

Scene = Callable[[Workbench], Awaitable[None]]


def collected(scene: Scene, *, late: bool = False) -> None:
    """Play a scene beside a running collector; ``late``: it starts when the scene is over."""

    async def main() -> None:
        api = virtual_workbench()
        api.define_widgets()
        collector = GarbageCollector(api.server)
        if late:
            await scene(api)
        task = asyncio.create_task(collector.run())
        if not late:
            await scene(api)
        await settle(api)
        task.cancel()
        await asyncio.wait({task})

    run_virtual(main)


async def settle(api: Workbench) -> None:
    """Let the collector finish; it never waits, so no time passes."""
    before = -1
    while before != api.server.store.revision:
        before = api.server.store.revision
        for _ in range(20):
            await api.clock.sleep(0)


def family(api: Workbench, *, blocks: bool = False) -> tuple[Document, Document, Document]:
    """A widget that owns a widget that owns a config map."""
    top = api.create(WIDGETS, widget("top"))
    middle = api.create(WIDGETS, owned_by(top, widget("middle"), blocks=blocks))
    leaf = api.create(CONFIG_MAPS, owned_by(middle, config_map("leaf"), blocks=blocks))
    return top, middle, leaf


def hold(obj: Document) -> Document:
    return {**obj, "metadata": {**obj["metadata"], "finalizers": ["x/y"]}}


def release(api: Workbench, path: str) -> None:
    left = [f for f in api.get(path)["metadata"]["finalizers"] if f != "x/y"]
    api.patch(path, {"metadata": {"finalizers": left}})


def test_dependents_follow_their_owner_generation_by_generation() -> None:
    async def scene(api: Workbench) -> None:
        family(api)
        await settle(api)
        api.delete(f"{WIDGETS}/top")
        assert not api.gone(f"{WIDGETS}/middle")
        await settle(api)
        assert api.gone(f"{WIDGETS}/middle")
        assert api.gone(f"{CONFIG_MAPS}/leaf")

    collected(scene)


def test_what_happened_before_the_collector_ran_counts() -> None:
    apis: list[Workbench] = []

    async def scene(api: Workbench) -> None:
        family(api)
        api.delete(f"{WIDGETS}/top")
        await settle(api)
        assert not api.gone(f"{WIDGETS}/middle")
        apis.append(api)

    collected(scene, late=True)
    assert apis[0].gone(f"{WIDGETS}/middle")
    assert apis[0].gone(f"{CONFIG_MAPS}/leaf")


def test_an_owner_deleted_in_the_foreground_goes_last() -> None:
    async def scene(api: Workbench) -> None:
        top, middle, _ = family(api, blocks=True)
        api.create(CONFIG_MAPS, owned_by(middle, hold(config_map("held")), blocks=True))
        body = api.delete(f"{WIDGETS}/top", {"propagationPolicy": "Foreground"})
        assert body["metadata"]["finalizers"] == ["foregroundDeletion"]
        await settle(api)
        # The middle waits for what is held, the top for the middle.
        middle_now = api.get(f"{WIDGETS}/middle")
        assert middle_now["metadata"]["finalizers"] == ["foregroundDeletion"]
        assert api.gone(f"{CONFIG_MAPS}/leaf")
        assert api.get(f"{WIDGETS}/top")["metadata"]["uid"] == top["metadata"]["uid"]
        release(api, f"{CONFIG_MAPS}/held")
        await settle(api)
        assert api.names(WIDGETS) == []

    collected(scene)


def test_only_dependents_that_block_are_waited_for() -> None:
    async def scene(api: Workbench) -> None:
        top = api.create(WIDGETS, widget("top"))
        api.create(CONFIG_MAPS, owned_by(top, hold(config_map("slow"))))
        api.delete(f"{WIDGETS}/top", {"propagationPolicy": "Foreground"})
        await settle(api)
        assert api.gone(f"{WIDGETS}/top")
        assert "deletionTimestamp" in api.get(f"{CONFIG_MAPS}/slow")["metadata"]

    collected(scene)


def test_orphans_lose_their_reference_and_live() -> None:
    async def scene(api: Workbench) -> None:
        family(api)
        api.delete(f"{WIDGETS}/top", {"propagationPolicy": "Orphan"})
        assert not api.gone(f"{WIDGETS}/top")
        await settle(api)
        assert api.gone(f"{WIDGETS}/top")
        assert "ownerReferences" not in api.get(f"{WIDGETS}/middle")["metadata"]
        assert not api.gone(f"{CONFIG_MAPS}/leaf")

    collected(scene)


def test_an_object_with_another_owner_loses_only_the_reference() -> None:
    async def scene(api: Workbench) -> None:
        first = api.create(WIDGETS, widget("first"))
        second = api.create(WIDGETS, widget("second"))
        api.create(CONFIG_MAPS, owned_by(second, owned_by(first, config_map("shared"))))
        api.delete(f"{WIDGETS}/first")
        await settle(api)
        (reference,) = api.get(f"{CONFIG_MAPS}/shared")["metadata"]["ownerReferences"]
        assert reference["uid"] == second["metadata"]["uid"]

    collected(scene)


def test_an_object_born_without_its_owner_is_deleted() -> None:
    async def scene(api: Workbench) -> None:
        owner = api.create(WIDGETS, widget("owner"))
        api.delete(f"{WIDGETS}/owner")
        api.create(WIDGETS, widget("owner"))  # the same name is not the same object
        api.create(CONFIG_MAPS, owned_by(owner, config_map("late")))
        await settle(api)
        assert api.gone(f"{CONFIG_MAPS}/late")

    collected(scene)


def test_an_owner_in_another_namespace_is_none() -> None:
    async def scene(api: Workbench) -> None:
        other = "/api/v1/namespaces/kube-system/configmaps"
        owner = api.create(other, config_map("owner"))
        api.create(CONFIG_MAPS, owned_by(owner, config_map("far")))
        node = api.create(NODES, {"metadata": {"name": "n"}})
        api.create(CONFIG_MAPS, owned_by(node, config_map("near")))
        await settle(api)
        assert api.gone(f"{CONFIG_MAPS}/far")
        assert not api.gone(f"{CONFIG_MAPS}/near")

    collected(scene)


def test_an_owner_of_an_unknown_kind_cannot_be_judged() -> None:
    async def scene(api: Workbench) -> None:
        owner = {"apiVersion": "x/v1", "kind": "Poem", "metadata": {"name": "p", "uid": "1"}}
        api.create(CONFIG_MAPS, owned_by(owner, config_map("verse")))
        await settle(api)
        assert not api.gone(f"{CONFIG_MAPS}/verse")

    collected(scene)


def test_an_owner_that_went_with_its_definition_is_gone_for_sure() -> None:
    async def scene(api: Workbench) -> None:
        owner = api.create(WIDGETS, widget("owner"))
        api.create(CONFIG_MAPS, owned_by(owner, config_map("left")))
        await settle(api)
        api.delete(f"{DEFINITIONS}/widgets.toys.example")
        await settle(api)
        assert api.gone(f"{CONFIG_MAPS}/left")

    collected(scene)


def test_an_adopted_object_is_followed_and_a_released_one_is_not() -> None:
    async def scene(api: Workbench) -> None:
        owner = api.create(WIDGETS, widget("owner"))
        api.create(CONFIG_MAPS, config_map("adopted"))
        adopted = owned_by(owner, config_map("adopted"))["metadata"]["ownerReferences"]
        api.patch(f"{CONFIG_MAPS}/adopted", {"metadata": {"ownerReferences": adopted}})
        api.create(CONFIG_MAPS, owned_by(owner, config_map("released")))
        api.patch(f"{CONFIG_MAPS}/released", {"metadata": {"ownerReferences": None}})
        await settle(api)
        api.delete(f"{WIDGETS}/owner")
        await settle(api)
        assert api.names(CONFIG_MAPS) == ["released"]

    collected(scene)


def test_a_circle_of_owners_does_not_wait_for_itself() -> None:
    async def scene(api: Workbench) -> None:
        first = api.create(WIDGETS, widget("first"))
        second = api.create(WIDGETS, owned_by(first, widget("second"), blocks=True))
        back = owned_by(second, widget("first"), blocks=True)["metadata"]["ownerReferences"]
        api.patch(f"{WIDGETS}/first", {"metadata": {"ownerReferences": back}})
        api.delete(f"{WIDGETS}/first", {"propagationPolicy": "Foreground"})
        await settle(api)
        assert api.names(WIDGETS) == []

    collected(scene)


def test_collecting_is_counted_under_its_own_name_and_steady_state_costs_nothing() -> None:
    async def scene(api: Workbench) -> None:
        family(api)
        await settle(api)
        assert api.server.requests.total(agent=USER_AGENT) == 0
        for index in range(10):
            api.patch(f"{WIDGETS}/middle/status", {"status": {"replicas": index}})
        await settle(api)
        assert api.server.requests.total(agent=USER_AGENT) == 0
        api.delete(f"{WIDGETS}/top")
        await settle(api)
        assert api.server.requests.writes(agent=USER_AGENT) == 2

    collected(scene)


def test_a_large_family_is_collected() -> None:
    async def scene(api: Workbench) -> None:
        owner = api.create(WIDGETS, widget("owner"))
        for index in range(100):
            api.create(SECRETS, owned_by(owner, {"metadata": {"name": f"s{index}"}}))
        api.delete(f"{WIDGETS}/owner")
        await settle(api)
        assert api.names(SECRETS) == []

    collected(scene)


def test_a_refusal_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(api: Workbench) -> None:
        owner = api.create(WIDGETS, widget("owner"))
        api.create("/api/v1/namespaces", {"metadata": {"name": "n"}})
        reference = owned_by(owner, config_map("x"))["metadata"]["ownerReferences"]
        api.patch("/api/v1/namespaces/default", {"metadata": {"ownerReferences": reference}})
        await settle(api)
        assert not api.gone("/api/v1/namespaces/default")

    with caplog.at_level(logging.WARNING):
        collected(scene)
    assert "garbage collection was refused" in caplog.text


def test_a_controllers_reference_names_its_owner(toys: Workbench) -> None:
    owner = toys.create(WIDGETS, widget("owner"))
    reference = controller_reference(owner)
    assert reference["uid"] == owner["metadata"]["uid"]
    assert (reference["controller"], reference["blockOwnerDeletion"]) == (True, True)
    child = config_map("child")
    child["metadata"]["ownerReferences"] = [reference]
    toys.create(CONFIG_MAPS, child)
