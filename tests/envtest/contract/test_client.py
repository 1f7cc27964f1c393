"""What the project's own client makes of the answers: one error class for each case."""

from __future__ import annotations

from typing import Any

import pytest

from mcm.api.core import LEASES, NODES, PODS
from mcm.api.machine import MACHINES
from mcm.client import errors
from mcm.client.requests import PatchType
from mcm.client.transport import StreamResponse
from tests.envtest.bench import Bench
from tests.envtest.contract.objects import budget, finalizer, machine, node, pod

OTHER_UID = "00000000-0000-0000-0000-000000000000"


async def test_objects_are_typed_on_their_way_back(api: Bench) -> None:
    made = await api.client.create(MACHINES, machine("m"), namespace=api.namespace)
    assert (made.metadata.name, made.spec.class_.name) == ("m", "small")
    read = await api.client.get(MACHINES, "m", namespace=api.namespace)
    assert read == made
    page = await api.client.list_page(MACHINES, namespace=api.namespace)
    assert page.items == (made,)
    after = await api.client.patch(
        MACHINES, "m", {"spec": {"providerID": "p"}}, namespace=api.namespace
    )
    assert after.spec.provider_id == "p"


async def test_pages_are_followed_by_their_tokens(api: Bench) -> None:
    for name in ("a", "b", "c"):
        await api.client.create(MACHINES, machine(name), namespace=api.namespace)
    first = await api.client.list_page(MACHINES, namespace=api.namespace, limit=2)
    assert (len(first.items), first.remaining) == (2, 1)
    rest = await api.client.list_page(
        MACHINES, namespace=api.namespace, limit=2, continue_token=first.continue_token
    )
    assert [m.metadata.name for m in rest.items] == ["c"]
    assert not rest.continue_token
    assert rest.resource_version == first.resource_version


async def test_a_deletion_tells_whether_the_object_stays(api: Bench) -> None:
    await api.create(api.machines(), machine("gone"))
    await api.create(api.machines(), finalizer(machine("held"), "example.org/hold"))
    assert await api.client.delete(MACHINES, "gone", namespace=api.namespace) is None
    held = await api.client.delete(MACHINES, "held", namespace=api.namespace)
    assert held is not None and held.metadata.deletion_timestamp is not None
    await api.create(api.pods(), pod("waiting"))
    await api.create(api.pods(), pod("running", nodeName="n"))
    assert await api.client.delete(PODS, "waiting", namespace=api.namespace) is None
    assert await api.client.delete(PODS, "running", namespace=api.namespace) is not None


async def test_failures_are_told_apart(api: Bench) -> None:
    client, ns = api.client, api.namespace
    await client.create(MACHINES, machine("m"), namespace=ns)
    with pytest.raises(errors.AlreadyExists):
        await client.create(MACHINES, machine("m"), namespace=ns)
    with pytest.raises(errors.NotFound):
        await client.get(MACHINES, "x", namespace=ns)
    with pytest.raises(errors.Conflict):
        await client.patch(MACHINES, "m", {"metadata": {"resourceVersion": "1"}}, namespace=ns)
    with pytest.raises(errors.Conflict):  # a 422 on the wire
        await client.patch(MACHINES, "m", {"metadata": {"uid": OTHER_UID}}, namespace=ns)
    with pytest.raises(errors.Conflict):
        await client.delete(MACHINES, "m", uid=OTHER_UID, namespace=ns)
    with pytest.raises(errors.Invalid) as refused:
        await client.patch(MACHINES, "m", {"spec": {"providerID": 7}}, namespace=ns)
    assert [cause.field for cause in refused.value.causes] == ["spec.providerID"]
    with pytest.raises(errors.BadRequest):
        await client.list_page(MACHINES, label_selector="=", namespace=ns)


async def test_a_refused_eviction_names_the_budget(api: Bench) -> None:
    await api.create(api.pods(), pod("p", {"app": "web"}, nodeName="n"))
    await api.patch(api.pods("p") + "/status", {"status": {"phase": "Running"}})
    await api.create(
        api.path("poddisruptionbudgets", group="policy/v1"), budget("web", {"app": "web"})
    )
    with pytest.raises(errors.TooManyRequests) as refused:
        await api.client.evict("p", namespace=api.namespace)
    assert [cause.reason for cause in refused.value.causes] == ["DisruptionBudget"]
    assert refused.value.retry_after == 10


async def test_an_expired_token_is_gone(api: Bench) -> None:
    for name in ("a", "b"):
        await api.create(api.machines(), machine(name))
    page = await api.client.list_page(MACHINES, namespace=api.namespace, limit=1)
    await api.create(api.machines(), machine("c"))
    await api.peer.compact()
    with pytest.raises(errors.Gone):
        await api.client.list_page(
            MACHINES, namespace=api.namespace, limit=1, continue_token=page.continue_token
        )


async def test_a_refused_watch_raises_what_it_was_refused_for(api: Bench) -> None:
    with pytest.raises(errors.BadRequest):
        await _open(api, label_selector="=")


async def test_a_node_takes_conditions_by_a_strategic_patch(api: Bench) -> None:
    name = f"node-of-{api.namespace}"
    await api.client.create(NODES, node(name))
    for kind in ("Ready", "Extra"):
        condition = {"type": kind, "status": "True"}
        await api.client.patch(
            NODES,
            name,
            {"status": {"conditions": [condition]}},
            subresource="status",
            patch_type=PatchType.STRATEGIC,
        )
    after = await api.client.get(NODES, name)
    assert {c.type for c in after.status.conditions} >= {"Ready", "Extra"}


async def test_a_lease_is_put_with_its_version(api: Bench) -> None:
    made = await api.client.create(
        LEASES, {"metadata": {"name": "l"}, "spec": {}}, namespace=api.namespace
    )
    body: dict[str, Any] = {
        "metadata": {"name": "l", "resourceVersion": made.metadata.resource_version},
        "spec": {"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.000001Z"},
    }
    held = await api.client.update(LEASES, "l", body, namespace=api.namespace)
    assert held.spec.renew_time == "2026-01-01T00:00:00.000001Z"
    with pytest.raises(errors.Conflict):
        await api.client.update(LEASES, "l", body, namespace=api.namespace)


async def _open(api: Bench, *, label_selector: str) -> StreamResponse:
    async with api.client.watch(
        MACHINES,
        namespace=api.namespace,
        label_selector=label_selector,
        timeout_seconds=1,
        read_timeout=5.0,
    ) as stream:
        return stream
