from __future__ import annotations

import pytest

from tests.envtest.bench import Bench
from tests.envtest.contract.objects import config_map, finalizer, machine

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
STREAM_LIST = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}


async def test_a_watch_from_a_version_tells_what_came_after(api: Bench) -> None:
    await api.create(api.machines(), machine("before"))
    version = await api.version(api.machines())
    await api.create(api.machines(), machine("m"))
    await api.patch(api.machines("m"), {"metadata": {"labels": {"a": "b"}}})
    async with api.watch(api.machines(), resourceVersion=version) as watch:
        await api.delete(api.machines("m"))
        assert await watch.take(3) == [("ADDED", "m"), ("MODIFIED", "m"), ("DELETED", "m")]


async def test_the_event_of_a_deletion_has_a_version_of_its_own(api: Bench) -> None:
    created = await api.create(api.machines(), machine("m"))
    version = created["metadata"]["resourceVersion"]
    async with api.watch(api.machines(), resourceVersion=version) as watch:
        await api.delete(api.machines("m"))
        kind, last = await watch.next()
    assert kind == "DELETED"
    assert int(last["metadata"]["resourceVersion"]) > int(version)
    assert last["spec"] == created["spec"]


@pytest.mark.parametrize("version", ["", "0"])
async def test_a_watch_from_nowhere_starts_with_what_there_is(api: Bench, version: str) -> None:
    await api.create(api.machines(), machine("a"))
    await api.create(api.machines(), machine("b"))
    await api.get(  # the cache has both now
        api.machines(),
        resourceVersion=await api.version(api.machines()),
        resourceVersionMatch="NotOlderThan",
    )
    async with api.watch(api.machines(), resourceVersion=version) as watch:
        assert sorted(await watch.take(2)) == [("ADDED", "a"), ("ADDED", "b")]
        await api.create(api.machines(), machine("c"))
        assert await watch.take(1) == [("ADDED", "c")]


async def test_a_list_can_be_streamed_and_its_end_is_marked(api: Bench) -> None:
    for name in ("a", "b"):
        await api.create(api.machines(), machine(name))
    version = await api.version(api.machines())
    options = {**STREAM_LIST, "allowWatchBookmarks": "true"}
    async with api.watch(api.machines(), **options) as watch:
        events, mark = await watch.until_bookmark()
        assert sorted((kind, obj["metadata"]["name"]) for kind, obj in events) == [
            ("ADDED", "a"),
            ("ADDED", "b"),
        ]
        assert mark["metadata"]["annotations"][INITIAL_EVENTS_END] == "true"
        assert int(mark["metadata"]["resourceVersion"]) >= int(version)
        await api.create(api.machines(), machine("c"))
        assert await watch.take(1) == [("ADDED", "c")]


@pytest.mark.parametrize(
    "query",
    [
        {"sendInitialEvents": "true"},
        {"sendInitialEvents": "true", "resourceVersionMatch": "Exact", "resourceVersion": "1"},
        {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
    ],
    ids=str,
)
async def test_streaming_options_that_make_no_sense_are_refused(
    api: Bench, query: dict[str, str]
) -> None:
    answer = await api.send("GET", api.machines(), watch="1", timeoutSeconds="1", **query)
    assert (answer.status, answer.reason) == (422, "Invalid")


async def test_a_watch_ends_by_itself_when_its_time_is_over(api: Bench) -> None:
    version = await api.version(api.machines())
    async with api.watch(api.machines(), resourceVersion=version, timeoutSeconds="1") as watch:
        assert await watch.rest() == []


async def test_a_bookmark_comes_before_the_end_and_says_how_far_the_watch_got(api: Bench) -> None:
    version = await api.version(api.machines())
    options = {"allowWatchBookmarks": "true", "timeoutSeconds": "4", "resourceVersion": version}
    async with api.watch(api.machines(), **options) as watch:
        created = await api.create(api.machines(), machine("m"))
        events = await watch.rest()
    kinds = [kind for kind, _ in events]
    assert kinds[0] == "ADDED" and "BOOKMARK" in kinds[1:]
    mark = events[-1][1]
    assert (mark["kind"], mark["apiVersion"]) == ("Machine", "machine.sapcloud.io/v1alpha1")
    assert int(mark["metadata"]["resourceVersion"]) >= int(created["metadata"]["resourceVersion"])


async def test_without_being_asked_for_there_are_no_bookmarks(api: Bench) -> None:
    version = await api.version(api.machines())
    async with api.watch(api.machines(), resourceVersion=version, timeoutSeconds="4") as watch:
        assert await watch.rest() == []


async def test_a_watch_from_a_compacted_version_is_gone(api: Bench) -> None:
    await api.create(api.config_maps(), config_map("a"))
    version = await api.version(api.config_maps())
    await api.create(api.config_maps(), config_map("b"))
    await api.create(api.config_maps(), config_map("c"))
    await api.peer.compact()
    async with api.watch(api.config_maps(), resourceVersion=version) as watch:
        kind, status = await watch.next()
    assert (kind, status["kind"]) == ("ERROR", "Status")
    assert (status["code"], status["reason"]) == (410, "Expired")


async def test_a_watch_from_the_current_version_survives_a_compaction(api: Bench) -> None:
    await api.create(api.config_maps(), config_map("a"))
    version = await api.version(api.config_maps())
    await api.peer.compact()
    async with api.watch(api.config_maps(), resourceVersion=version) as watch:
        await api.create(api.config_maps(), config_map("b"))
        assert await watch.take(1) == [("ADDED", "b")]


async def test_objects_enter_and_leave_a_selection_as_if_made_and_deleted(api: Bench) -> None:
    version = await api.version(api.machines())
    async with api.watch(api.machines(), resourceVersion=version, labelSelector="pool=a") as watch:
        await api.create(api.machines(), machine("m", {"pool": "b"}))
        entered = await api.patch(api.machines("m"), {"metadata": {"labels": {"pool": "a"}}})
        await api.patch(api.machines("m"), {"metadata": {"labels": {"more": "x"}}})
        left = await api.patch(api.machines("m"), {"metadata": {"labels": {"pool": "c"}}})
        await api.delete(api.machines("m"))
        events = [await watch.next() for _ in range(3)]
    assert [kind for kind, _ in events] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [obj["metadata"]["resourceVersion"] for _, obj in events]
    assert versions[0] == entered["metadata"]["resourceVersion"]
    assert versions[2] == left["metadata"]["resourceVersion"]
    assert events[2][1]["metadata"]["labels"] == {"pool": "a", "more": "x"}


async def test_one_object_can_be_watched_by_its_name(api: Bench) -> None:
    version = await api.version(api.machines())
    async with api.watch(
        api.machines(), resourceVersion=version, fieldSelector="metadata.name=m"
    ) as watch:
        await api.create(api.machines(), machine("other"))
        await api.create(api.machines(), machine("m"))
        assert await watch.take(1) == [("ADDED", "m")]


async def test_a_deletion_held_up_by_a_finalizer_is_two_events(api: Bench) -> None:
    created = await api.create(api.machines(), finalizer(machine("m"), "example.org/hold"))
    version = created["metadata"]["resourceVersion"]
    async with api.watch(api.machines(), resourceVersion=version) as watch:
        await api.delete(api.machines("m"))
        await api.patch(api.machines("m"), {"metadata": {"finalizers": None}})
        assert await watch.take(2) == [("MODIFIED", "m"), ("DELETED", "m")]


async def test_writes_that_change_nothing_make_no_event(api: Bench) -> None:
    created = await api.create(api.machines(), machine("m", {"a": "b"}))
    version = created["metadata"]["resourceVersion"]
    async with api.watch(api.machines(), resourceVersion=version) as watch:
        await api.patch(api.machines("m"), {"metadata": {"labels": {"a": "b"}}})
        await api.put(api.machines("m"), created)
        await api.patch(api.machines("m"), {"metadata": {"labels": {"a": "c"}}})
        _, changed = await watch.next()
    assert changed["metadata"]["labels"] == {"a": "c"}
