from __future__ import annotations

from tests.envtest.bench import Bench, Document
from tests.envtest.contract.objects import config_map, finalizer, machine, machine_deployment, pod

ALL = {"dryRun": "All"}


async def test_a_trial_creation_answers_as_if_and_keeps_nothing(api: Bench) -> None:
    created = await api.create(api.machines(), machine("m"), **ALL)
    assert created["metadata"]["uid"]
    assert "resourceVersion" not in created["metadata"]
    assert await api.gone(api.machines("m"))


async def test_a_trial_change_answers_as_if_and_keeps_nothing(api: Bench) -> None:
    before = await api.create(api.machines(), machine("m"))
    patched = await api.patch(api.machines("m"), {"spec": {"providerID": "p"}}, **ALL)
    assert patched["spec"]["providerID"] == "p"
    assert patched["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    await api.put(api.machines("m"), patched, **ALL)
    assert await api.get(api.machines("m")) == before


async def test_a_trial_scale_scales_nothing(api: Bench) -> None:
    before = await api.create(api.deployments(), machine_deployment("d"))
    await api.patch(api.deployments("d") + "/scale", {"spec": {"replicas": 9}}, **ALL)
    assert await api.get(api.deployments("d")) == before


async def test_a_trial_deletion_deletes_nothing(api: Bench) -> None:
    before = await api.create(api.machines(), machine("m"))
    held = await api.create(api.machines(), finalizer(machine("held"), "example.org/hold"))
    await api.delete(api.machines("m"), dryRun="All")
    await api.delete(api.machines("held"), {"kind": "DeleteOptions", "dryRun": ["All"]})
    assert await api.get(api.machines("m")) == before
    assert await api.get(api.machines("held")) == held


async def test_a_trial_eviction_evicts_nobody(api: Bench) -> None:
    before = await api.create(api.pods(), pod("p", nodeName="n"))
    eviction: Document = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p"},
        "deleteOptions": {"dryRun": ["All"]},
    }
    assert (await api.send("POST", api.pods("p") + "/eviction", eviction)).status == 201
    assert await api.get(api.pods("p")) == before


async def test_a_trial_still_finds_what_is_wrong(api: Bench) -> None:
    await api.create(api.config_maps(), config_map("c"))
    answer = await api.send("POST", api.config_maps(), config_map("c"), **ALL)
    assert (answer.status, answer.reason) == (409, "AlreadyExists")
    answer = await api.send("POST", api.machines(), machine("m", providerID=7), **ALL)
    assert (answer.status, answer.reason) == (422, "Invalid")


async def test_there_is_no_half_trial(api: Bench) -> None:
    answer = await api.send("POST", api.machines(), machine("m"), dryRun="Some")
    assert (answer.status, answer.reason) == (422, "Invalid")
