from __future__ import annotations

import asyncio

import pytest

from mcm.client.errors import TooLargeResourceVersion, error_from_status
from mcm.client.transport import Response
from mcm.simulation.virtualtime import run_virtual
from tests.unit.sandbox_core.workbench import (
    CONFIG_MAPS,
    NODES,
    PODS,
    SECRETS,
    WIDGETS,
    Document,
    Workbench,
    config_map,
    pod,
    virtual_workbench,
    widget,
)

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


def fill(api: Workbench, count: int) -> None:
    for index in range(count):
        api.create(CONFIG_MAPS, config_map(f"c{index}", labels={"odd": str(index % 2)}))


def test_a_list_has_its_kind_and_the_revision_it_is_of(api: Workbench) -> None:
    fill(api, 2)
    body = api.get(CONFIG_MAPS)
    assert (body["kind"], body["apiVersion"]) == ("ConfigMapList", "v1")
    assert body["metadata"] == {"resourceVersion": str(api.server.store.revision)}
    assert api.names(CONFIG_MAPS) == ["c0", "c1"]


def test_items_of_built_in_lists_do_not_repeat_the_kind(toys: Workbench) -> None:
    obj = {"metadata": {"name": "a"}, "data": {"x": "y"}, "kind": "ConfigMap", "apiVersion": "v1"}
    toys.create(CONFIG_MAPS, obj)
    (item,) = toys.get(CONFIG_MAPS)["items"]
    assert item.keys() == {"metadata", "data"}
    (item,) = toys.delete(CONFIG_MAPS)["items"]
    assert item.keys() == {"metadata", "data"}
    toys.create(WIDGETS, widget("w"))
    (item,) = toys.get(WIDGETS)["items"]
    assert list(item)[:3] == ["apiVersion", "kind", "metadata"]


def test_an_empty_list_has_items_all_the_same(api: Workbench) -> None:
    assert api.get(CONFIG_MAPS)["items"] == []


def test_a_list_spans_all_namespaces_or_one(api: Workbench) -> None:
    other = "/api/v1/namespaces/kube-system/configmaps"
    api.create(CONFIG_MAPS, config_map("b"))
    api.create(other, config_map("a"))
    assert api.names("/api/v1/configmaps") == ["b", "a"]  # by namespace, then name
    assert api.names(other) == ["a"]
    assert api.names("/api/v1/namespaces/nowhere/configmaps") == []


# Selectors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tier=web", ["a"]),
        ("tier==web", ["a"]),
        ("tier!=web", ["b", "c"]),
        ("tier in (web,db)", ["a", "b"]),
        ("tier notin (web)", ["b", "c"]),
        ("tier", ["a", "b"]),
        ("!tier", ["c"]),
        ("weight>5", ["b"]),
        ("weight<5", ["a"]),
        ("tier,weight=9", ["b"]),
        ("tier=", []),
        ("", ["a", "b", "c"]),
    ],
)
def test_labels_select_with_every_operator(
    api: Workbench, selector: str, expected: list[str]
) -> None:
    api.create(CONFIG_MAPS, config_map("a", labels={"tier": "web", "weight": "1"}))
    api.create(CONFIG_MAPS, config_map("b", labels={"tier": "db", "weight": "9"}))
    api.create(CONFIG_MAPS, config_map("c"))
    assert api.names(CONFIG_MAPS, labelSelector=selector) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("spec.nodeName=n1", ["a", "b"]),
        ("spec.nodeName!=n1", ["c"]),
        ("spec.nodeName=", ["c"]),
        ("spec.nodeName=n1,status.phase=Running", ["a"]),
        ("metadata.name=b", ["b"]),
        ("metadata.name!=b", ["a", "c"]),
        ("metadata.name=z", []),
        ("metadata.namespace=default", ["a", "b", "c"]),
        ("metadata.namespace!=default", []),
    ],
)
def test_pods_are_selected_by_their_fields(
    api: Workbench, selector: str, expected: list[str]
) -> None:
    for name, node in (("a", "n1"), ("b", "n1"), ("c", "")):
        api.create(PODS, pod(name, node=node))
    api.patch(f"{PODS}/a/status", {"status": {"phase": "Running"}})
    assert api.names(PODS, fieldSelector=selector) == expected


def test_other_kinds_are_selected_by_what_they_declare(toys: Workbench) -> None:
    toys.create(SECRETS, {"metadata": {"name": "a"}, "type": "x/y"})
    toys.create(SECRETS, {"metadata": {"name": "b"}})
    assert toys.names(SECRETS, fieldSelector="type=x/y") == ["a"]
    toys.create(NODES, {"metadata": {"name": "n"}, "spec": {"unschedulable": True}})
    toys.create(NODES, {"metadata": {"name": "m"}})
    assert toys.names(NODES, fieldSelector="spec.unschedulable=true") == ["n"]
    toys.create(WIDGETS, widget("v", colour="blue"))
    toys.create(WIDGETS, widget("w"))
    assert toys.names(WIDGETS, fieldSelector="spec.colour=blue") == ["v"]


@pytest.mark.parametrize(
    "query",
    [
        {"fieldSelector": "spec.size=1"},
        {"fieldSelector": "metadata.name"},
        {"labelSelector": "a in b"},
        {"labelSelector": "=x"},
        {"limit": "many"},
        {"resourceVersion": "soon"},
        {"continue": "nonsense"},
        {"continue": "e30"},
    ],
)
def test_a_parameter_that_means_nothing_is_a_bad_request(
    toys: Workbench, query: dict[str, str]
) -> None:
    answer = toys.send("GET", WIDGETS, **query)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


# Pages ------------------------------------------------------------------------------------------


def pages(api: Workbench, **query: str) -> list[Document]:
    found = [api.get(CONFIG_MAPS, **query)]
    while token := found[-1]["metadata"].get("continue"):
        found.append(api.get(CONFIG_MAPS, **{**query, "continue": token}))
    return found


def names_of(listed: list[Document]) -> list[list[str]]:
    return [[item["metadata"]["name"] for item in page["items"]] for page in listed]


def test_a_list_comes_in_pages(api: Workbench) -> None:
    fill(api, 5)
    listed = pages(api, limit="2")
    assert names_of(listed) == [["c0", "c1"], ["c2", "c3"], ["c4"]]
    assert [page["metadata"].get("remainingItemCount") for page in listed] == [3, 1, None]


def test_a_selected_page_does_not_count_the_rest(api: Workbench) -> None:
    fill(api, 5)
    listed = pages(api, limit="1", labelSelector="odd=1")
    assert names_of(listed) == [["c1"], ["c3"]]
    assert "remainingItemCount" not in listed[0]["metadata"]


def test_all_pages_are_of_one_revision(api: Workbench) -> None:
    fill(api, 4)
    first = api.get(CONFIG_MAPS, limit="2")
    api.delete(f"{CONFIG_MAPS}/c2")
    api.patch(f"{CONFIG_MAPS}/c3", {"data": {"new": "x"}})
    api.create(CONFIG_MAPS, config_map("c5"))
    second = api.get(CONFIG_MAPS, limit="5", **{"continue": first["metadata"]["continue"]})
    assert names_of([second]) == [["c2", "c3"]]
    assert second["items"][1]["data"] == {}
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_pages_outlive_the_window_of_the_log_but_not_a_compaction() -> None:
    api = Workbench(window=2)
    fill(api, 4)
    token = api.get(CONFIG_MAPS, limit="2")["metadata"]["continue"]
    for index in range(10):
        api.patch(f"{CONFIG_MAPS}/c0", {"data": {"n": str(index)}})
    assert len(api.get(CONFIG_MAPS, **{"continue": token})["items"]) == 2
    api.server.store.compact()
    answer = api.send("GET", CONFIG_MAPS, **{"continue": token})
    assert (answer.status, answer.body["reason"]) == (410, "Expired")
    fresh = answer.body["metadata"]["continue"]
    rest = api.get(CONFIG_MAPS, **{"continue": fresh})
    assert names_of([rest]) == [["c2", "c3"]]
    assert rest["metadata"]["resourceVersion"] == str(api.server.store.revision)


def test_a_token_excludes_a_version(api: Workbench) -> None:
    fill(api, 2)
    token = api.get(CONFIG_MAPS, limit="1")["metadata"]["continue"]
    answer = api.send("GET", CONFIG_MAPS, resourceVersion="3", **{"continue": token})
    assert answer.status == 400


def test_any_version_will_do_means_no_pages(api: Workbench) -> None:
    fill(api, 3)
    body = api.get(CONFIG_MAPS, limit="1", resourceVersion="0")
    assert len(body["items"]) == 3


# Revisions --------------------------------------------------------------------------------------


def test_an_exact_list_is_of_the_past(api: Workbench) -> None:
    fill(api, 2)
    past = str(api.server.store.revision)
    api.delete(f"{CONFIG_MAPS}/c0")
    body = api.get(CONFIG_MAPS, resourceVersion=past, resourceVersionMatch="Exact")
    assert names_of([body]) == [["c0", "c1"]]
    assert body["metadata"]["resourceVersion"] == past
    # With a limit and no match, a version has always meant exactly that one.
    assert len(api.get(CONFIG_MAPS, resourceVersion=past, limit="9")["items"]) == 2


def test_a_list_not_older_than_a_version_is_current(api: Workbench) -> None:
    fill(api, 2)
    past = str(api.server.store.revision)
    api.delete(f"{CONFIG_MAPS}/c0")
    for match in ({}, {"resourceVersionMatch": "NotOlderThan"}):
        body = api.get(CONFIG_MAPS, resourceVersion=past, **match)
        assert names_of([body]) == [["c1"]]


def test_an_exact_list_of_a_compacted_version_is_gone(api: Workbench) -> None:
    fill(api, 2)
    api.server.store.compact()
    answer = api.send("GET", CONFIG_MAPS, resourceVersion="2", resourceVersionMatch="Exact")
    assert (answer.status, answer.body["reason"]) == (410, "Expired")


def test_a_lagging_replica_serves_lists_that_may_be_stale(api: Workbench) -> None:
    fill(api, 3)
    newest = str(api.server.store.revision)
    api.server.settings.read_lag = 2
    assert api.names(CONFIG_MAPS, resourceVersion="0") == ["c0"]
    assert api.names(CONFIG_MAPS, resourceVersion=newest) == ["c0", "c1", "c2"]
    assert api.names(CONFIG_MAPS) == ["c0", "c1", "c2"]
    api.server.store.compact()
    assert api.names(CONFIG_MAPS, resourceVersion="0") == ["c0", "c1", "c2"]


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        {"resourceVersionMatch": "Newer", "resourceVersion": "1"},
        {"sendInitialEvents": "true"},
    ],
)
def test_options_that_contradict_each_other_are_invalid(
    api: Workbench, query: dict[str, str]
) -> None:
    assert api.send("GET", CONFIG_MAPS, **query).status == 422


def test_a_future_version_is_waited_for_and_then_refused() -> None:
    async def main() -> None:
        api = virtual_workbench()
        loop_start = api.clock.monotonic()
        ahead = str(api.server.store.revision + 1)
        answer = await api.server.handle(api.request("GET", CONFIG_MAPS, resourceVersion=ahead))
        assert answer.status == 504
        assert answer.headers["retry-after"] == "1"
        assert api.clock.monotonic() - loop_start == 3.0
        assert isinstance(answer, Response)
        error = error_from_status(answer.status, answer.body)
        assert isinstance(error, TooLargeResourceVersion)
        assert error.retry_after == 1

    run_virtual(main)


def test_a_version_that_comes_while_waited_for_is_served() -> None:
    async def main() -> None:
        api = virtual_workbench()
        ahead = str(api.server.store.revision + 1)
        request = api.request("GET", f"{CONFIG_MAPS}/a", resourceVersion=ahead)
        reading = asyncio.create_task(api.server.handle(request))
        await api.clock.sleep(1)
        api.create(CONFIG_MAPS, config_map("a"))
        assert (await reading).status == 200
        assert api.clock.monotonic() == 1.0

    run_virtual(main)


# Forms ------------------------------------------------------------------------------------------


def test_lists_and_objects_come_as_tables(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("w", size=4))
    listed = toys.get(WIDGETS, accept=TABLE)
    assert (listed["kind"], listed["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [c["name"] for c in listed["columnDefinitions"]] == ["Name", "Size"]
    (row,) = listed["rows"]
    assert row["cells"] == ["w", 4]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert listed["metadata"]["resourceVersion"] == str(toys.server.store.revision)
    whole = toys.get(f"{WIDGETS}/w", accept=TABLE, includeObject="Object")
    assert whole["rows"][0]["object"]["spec"]["size"] == 4
    assert toys.send("GET", WIDGETS, accept=TABLE, includeObject="All").status == 400


def test_lists_and_objects_come_as_metadata(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("w"))
    listed = toys.get(WIDGETS, accept=METADATA_LIST)
    assert listed["kind"] == "PartialObjectMetadataList"
    assert listed["items"][0].keys() == {"kind", "apiVersion", "metadata"}
    one = toys.get(f"{WIDGETS}/w", accept=METADATA)
    assert (one["kind"], one["metadata"]["name"]) == ("PartialObjectMetadata", "w")
    assert "spec" not in one


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/vnd.kubernetes.protobuf", 406),
        ("application/vnd.kubernetes.protobuf,application/json", 200),
        ("*/*", 200),
        ("application/json;as=Table;v=v9;g=meta.k8s.io", 406),
        ("application/json;as=Poem;v=v1;g=meta.k8s.io, application/json", 200),
    ],
)
def test_the_first_form_that_can_be_made_is_served(
    api: Workbench, accept: str, status: int
) -> None:
    assert api.send("GET", CONFIG_MAPS, accept=accept).status == status
