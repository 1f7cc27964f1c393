from __future__ import annotations

import pytest

from tests.envtest.bench import Bench, Document
from tests.envtest.contract.objects import config_map, machine


async def _fill(api: Bench, *names: str) -> None:
    for name in names:
        await api.create(api.config_maps(), config_map(name))


async def test_a_list_is_in_order_of_the_names_and_has_a_version(api: Bench) -> None:
    await _fill(api, "c", "a", "b")
    listed = await api.get(api.config_maps())
    assert (listed["kind"], listed["apiVersion"]) == ("ConfigMapList", "v1")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["a", "b", "c"]
    newest = max(int(item["metadata"]["resourceVersion"]) for item in listed["items"])
    assert int(listed["metadata"]["resourceVersion"]) >= newest


async def test_an_empty_collection_is_an_empty_list(api: Bench) -> None:
    listed = await api.get(api.machines())
    assert listed["items"] == []
    assert (listed["kind"], listed["apiVersion"]) == ("MachineList", "machine.sapcloud.io/v1alpha1")


async def test_pages_are_of_one_revision_and_cover_everything(api: Bench) -> None:
    await _fill(api, "a", "b", "c", "d", "e")
    first = await api.get(api.config_maps(), limit="2")
    await _fill(api, "aa", "f")
    await api.delete(api.config_maps("e"))
    second = await api.get(
        api.config_maps(), limit="2", **{"continue": first["metadata"]["continue"]}
    )
    third = await api.get(
        api.config_maps(), limit="2", **{"continue": second["metadata"]["continue"]}
    )
    pages = [_names(page) for page in (first, second, third)]
    assert pages == [["a", "b"], ["c", "d"], ["e"]]
    assert len({page["metadata"]["resourceVersion"] for page in (first, second, third)}) == 1
    counts = [page["metadata"].get("remainingItemCount") for page in (first, second, third)]
    assert counts == [3, 1, None]
    assert not third["metadata"].get("continue")


async def test_with_a_selector_nobody_counts_the_rest(api: Bench) -> None:
    for name in ("a", "b", "c"):
        await api.create(api.config_maps(), config_map(name, {"x": "y"}))
    page = await api.get(api.config_maps(), limit="1", labelSelector="x=y")
    assert "remainingItemCount" not in page["metadata"]
    assert page["metadata"]["continue"]


async def test_a_limit_is_ignored_when_a_cache_may_answer(api: Bench) -> None:
    for name in ("a", "b"):
        await api.create(api.machines(), machine(name))
    version = await api.version(api.machines())
    fresh = await api.get(
        api.machines(), resourceVersion=version, resourceVersionMatch="NotOlderThan"
    )
    listed = await api.get(api.machines(), limit="1", resourceVersion="0")
    assert len(listed["items"]) == len(fresh["items"]) == 2
    assert not listed["metadata"].get("continue")


async def test_a_continue_token_expires_with_a_compaction_and_offers_another(api: Bench) -> None:
    await _fill(api, "a", "b", "c")
    page = await api.get(api.config_maps(), limit="1")
    await _fill(api, "d")
    await api.peer.compact()
    answer = await api.send(
        "GET", api.config_maps(), limit="1", **{"continue": page["metadata"]["continue"]}
    )
    assert (answer.status, answer.reason) == (410, "Expired")
    fresh = answer.body["metadata"]["continue"]
    rest = await api.get(api.config_maps(), **{"continue": fresh})
    assert _names(rest) == ["b", "c", "d"]


async def test_an_old_state_can_be_read_until_it_is_compacted(api: Bench) -> None:
    await _fill(api, "a")
    then = await api.version(api.config_maps())
    await _fill(api, "b")
    exact = {"resourceVersion": then, "resourceVersionMatch": "Exact"}
    listed = await api.get(api.config_maps(), **exact)
    assert (_names(listed), listed["metadata"]["resourceVersion"]) == (["a"], then)
    assert await api.names(
        api.config_maps(), resourceVersion=then, resourceVersionMatch="NotOlderThan"
    ) == ["a", "b"]
    await api.peer.compact()
    answer = await api.send("GET", api.config_maps(), **exact)
    assert (answer.status, answer.reason) == (410, "Expired")


@pytest.mark.parametrize(
    ("query", "status", "reason"),
    [
        ({"continue": "bogus"}, 400, "BadRequest"),
        ({"limit": "many"}, 400, "BadRequest"),
        ({"resourceVersionMatch": "Exact"}, 422, "Invalid"),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, 422, "Invalid"),
        ({"resourceVersionMatch": "Roughly", "resourceVersion": "1"}, 422, "Invalid"),
        ({"sendInitialEvents": "true"}, 422, "Invalid"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
async def test_options_that_contradict_each_other_are_refused(
    api: Bench, query: dict[str, str], status: int, reason: str
) -> None:
    answer = await api.send("GET", api.machines(), **query)
    assert (answer.status, answer.reason) == (status, reason)


async def test_a_version_not_yet_reached_is_a_timeout_with_a_cause(api: Bench) -> None:
    future = str(int(await api.version(api.machines())) + 1_000_000)
    answer = await api.send(
        "GET", api.machines(), resourceVersion=future, resourceVersionMatch="NotOlderThan"
    )
    assert (answer.status, answer.reason) == (504, "Timeout")
    assert answer.causes == [("ResourceVersionTooLarge", "")]
    assert answer.body["details"]["retryAfterSeconds"] == 1


async def test_one_object_can_be_read_from_the_cache(api: Bench) -> None:
    created = await api.create(api.machines(), machine("m"))
    version = created["metadata"]["resourceVersion"]
    assert await api.get(api.machines("m"), resourceVersion=version) == created


def _names(listed: Document) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]
