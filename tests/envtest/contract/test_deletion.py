from __future__ import annotations

from typing import Any

import pytest

from tests.envtest.bench import MERGE, Bench, Document
from tests.envtest.contract.objects import config_map, finalizer, machine, pod

HOLD = "example.org/hold"


async def test_without_finalizers_a_deletion_is_done_at_once_and_answers_a_status(
    api: Bench,
) -> None:
    created = await api.create(api.machines(), machine("m"))
    answer = await api.delete(api.machines("m"))
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"] == {
        "name": "m",
        "group": "machine.sapcloud.io",
        "kind": "machines",
        "uid": created["metadata"]["uid"],
    }
    assert await api.gone(api.machines("m"))


async def test_with_finalizers_an_object_stays_marked(api: Bench) -> None:
    created = await api.create(api.machines(), finalizer(machine("m"), HOLD))
    marked = await api.delete(api.machines("m"))
    meta = marked["metadata"]
    assert (marked["kind"], meta["name"], meta["finalizers"]) == ("Machine", "m", [HOLD])
    assert meta["deletionGracePeriodSeconds"] == 0
    assert meta["generation"] == created["metadata"]["generation"] + 1
    assert meta["deletionTimestamp"].endswith("Z")
    again = await api.delete(api.machines("m"))
    assert again["metadata"] == meta


async def test_the_last_finalizer_takes_the_object_with_it(api: Bench) -> None:
    made = finalizer(finalizer(machine("m"), HOLD), "example.org/more")
    await api.create(api.machines(), made)
    await api.delete(api.machines("m"))
    await api.patch(api.machines("m"), {"metadata": {"finalizers": [HOLD]}})
    assert not await api.gone(api.machines("m"))
    last = await api.patch(api.machines("m"), {"metadata": {"finalizers": None}})
    assert "finalizers" not in last["metadata"]
    assert await api.gone(api.machines("m"))


async def test_a_put_may_take_the_last_finalizer_too(api: Bench) -> None:
    await api.create(api.machines(), finalizer(machine("m"), HOLD))
    marked = await api.delete(api.machines("m"))
    del marked["metadata"]["finalizers"]
    await api.put(api.machines("m"), marked)
    assert await api.gone(api.machines("m"))


async def test_while_it_goes_an_object_gets_no_new_finalizers(api: Bench) -> None:
    await api.create(api.machines(), finalizer(machine("m"), HOLD))
    await api.delete(api.machines("m"))
    patch = {"metadata": {"finalizers": [HOLD, "example.org/late"]}}
    answer = await api.send("PATCH", api.machines("m"), patch, media=MERGE)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes == [("FieldValueForbidden", "metadata.finalizers")]


async def test_while_it_goes_spec_and_status_can_still_change(api: Bench) -> None:
    await api.create(api.machines(), finalizer(machine("m"), HOLD))
    marked = await api.delete(api.machines("m"))
    after = await api.patch(api.machines("m"), {"spec": {"providerID": "p"}})
    assert after["metadata"]["generation"] == marked["metadata"]["generation"] + 1
    after = await api.patch(api.machines("m") + "/status", {"status": {"lastKnownState": "x"}})
    assert after["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]


async def test_nobody_revives_an_object_by_hand(api: Bench) -> None:
    await api.create(api.machines(), finalizer(machine("m"), HOLD))
    marked = await api.delete(api.machines("m"))
    after = await api.patch(api.machines("m"), {"metadata": {"deletionTimestamp": None}})
    assert after["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize(
    ("policy", "wanted"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
)
async def test_a_policy_is_written_down_as_a_finalizer(
    api: Bench, policy: str, wanted: str
) -> None:
    await api.create(api.machines(), machine("m"))
    marked = await api.delete(api.machines("m"), _options(propagationPolicy=policy))
    assert marked["metadata"]["finalizers"] == [wanted]
    assert "deletionTimestamp" in marked["metadata"]


async def test_a_later_policy_replaces_an_earlier_one(api: Bench) -> None:
    await api.create(api.machines(), finalizer(machine("m"), HOLD))
    await api.delete(api.machines("m"), _options(propagationPolicy="Foreground"))
    marked = await api.delete(api.machines("m"), _options(propagationPolicy="Background"))
    assert marked["metadata"]["finalizers"] == [HOLD]


async def test_the_policy_may_stand_in_the_query(api: Bench) -> None:
    await api.create(api.machines(), machine("m"))
    marked = await api.delete(api.machines("m"), propagationPolicy="Orphan")
    assert marked["metadata"]["finalizers"] == ["orphan"]


@pytest.mark.parametrize(
    "options",
    [{"propagationPolicy": "Sideways"}, {"propagationPolicy": "Orphan", "orphanDependents": True}],
    ids=str,
)
async def test_policies_that_make_no_sense_are_refused(api: Bench, options: dict[str, Any]) -> None:
    await api.create(api.machines(), machine("m"))
    answer = await api.send("DELETE", api.machines("m"), _options(**options))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert not await api.gone(api.machines("m"))


async def test_background_deletion_needs_no_finalizer(api: Bench) -> None:
    await api.create(api.machines(), machine("m"))
    answer = await api.delete(api.machines("m"), _options(propagationPolicy="Background"))
    assert answer["status"] == "Success"
    assert await api.gone(api.machines("m"))


async def test_a_collection_is_deleted_as_far_as_it_is_selected(api: Bench) -> None:
    for name, pool in (("a", "x"), ("b", "x"), ("c", "y")):
        await api.create(api.machines(), machine(name, {"pool": pool}))
    await api.delete(api.machines(), labelSelector="pool=x")
    assert await api.names(api.machines()) == ["c"]


async def test_what_is_gone_cannot_be_deleted(api: Bench) -> None:
    answer = await api.send("DELETE", api.machines("m"))
    assert (answer.status, answer.reason) == (404, "NotFound")


async def test_a_pod_on_a_node_is_given_its_grace(api: Bench) -> None:
    await api.create(api.pods(), pod("p", nodeName="n", terminationGracePeriodSeconds=45))
    marked = await api.delete(api.pods("p"))
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 45
    shorter = await api.delete(api.pods("p"), _options(gracePeriodSeconds=5))
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 5
    longer = await api.delete(api.pods("p"), _options(gracePeriodSeconds=60))
    assert longer["metadata"]["deletionGracePeriodSeconds"] == 5
    await api.delete(api.pods("p"), _options(gracePeriodSeconds=0))
    assert await api.gone(api.pods("p"))


async def test_a_pod_that_runs_nowhere_goes_at_once(api: Bench) -> None:
    await api.create(api.pods(), pod("p"))
    answer = await api.delete(api.pods("p"))
    assert (answer["kind"], answer["metadata"]["name"]) == ("Pod", "p")
    assert await api.gone(api.pods("p"))


async def test_grace_means_nothing_to_a_machine(api: Bench) -> None:
    await api.create(api.machines(), machine("m"))
    await api.delete(api.machines("m"), _options(gracePeriodSeconds=30))
    assert await api.gone(api.machines("m"))


async def test_owners_are_not_the_servers_business(api: Bench) -> None:
    owner = await api.create(api.config_maps(), config_map("owner"))
    owned = config_map("owned")
    owned["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    await api.create(api.config_maps(), owned)
    await api.delete(api.config_maps("owner"))
    assert await api.names(api.config_maps()) == ["owned"]


async def test_an_object_has_one_controller_at_most(api: Bench) -> None:
    draft = machine("m")
    draft["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "A", "name": n, "uid": n, "controller": True}
        for n in ("one", "two")
    ]
    answer = await api.send("POST", api.machines(), draft)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert [field for _, field in answer.causes] == ["metadata.ownerReferences"]


def _options(**options: Any) -> Document:
    return {"apiVersion": "v1", "kind": "DeleteOptions", **options}
