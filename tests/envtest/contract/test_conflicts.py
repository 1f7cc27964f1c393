from __future__ import annotations

from typing import Any

import pytest

from tests.envtest.bench import MERGE, STRATEGIC, Bench, Document
from tests.envtest.contract.objects import config_map, machine, machine_deployment, node

OTHER_UID = "00000000-0000-0000-0000-000000000000"


async def _made_twice(api: Bench) -> tuple[Document, Document]:
    """Return an outdated and the current state of one machine."""
    old = await api.create(api.machines(), machine("m"))
    new = await api.patch(api.machines("m"), {"metadata": {"labels": {"a": "b"}}})
    return old, new


async def test_a_put_of_an_outdated_state_is_a_conflict(api: Bench) -> None:
    old, _ = await _made_twice(api)
    old["metadata"]["labels"] = {"mine": "too"}
    answer = await api.send("PUT", api.machines("m"), old)
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.body["details"] == {
        "name": "m",
        "group": "machine.sapcloud.io",
        "kind": "machines",
    }
    assert "the object has been modified" in answer.body["message"]


@pytest.mark.parametrize("subresource", ["", "/status", "/scale"])
async def test_a_merge_patch_may_name_the_version_it_is_for(api: Bench, subresource: str) -> None:
    old = await api.create(api.deployments(), machine_deployment("d"))
    new = await api.patch(api.deployments("d"), {"metadata": {"labels": {"a": "b"}}})
    changes: dict[str, Document] = {
        "": {"metadata": {"annotations": {"x": "y"}}},
        "/status": {"status": {"replicas": 1}},
        "/scale": {"spec": {"replicas": 7}},
    }
    change = changes[subresource]
    path = api.deployments("d") + subresource
    answer = await api.send("PATCH", path, _at(old, change), media=MERGE)
    assert (answer.status, answer.reason) == (409, "Conflict")
    await api.patch(path, _at(new, change))


async def test_a_patch_that_names_another_uid_is_invalid_and_changes_nothing(api: Bench) -> None:
    """Unlike a version, a uid in a patch is no precondition but a change of what cannot change."""
    created = await api.create(api.machines(), machine("m"))
    patch = {"metadata": {"uid": OTHER_UID}, "spec": {"providerID": "p"}}
    answer = await api.send("PATCH", api.machines("m"), patch, media=MERGE)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes == [("FieldValueInvalid", "metadata.uid")]
    assert await api.get(api.machines("m")) == created
    patch["metadata"]["uid"] = created["metadata"]["uid"]
    await api.patch(api.machines("m"), patch)


async def test_the_status_of_our_kinds_does_not_look_at_a_uid(api: Bench) -> None:
    """All metadata but the version is ignored there: only a version guards such a patch."""
    await api.create(api.machines(), machine("m"))
    patch = {"metadata": {"uid": OTHER_UID}, "status": {"lastKnownState": "x"}}
    after = await api.patch(api.machines("m") + "/status", patch)
    assert after["status"]["lastKnownState"] == "x"
    assert after["metadata"]["uid"] != OTHER_UID


async def test_the_status_of_a_node_does_look_at_a_uid(api: Bench) -> None:
    created = await api.create("/api/v1/nodes", node(f"node-of-{api.namespace}"))
    path = f"/api/v1/nodes/{created['metadata']['name']}/status"
    patch = {"metadata": {"uid": OTHER_UID}, "status": {"capacity": {"cpu": "2"}}}
    answer = await api.send("PATCH", path, patch, media=STRATEGIC)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes == [("FieldValueInvalid", "metadata.uid")]


async def test_a_put_of_another_incarnation_is_a_conflict(api: Bench) -> None:
    created = await api.create(api.machines(), machine("m"))
    created["metadata"]["uid"] = OTHER_UID
    answer = await api.send("PUT", api.machines("m"), created)
    assert (answer.status, answer.reason) == (409, "Conflict")


@pytest.mark.parametrize("wrong", [{"uid": OTHER_UID}, {"resourceVersion": "1"}], ids=str)
async def test_a_deletion_may_name_what_it_is_for(api: Bench, wrong: dict[str, str]) -> None:
    created = await api.create(api.machines(), machine("m"))
    answer = await api.send("DELETE", api.machines("m"), _delete_options(preconditions=wrong))
    assert (answer.status, answer.reason) == (409, "Conflict")
    right = {key: created["metadata"][key] for key in ("uid", "resourceVersion")}
    await api.delete(api.machines("m"), _delete_options(preconditions=right))
    assert await api.gone(api.machines("m"))


async def test_a_name_is_taken_once(api: Bench) -> None:
    await api.create(api.machines(), machine("m"))
    answer = await api.send("POST", api.machines(), machine("m"))
    assert (answer.status, answer.reason) == (409, "AlreadyExists")
    assert answer.body["details"] == {
        "name": "m",
        "group": "machine.sapcloud.io",
        "kind": "machines",
    }
    assert answer.body["message"] == 'machines.machine.sapcloud.io "m" already exists'


async def test_a_generated_name_extends_the_prefix_by_five_characters(api: Bench) -> None:
    draft = machine("")
    draft["metadata"] = {"generateName": "pool-a-"}
    names = set()
    for _ in range(3):
        created = await api.create(api.machines(), draft)
        assert created["metadata"]["generateName"] == "pool-a-"
        names.add(created["metadata"]["name"])
    assert len(names) == 3
    assert all(n.startswith("pool-a-") and len(n) == len("pool-a-") + 5 for n in names)


async def test_a_given_name_wins_over_a_prefix(api: Bench) -> None:
    draft = machine("m")
    draft["metadata"]["generateName"] = "pool-a-"
    assert (await api.create(api.machines(), draft))["metadata"]["name"] == "m"


async def test_a_put_without_a_version_is_refused_for_our_kinds_and_not_for_core_ones(
    api: Bench,
) -> None:
    await api.create(api.machines(), machine("m"))
    answer = await api.send("PUT", api.machines("m"), machine("m", providerID="p"))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes == [("FieldValueInvalid", "metadata.resourceVersion")]
    await api.create(api.config_maps(), config_map("c"))
    await api.put(api.config_maps("c"), config_map("c", a="b"))


async def test_a_put_creates_leases_and_nothing_of_ours(api: Bench) -> None:
    answer = await api.send("PUT", api.machines("m"), machine("m"))
    assert (answer.status, answer.reason) == (404, "NotFound")
    lease: Document = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l"},
        "spec": {},
    }
    path = api.path("leases", "l", group="coordination.k8s.io/v1")
    assert (await api.send("PUT", path, lease)).status == 201


async def test_a_body_must_be_about_what_the_url_names(api: Bench) -> None:
    created = await api.create(api.machines(), machine("m"))
    created["metadata"]["name"] = "other"
    answer = await api.send("PUT", api.machines("m"), created)
    assert (answer.status, answer.reason) == (400, "BadRequest")
    elsewhere = machine("x")
    elsewhere["metadata"]["namespace"] = "kube-system"
    answer = await api.send("POST", api.machines(), elsewhere)
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_what_identifies_an_object_cannot_be_patched(api: Bench) -> None:
    created = await api.create(api.machines(), machine("m"))
    answer = await api.send(
        "PATCH", api.machines("m"), {"metadata": {"name": "other"}}, media=MERGE
    )
    assert answer.status == 400
    patch = {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 77}}
    after = await api.patch(api.machines("m"), patch)
    for key in ("creationTimestamp", "generation", "uid"):
        assert after["metadata"][key] == created["metadata"][key]


async def test_a_version_has_no_place_in_a_creation(api: Bench) -> None:
    draft = machine("m")
    draft["metadata"]["resourceVersion"] = "1"
    assert (await api.send("POST", api.machines(), draft)).status == 500


async def test_metadata_that_the_server_owns_is_not_taken_from_a_creation(api: Bench) -> None:
    draft = machine("m")
    draft["metadata"] |= {
        "uid": OTHER_UID,
        "generation": 9,
        "creationTimestamp": "2001-01-01T00:00:00Z",
        "deletionTimestamp": "2001-01-01T00:00:00Z",
    }
    meta = (await api.create(api.machines(), draft))["metadata"]
    assert meta["uid"] != OTHER_UID
    assert meta["generation"] == 1
    assert not meta["creationTimestamp"].startswith("2001")
    assert "deletionTimestamp" not in meta


def _at(version_of: Document, change: Document) -> Document:
    meta = {
        **change.get("metadata", {}),
        "resourceVersion": version_of["metadata"]["resourceVersion"],
    }
    return {**change, "metadata": meta}


def _delete_options(**options: Any) -> Document:
    return {"apiVersion": "v1", "kind": "DeleteOptions", **options}
