from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from mcm.client.transport import Response
from mcm.simulation.virtualtime import run_virtual
from tests.unit.sandbox_core.workbench import (
    CONFIG_MAPS,
    PODS,
    WIDGETS,
    Document,
    Workbench,
    config_map,
    pod,
    virtual_workbench,
    widget,
)

Scene = Callable[[Workbench], Awaitable[None]]


def play(scene: Scene, *, window: int = 1000) -> None:
    async def main() -> None:
        await scene(virtual_workbench(window=window))

    run_virtual(main)


def revision(api: Workbench) -> str:
    return str(api.server.store.revision)


def test_a_watch_tells_what_happens_after_its_version() -> None:
    async def scene(api: Workbench) -> None:
        api.create(CONFIG_MAPS, config_map("before"))
        watch = api.watch(CONFIG_MAPS, resourceVersion=revision(api))
        api.create(CONFIG_MAPS, config_map("a"))
        api.patch(f"{CONFIG_MAPS}/a", {"data": {"x": "y"}})
        api.delete(f"{CONFIG_MAPS}/a")
        assert await watch.take(3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]

    play(scene)


def test_a_watch_catches_up_from_the_past() -> None:
    async def scene(api: Workbench) -> None:
        start = revision(api)
        api.create(CONFIG_MAPS, config_map("a"))
        api.delete(f"{CONFIG_MAPS}/a")
        api.create(CONFIG_MAPS, config_map("b"))
        watch = api.watch(CONFIG_MAPS, resourceVersion=start)
        api.create(CONFIG_MAPS, config_map("c"))
        assert await watch.take(4) == [
            ("ADDED", "a"),
            ("DELETED", "a"),
            ("ADDED", "b"),
            ("ADDED", "c"),
        ]

    play(scene)


@pytest.mark.parametrize("version", ["", "0"])
def test_a_watch_without_a_version_begins_with_what_there_is(version: str) -> None:
    async def scene(api: Workbench) -> None:
        api.create(CONFIG_MAPS, config_map("b"))
        api.create(CONFIG_MAPS, config_map("a"))
        watch = api.watch(CONFIG_MAPS, resourceVersion=version)
        api.delete(f"{CONFIG_MAPS}/b")
        assert await watch.take(3) == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "b")]

    play(scene)


def test_a_deletion_shows_the_last_state_under_its_own_version() -> None:
    async def scene(api: Workbench) -> None:
        obj = config_map("a", x="1")
        obj["metadata"]["finalizers"] = ["x/y"]
        api.create(CONFIG_MAPS, obj)
        api.delete(f"{CONFIG_MAPS}/a")
        watch = api.watch(CONFIG_MAPS, resourceVersion=revision(api))
        api.patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}})
        kind, last = await watch.next()
        assert (kind, last["metadata"]["resourceVersion"]) == ("DELETED", revision(api))
        # The write that removed the object was never stored.
        assert last["metadata"]["finalizers"] == ["x/y"]

    play(scene)


def test_objects_that_begin_or_cease_to_match_come_and_go() -> None:
    async def scene(api: Workbench) -> None:
        watch = api.watch(CONFIG_MAPS, labelSelector="on=yes", resourceVersion=revision(api))
        path = f"{CONFIG_MAPS}/a"
        api.create(CONFIG_MAPS, config_map("a"))
        api.patch(path, {"metadata": {"labels": {"on": "yes"}}})
        entered = revision(api)
        api.patch(path, {"data": {"x": "1"}})
        api.patch(path, {"metadata": {"labels": {"on": "no"}}, "data": {"x": "2"}})
        left = revision(api)
        api.patch(path, {"data": {"x": "3"}})
        api.delete(path)
        api.create(CONFIG_MAPS, config_map("b", labels={"on": "yes"}))
        events = [await watch.next() for _ in range(4)]
        assert [kind for kind, _ in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED"]
        assert events[0][1]["metadata"]["resourceVersion"] == entered
        # Gone from the selection: the state before, under the version of the change.
        assert events[2][1]["metadata"]["resourceVersion"] == left
        assert events[2][1]["metadata"]["labels"] == {"on": "yes"}
        assert events[2][1]["data"] == {"x": "1"}

    play(scene)


def test_a_watch_follows_fields_and_namespaces() -> None:
    async def scene(api: Workbench) -> None:
        start = revision(api)
        by_field = api.watch("/api/v1/pods", fieldSelector="spec.nodeName=n", resourceVersion=start)
        by_space = api.watch(PODS, resourceVersion=start)
        by_name = api.watch(PODS, resourceVersion=start, fieldSelector="metadata.name=b")
        api.create(PODS, pod("a"))
        api.create(PODS, pod("b", node="n"))
        api.create("/api/v1/namespaces/kube-system/pods", pod("c", node="n"))
        assert await by_field.take(2) == [("ADDED", "b"), ("ADDED", "c")]
        assert await by_space.take(2) == [("ADDED", "a"), ("ADDED", "b")]
        assert await by_name.take(1) == [("ADDED", "b")]

    play(scene)


def test_an_object_is_not_watched_by_its_own_path(api: Workbench) -> None:
    api.create(PODS, pod("p"))
    assert api.get(f"{PODS}/p", watch="true")["kind"] == "Pod"
    assert api.send("GET", f"{PODS}/q", watch="true").status == 404


# The end ----------------------------------------------------------------------------------------


def test_a_watch_ends_at_its_timeout() -> None:
    async def scene(api: Workbench) -> None:
        watch = api.watch(CONFIG_MAPS, timeoutSeconds="7", resourceVersion=revision(api))
        assert await watch.rest() == []
        assert api.clock.monotonic() == 7.0
        assert api.server.watch_count == 0

    play(scene)


def test_a_watch_that_says_nothing_lasts_half_an_hour_to_an_hour() -> None:
    async def scene(api: Workbench) -> None:
        watch = api.watch(CONFIG_MAPS, resourceVersion=revision(api))
        await watch.rest()
        assert 1800 <= api.clock.monotonic() < 3600

    play(scene)


def test_closing_a_watch_ends_its_reader_and_its_subscription_at_once() -> None:
    async def scene(api: Workbench) -> None:
        watch = api.watch(CONFIG_MAPS, resourceVersion=revision(api))
        reading = asyncio.create_task(watch.rest())
        await api.clock.sleep(0)
        assert api.server.watch_count == 1
        await watch.stream.aclose()
        assert await reading == []
        assert api.server.watch_count == 0
        assert api.server.store.collection("configmaps").subscribers == ()
        assert api.clock.monotonic() == 0.0

    play(scene)


def test_a_reader_that_falls_behind_loses_its_stream() -> None:
    async def scene(api: Workbench) -> None:
        api.server.settings.watch_buffer = 3
        watch = api.watch(CONFIG_MAPS, resourceVersion=revision(api))
        for name in "abcde":
            api.create(CONFIG_MAPS, config_map(name))
        assert [obj["metadata"]["name"] for _, obj in await watch.rest()] == ["a", "b", "c"]

    play(scene)


def test_the_initial_state_does_not_count_against_the_buffer() -> None:
    async def scene(api: Workbench) -> None:
        api.server.settings.watch_buffer = 1
        for index in range(600):
            api.create(CONFIG_MAPS, config_map(f"c{index}"))
        watch = api.watch(CONFIG_MAPS, timeoutSeconds="1")
        assert len(await watch.rest()) == 600

    play(scene)


def test_all_watches_can_be_ended() -> None:
    async def scene(api: Workbench) -> None:
        watches = [api.watch(CONFIG_MAPS), api.watch(PODS)]
        api.server.end_watches()
        assert [await watch.rest() for watch in watches] == [[], []]
        assert api.clock.monotonic() == 0.0

    play(scene)


def test_a_restart_ends_watches_and_forgets_history() -> None:
    async def scene(api: Workbench) -> None:
        start = revision(api)
        watch = api.watch(CONFIG_MAPS, resourceVersion=start)
        api.create(CONFIG_MAPS, config_map("a"))
        api.server.restart()
        assert [kind for kind, _ in await watch.rest()] == ["ADDED"]
        again = api.watch(CONFIG_MAPS, resourceVersion=start)
        assert [kind for kind, _ in await again.rest()] == ["ERROR"]

    play(scene)


# Versions ---------------------------------------------------------------------------------------


def test_a_version_that_is_no_longer_kept_is_an_error_event() -> None:
    async def scene(api: Workbench) -> None:
        start = revision(api)
        api.create(CONFIG_MAPS, config_map("a"))
        for index in range(5):
            api.patch(f"{CONFIG_MAPS}/a", {"data": {"x": str(index)}})
        watch = api.watch(CONFIG_MAPS, resourceVersion=start)
        ((kind, status),) = await watch.rest()
        assert kind == "ERROR"
        assert (status["code"], status["reason"]) == (410, "Expired")
        assert status["message"].startswith(f"too old resource version: {start} (")
        # The oldest version that still works is just before the oldest change kept.
        oldest = int(revision(api)) - 2
        assert len(await api.watch(CONFIG_MAPS, resourceVersion=str(oldest)).take(2)) == 2

    play(scene, window=2)


def test_a_compacted_version_can_be_an_http_error() -> None:
    async def scene(api: Workbench) -> None:
        start = revision(api)
        api.create(CONFIG_MAPS, config_map("a"))
        api.server.store.compact()
        api.server.settings.expired_watch_as_http = True
        answer = api.send("GET", CONFIG_MAPS, watch="1", resourceVersion=start)
        assert (answer.status, answer.body["reason"]) == (410, "Expired")
        assert api.server.watch_count == 0
        now = revision(api)
        await api.watch(CONFIG_MAPS, resourceVersion=now, timeoutSeconds="1").rest()

    play(scene)


def test_a_watch_from_the_future_is_silent_until_then() -> None:
    async def scene(api: Workbench) -> None:
        ahead = str(api.server.store.revision + 2)
        watch = api.watch(CONFIG_MAPS, resourceVersion=ahead, timeoutSeconds="5")
        for name in ("a", "b", "c", "d"):
            api.create(CONFIG_MAPS, config_map(name))
        assert [obj["metadata"]["name"] for _, obj in await watch.rest()] == ["c", "d"]

    play(scene)


def test_a_streamed_list_from_the_future_is_refused() -> None:
    async def scene(api: Workbench) -> None:
        request = api.request(
            "GET",
            CONFIG_MAPS,
            watch="true",
            resourceVersion="999",
            sendInitialEvents="true",
            resourceVersionMatch="NotOlderThan",
        )
        answer = await api.server.handle(request)
        assert isinstance(answer, Response)
        assert answer.status == 504
        assert api.clock.monotonic() == 3.0

    play(scene)


def test_every_spelling_of_true_starts_a_watch() -> None:
    async def scene(api: Workbench) -> None:
        for word in ("1", "t", "T", "true", "TRUE", "True"):
            answer = api.server.respond(api.request("GET", CONFIG_MAPS, watch=word))
            assert not isinstance(answer, Response)
        assert api.get(CONFIG_MAPS, watch="0")["kind"] == "ConfigMapList"
        api.server.end_watches()

    play(scene)


# Bookmarks --------------------------------------------------------------------------------------


def test_bookmarks_come_each_minute_and_just_before_the_end() -> None:
    async def scene(api: Workbench) -> None:
        watch = api.watch(
            CONFIG_MAPS,
            allowWatchBookmarks="true",
            timeoutSeconds="150",
            resourceVersion=revision(api),
        )
        api.create(PODS, pod("p"))  # another kind moves the revision, too
        seen: list[tuple[float, str, Document]] = []
        while True:
            try:
                kind, obj = await watch.next()
            except StopAsyncIteration:
                break
            seen.append((api.clock.monotonic(), kind, obj))
        assert [(when, kind) for when, kind, _ in seen] == [
            (60.0, "BOOKMARK"),
            (120.0, "BOOKMARK"),
            (148.0, "BOOKMARK"),
        ]
        assert seen[0][2] == {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": revision(api)},
        }

    play(scene)


def test_nobody_gets_bookmarks_unasked() -> None:
    async def scene(api: Workbench) -> None:
        watch = api.watch(CONFIG_MAPS, timeoutSeconds="300", resourceVersion=revision(api))
        assert await watch.rest() == []

    play(scene)


def test_a_streamed_list_ends_with_an_annotated_bookmark() -> None:
    async def scene(api: Workbench) -> None:
        api.create(CONFIG_MAPS, config_map("a"))
        watch = api.watch(
            CONFIG_MAPS,
            sendInitialEvents="true",
            resourceVersionMatch="NotOlderThan",
            allowWatchBookmarks="true",
        )
        assert await watch.take(1) == [("ADDED", "a")]
        kind, mark = await watch.next()
        assert kind == "BOOKMARK"
        assert mark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert mark["metadata"]["resourceVersion"] == revision(api)
        api.create(CONFIG_MAPS, config_map("b"))
        assert await watch.take(1) == [("ADDED", "b")]

    play(scene)


def test_a_watch_may_skip_the_initial_state() -> None:
    async def scene(api: Workbench) -> None:
        api.create(CONFIG_MAPS, config_map("a"))
        watch = api.watch(
            CONFIG_MAPS, sendInitialEvents="false", resourceVersionMatch="NotOlderThan"
        )
        api.create(CONFIG_MAPS, config_map("b"))
        assert await watch.take(1) == [("ADDED", "b")]

    play(scene)


@pytest.mark.parametrize(
    "query", [{"sendInitialEvents": "true"}, {"resourceVersionMatch": "NotOlderThan"}]
)
def test_options_of_a_streamed_list_come_together(api: Workbench, query: dict[str, str]) -> None:
    assert api.send("GET", CONFIG_MAPS, watch="true", **query).status == 422


# Order and sharing ------------------------------------------------------------------------------


def test_events_come_in_the_order_of_versions_exactly_once() -> None:
    async def scene(api: Workbench) -> None:
        watch = api.watch(CONFIG_MAPS, timeoutSeconds="5", resourceVersion=revision(api))
        rest = asyncio.create_task(watch.rest())
        for index in range(40):
            api.create(CONFIG_MAPS, config_map(f"c{index}"))
            if index % 3 == 0:
                await api.clock.sleep(0)
            api.patch(f"{CONFIG_MAPS}/c{index // 2}", {"data": {"n": str(index)}})
        versions = [int(obj["metadata"]["resourceVersion"]) for _, obj in await rest]
        assert len(versions) == 80
        assert versions == sorted(set(versions))

    play(scene)


def test_watches_of_one_form_share_the_bytes_of_an_event() -> None:
    async def scene(api: Workbench) -> None:
        first, second = api.watch(CONFIG_MAPS), api.watch("/api/v1/configmaps")
        api.create(CONFIG_MAPS, config_map("a"))
        assert first.stream._lines[0] is second.stream._lines[0]
        await first.stream.aclose()
        await second.stream.aclose()

    play(scene)


def test_a_table_watch_has_its_head_once() -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"

    async def scene(api: Workbench) -> None:
        api.define_widgets()
        watch = api.watch(WIDGETS, accept=table, allowWatchBookmarks="true", timeoutSeconds="90")
        api.create(WIDGETS, widget("v"))
        api.create(WIDGETS, widget("w", size=3))
        first, second, mark, _ = await watch.rest()
        assert [first[0], second[0], mark[0]] == ["ADDED", "ADDED", "BOOKMARK"]
        assert first[1]["kind"] == "Table"
        assert [c["name"] for c in first[1]["columnDefinitions"]] == ["Name", "Size"]
        assert second[1]["columnDefinitions"] is None
        assert second[1]["rows"][0]["cells"] == ["w", 3]
        assert mark[1]["metadata"]["resourceVersion"] == revision(api)
        assert mark[1]["rows"] == []

    play(scene)


def test_a_watch_of_metadata_leaves_the_rest_out() -> None:
    metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

    async def scene(api: Workbench) -> None:
        watch = api.watch(
            CONFIG_MAPS, accept=metadata, allowWatchBookmarks="true", timeoutSeconds="10"
        )
        api.create(CONFIG_MAPS, config_map("a", x="y"))
        (_, obj), (_, mark) = await watch.rest()
        assert obj.keys() == {"kind", "apiVersion", "metadata"}
        assert mark["kind"] == "PartialObjectMetadata"

    play(scene)
