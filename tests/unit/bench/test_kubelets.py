"""Nodes join for machines that have a VM: once each, whatever else happens to them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from bench.instant.kubelets import KubeletFailed, Kubelets
from bench.instant.manifests import FLEET_LABEL, node
from mcm.api.core import NODES, Node
from mcm.api.machine import Machine, MachineSpec
from mcm.api.meta import ObjectMeta
from mcm.client.client import Client
from mcm.clock import SystemClock
from mcm.informers import Change
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.loopback import LoopbackTransport


def _client() -> Client:
    clock = SystemClock()
    server = ApiServer(clock=clock, random=random.Random(1))
    return Client(LoopbackTransport(server), clock=clock)


@asynccontextmanager
async def _kubelets(client: Client) -> AsyncIterator[Kubelets]:
    """All Nodes have joined once the context is left."""
    async with asyncio.TaskGroup() as tasks:
        yield Kubelets(client, fleet="ns", tasks=tasks)


def _machine(
    name: str, *, vm: bool = True, label: str = "", going: bool = False, uid: str = ""
) -> Machine:
    meta = ObjectMeta(
        name=name,
        namespace="ns",
        uid=uid or f"uid-of-{name}",
        labels={"node": label} if label else {},
        deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC) if going else None,
    )
    return Machine(metadata=meta, spec=MachineSpec(provider_id=f"i:///{name}" if vm else ""))


async def _nodes(client: Client) -> dict[str, Node]:
    return {each.metadata.name: each for each in (await client.list_page(NODES)).items}


def _is_ready(node: Node) -> bool:
    return {c.type: c.status for c in node.status.conditions}["Ready"] == "True"


async def test_a_machine_with_a_vm_gets_a_ready_node_and_no_other_does() -> None:
    client = _client()
    async with _kubelets(client) as kubelets:
        for machine in (
            _machine("plain"),
            _machine("labelled", label="other-name"),
            _machine("no-vm-yet", vm=False),
            _machine("going", going=True),
        ):
            kubelets.on_machine(Change(None, machine))
    nodes = await _nodes(client)
    assert nodes.keys() == {"plain", "other-name"}
    assert nodes["plain"].spec.provider_id == "i:///plain"
    assert nodes["plain"].metadata.labels[FLEET_LABEL] == "ns"
    assert all(map(_is_ready, nodes.values()))


async def test_a_node_that_was_deleted_comes_back_only_for_another_machine() -> None:
    client = _client()
    async with _kubelets(client) as kubelets:
        kubelets.on_machine(Change(None, _machine("m")))
        while not await _nodes(client):
            await SystemClock().sleep(0.01)
        await client.delete(NODES, "m")
        kubelets.on_machine(Change(_machine("m"), _machine("m", label="m")))
    assert not await _nodes(client)
    async with _kubelets(client) as kubelets:
        kubelets.on_machine(Change(_machine("m"), None))
        kubelets.on_machine(Change(None, _machine("m", uid="a successor's")))
    assert (await _nodes(client)).keys() == {"m"}


async def test_a_node_that_exists_already_is_no_failure() -> None:
    client = _client()
    await client.create(NODES, node("m", "i:///m", "ns"))
    async with _kubelets(client) as kubelets:
        kubelets.on_machine(Change(None, _machine("m")))
    assert (await _nodes(client)).keys() == {"m"}


async def test_the_killed_are_not_ready_and_one_that_is_gone_holds_nobody_up() -> None:
    client = _client()
    async with _kubelets(client) as kubelets:
        for name in ("a", "b", "c"):
            kubelets.on_machine(Change(None, _machine(name)))
    await client.delete(NODES, "c")
    await kubelets.kill(["a", "c"])
    nodes = await _nodes(client)
    assert {name: _is_ready(each) for name, each in nodes.items()} == {"a": False, "b": True}
    assert len(nodes["a"].status.conditions) == len(nodes["b"].status.conditions)


async def test_a_node_that_the_server_refuses_ends_the_bench_with_its_name() -> None:
    with pytest.raises(ExceptionGroup) as failed:
        async with _kubelets(_client()) as kubelets:
            kubelets.on_machine(Change(None, _machine("m", label="No Name Of A Node")))
    (error,) = failed.value.exceptions
    assert isinstance(error, KubeletFailed)
    assert "the Node No Name Of A Node cannot join" in str(error)
