from __future__ import annotations

from tests.envtest.bench import Bench, Document
from tests.envtest.contract.objects import machine, machine_deployment, pod

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
GROUP = "machine.sapcloud.io/v1alpha1"


async def test_the_columns_of_our_kinds_are_those_of_their_definitions(api: Bench) -> None:
    found = {
        plural: _columns(await api.get(api.path(plural, group=GROUP), accept=TABLE))
        for plural in ("machines", "machinesets", "machinedeployments", "machineclasses")
    }
    assert {plural: columns[0] for plural, columns in found.items()} == dict.fromkeys(
        found, ("Name", "string", 0)
    )
    assert {name for name, _, _ in found["machines"]} >= {"Status", "Age", "Node"}
    assert ("Ready", "integer", 0) in found["machinesets"]
    assert ("Desired", "integer", 0) in found["machinedeployments"]


async def test_a_row_shows_what_the_paths_point_to(api: Bench) -> None:
    await api.create(api.machines(), machine("m"))
    await api.patch(
        api.machines("m") + "/status", {"status": {"currentStatus": {"phase": "Running"}}}
    )
    table = await api.get(api.machines(), accept=TABLE)
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    (row,) = table["rows"]
    cells = _cells(table, row)
    assert (cells["Name"], cells["Status"]) == ("m", "Running")
    assert cells["Node"] in (None, "")
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert row["object"]["metadata"]["name"] == "m"
    assert "spec" not in row["object"]


async def test_a_row_may_hold_the_object_or_nothing(api: Bench) -> None:
    await api.create(api.deployments(), machine_deployment("d", replicas=3))
    whole = await api.get(api.deployments("d"), accept=TABLE, includeObject="Object")
    assert whole["rows"][0]["object"]["spec"]["replicas"] == 3
    assert _cells(whole, whole["rows"][0])["Desired"] == 3
    bare = await api.get(api.deployments("d"), accept=TABLE, includeObject="None")
    assert not bare["rows"][0].get("object")


async def test_pods_have_the_columns_that_people_know(api: Bench) -> None:
    await api.create(api.pods(), pod("p", nodeName="n"))
    table = await api.get(api.pods(), accept=TABLE)
    cells = _cells(table, table["rows"][0])
    assert (cells["Name"], cells["Ready"], cells["Status"]) == ("p", "0/1", "Pending")
    assert (cells["Restarts"], cells["Node"]) == ("0", "n")
    names = [name for name, _, priority in _columns(table) if priority == 0]
    assert names == ["Name", "Ready", "Status", "Restarts", "Age"]


async def test_nodes_have_the_columns_that_people_know(api: Bench) -> None:
    table = await api.get("/api/v1/nodes", accept=TABLE)
    names = [name for name, _, priority in _columns(table) if priority == 0]
    assert names == ["Name", "Status", "Roles", "Age", "Version"]


async def test_events_of_a_watch_are_tables_too(api: Bench) -> None:
    version = await api.version(api.machines())
    async with api.watch(api.machines(), accept=TABLE, resourceVersion=version) as watch:
        await api.create(api.machines(), machine("a"))
        await api.create(api.machines(), machine("b"))
        (_, first), (_, second) = await watch.next(), await watch.next()
    assert first["kind"] == second["kind"] == "Table"
    assert first["columnDefinitions"] and not second["columnDefinitions"]
    assert second["rows"][0]["cells"][0] == "b"


async def test_metadata_alone_can_be_asked_for(api: Bench) -> None:
    created = await api.create(api.machines(), machine("m", {"a": "b"}))
    one = await api.get(api.machines("m"), accept=METADATA)
    assert (one["kind"], one["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert one["metadata"] == created["metadata"]
    assert "spec" not in one
    listed = await api.get(api.machines(), accept=METADATA_LIST)
    assert listed["kind"] == "PartialObjectMetadataList"
    assert [item["metadata"]["name"] for item in listed["items"]] == ["m"]


async def test_the_columns_are_the_same_wherever_one_looks(api: Bench) -> None:
    await api.create(api.deployments(), machine_deployment("d"))
    listed = await api.get(api.deployments(), accept=TABLE)
    single = await api.get(api.deployments("d"), accept=TABLE)
    assert listed["columnDefinitions"] == single["columnDefinitions"]


def _columns(table: Document) -> list[tuple[str, str, int]]:
    return [(c["name"], c["type"], c["priority"]) for c in table["columnDefinitions"]]


def _cells(table: Document, row: Document) -> Document:
    names = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(names, row["cells"], strict=True))
