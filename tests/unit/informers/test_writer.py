from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import pytest

from mcm.api.core import NODES, PODS, Pod
from mcm.api.machine import MACHINES, Machine
from mcm.api.meta import ObjectMeta
from mcm.client.client import Client
from mcm.client.errors import Conflict, NotFound
from mcm.client.transport import Request, Response, StreamResponse
from mcm.client.verbs import ObjectWriter
from mcm.clock import LoopClock
from mcm.informers import InformerFactory
from mcm.simulation.virtualtime import run_virtual
from tests.unit.informers.mirror import EPOCH, Replay


def body(name: str, version: int, *, uid: str = "u1", **metadata: object) -> dict[str, Any]:
    meta = {"name": name, "namespace": "n", "uid": uid, "resourceVersion": str(version)}
    return {"metadata": {**meta, **metadata}}


def machine(name: str, version: int, *, uid: str = "u1") -> Machine:
    return Machine(
        metadata=ObjectMeta(name=name, namespace="n", uid=uid, resource_version=str(version))
    )


@dataclass
class Answering:
    """A transport that gives one answer; ``meanwhile`` runs while the request is under way."""

    status: int = 200
    answer: object = None
    meanwhile: Callable[[], object] | None = None
    asked: list[Request] = field(default_factory=list)

    async def request(self, request: Request) -> Response:
        self.asked.append(request)
        if self.meanwhile is not None:
            self.meanwhile()
        return Response(self.status, {}, json.dumps(self.answer).encode())

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        raise AssertionError("nobody watches here")

    async def aclose(self) -> None:
        pass


@dataclass
class Bench:
    transport: Answering
    factory: InformerFactory
    writer: ObjectWriter
    replay: Replay
    author: str = ""

    def known(self, name: str = "a") -> Machine | None:
        return self.factory.store(MACHINES).get(f"n/{name}")


def on_bench(scenario: Callable[[Bench], Awaitable[None]], *, namespace: str = "n") -> None:
    """Run a scenario on stores that hold machine ``a``, version 5, of a list at version 10."""

    async def main() -> None:
        transport = Answering()
        clock = LoopClock(EPOCH)
        client = Client(transport, clock=clock, random=random.Random(0))
        factory = InformerFactory(
            client,
            clock=clock,
            namespace=namespace,
            randomness=random.Random(0),
            author=lambda: bench.author,
        )
        informer = factory.informer(MACHINES)
        replay = Replay()
        bench = Bench(transport, factory, factory.writer, replay)
        informer.add_handler(replay)
        informer.deliver(informer.store.replace([machine("a", 5)], "10"))
        await scenario(bench)

    run_virtual(main)


def not_found() -> dict[str, object]:
    return {"kind": "Status", "code": 404, "reason": "NotFound", "message": "not found"}


def test_what_was_created_is_in_the_store_when_the_call_returns() -> None:
    async def scenario(bench: Bench) -> None:
        bench.transport.answer = body("b", 12, uid="u2")
        answer = await bench.writer.create(MACHINES, {"metadata": {"name": "b"}}, namespace="n")
        assert bench.known("b") is answer
        assert bench.replay.changes[-1].new is answer

    on_bench(scenario)


def test_what_was_patched_is_in_the_store_when_the_call_returns() -> None:
    async def scenario(bench: Bench) -> None:
        bench.transport.answer = body("a", 12, labels={"x": "y"})
        answer = await bench.writer.patch(
            MACHINES, "a", {"metadata": {"labels": {"x": "y"}}}, namespace="n"
        )
        assert bench.known() is answer
        assert answer.metadata.labels == {"x": "y"}

    on_bench(scenario)


@pytest.mark.parametrize(
    ("labels", "author"), [({"x": "y"}, "me"), ({"x": "y", "theirs": "too"}, "")]
)
def test_a_change_bears_its_authors_name_if_it_is_all_that_one_wrote(
    labels: dict[str, str], author: str
) -> None:
    async def scenario(bench: Bench) -> None:
        bench.author = "me"
        bench.transport.answer = body("a", 12, labels=labels)
        patch = {"metadata": {"labels": {"x": "y"}}}
        await bench.writer.patch(MACHINES, "a", patch, namespace="n")
        assert bench.replay.changes[-1].author == author

    on_bench(scenario)


def test_an_objects_end_bears_the_name_of_who_brought_it_about() -> None:
    async def scenario(bench: Bench) -> None:
        bench.author = "me"
        bench.transport.answer = {"kind": "Status", "status": "Success"}
        await bench.writer.delete(MACHINES, "a", namespace="n", uid="u1")
        assert bench.replay.changes[-1].new is None
        assert bench.replay.changes[-1].author == "me"

    on_bench(scenario)


def test_a_status_patch_counts_and_another_subresource_does_not() -> None:
    async def scenario(bench: Bench) -> None:
        bench.transport.answer = body("a", 12)
        await bench.writer.patch(MACHINES, "a", {}, namespace="n", subresource="scale")
        known = bench.known()
        assert known is not None and known.metadata.resource_version == "5"
        answer = await bench.writer.patch(
            MACHINES, "a", {"status": {}}, namespace="n", subresource="status"
        )
        assert bench.known() is answer

    on_bench(scenario)


def test_a_patch_that_took_the_last_finalizer_ended_the_object() -> None:
    async def scenario(bench: Bench) -> None:
        bench.transport.answer = body("a", 5, deletionTimestamp="2026-01-01T00:00:00Z")
        await bench.writer.patch(MACHINES, "a", {"metadata": {"finalizers": []}}, namespace="n")
        assert bench.known() is None
        assert bench.replay.told == {}

    on_bench(scenario)


def test_a_pod_ends_when_its_kubelet_says_so() -> None:
    async def scenario(bench: Bench) -> None:
        store = bench.factory.informer(PODS).store
        store.replace([Pod(metadata=machine("p", 5).metadata)], "10")
        bench.transport.answer = body("p", 12, deletionTimestamp="2026-01-01T00:00:00Z")
        answer = await bench.writer.patch(PODS, "p", {}, namespace="n")
        assert store.get("n/p") is answer

    on_bench(scenario)


def test_what_was_deleted_is_gone_when_the_call_returns() -> None:
    async def scenario(bench: Bench) -> None:
        bench.transport.answer = {"kind": "Status", "status": "Success"}
        assert await bench.writer.delete(MACHINES, "a", namespace="n", uid="u1") is None
        assert bench.known() is None
        late = bench.factory.store(MACHINES).put(machine("a", 11))
        assert late == ()

    on_bench(scenario)


def test_what_only_began_to_end_is_in_the_store_as_such() -> None:
    async def scenario(bench: Bench) -> None:
        bench.transport.answer = body(
            "a", 12, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["f"]
        )
        answer = await bench.writer.delete(MACHINES, "a", namespace="n")
        assert answer is not None and bench.known() is answer

    on_bench(scenario)


@pytest.mark.parametrize("uid", ["u1", ""])
def test_what_is_not_found_is_gone_from_the_store_too(uid: str) -> None:
    async def scenario(bench: Bench) -> None:
        bench.transport.status, bench.transport.answer = 404, not_found()
        with pytest.raises(NotFound):
            await bench.writer.delete(MACHINES, "a", namespace="n", uid=uid)
        assert bench.known() is None

    on_bench(scenario)


def test_a_patch_of_what_is_gone_says_so_to_the_store() -> None:
    async def scenario(bench: Bench) -> None:
        bench.transport.status, bench.transport.answer = 404, not_found()
        with pytest.raises(NotFound):
            await bench.writer.patch(MACHINES, "a", {}, namespace="n")
        assert bench.known() is None

    on_bench(scenario)


def test_a_subresource_that_is_not_found_says_nothing_about_the_object() -> None:
    async def scenario(bench: Bench) -> None:
        bench.transport.status, bench.transport.answer = 404, not_found()
        with pytest.raises(NotFound):
            await bench.writer.patch(MACHINES, "a", {}, namespace="n", subresource="status")
        assert bench.known() is not None

    on_bench(scenario)


def test_an_object_made_while_the_request_was_under_way_is_not_the_deleted_one() -> None:
    async def scenario(bench: Bench) -> None:
        store = bench.factory.store(MACHINES)
        successor = machine("a", 15, uid="u2")
        bench.transport.answer = {"kind": "Status", "status": "Success"}
        bench.transport.meanwhile = lambda: store.put(successor)
        await bench.writer.delete(MACHINES, "a", namespace="n")
        assert bench.known() is successor

    on_bench(scenario)


def test_a_conflict_is_the_callers_and_changes_nothing() -> None:
    async def scenario(bench: Bench) -> None:
        bench.transport.status = 409
        bench.transport.answer = {"kind": "Status", "code": 409, "reason": "Conflict"}
        with pytest.raises(Conflict):
            await bench.writer.patch(MACHINES, "a", {}, namespace="n")
        assert len(bench.transport.asked) == 1
        known = bench.known()
        assert known is not None and known.metadata.resource_version == "5"

    on_bench(scenario)


def test_only_stores_in_whose_scope_an_object_falls_learn_of_it() -> None:
    async def scenario(bench: Bench) -> None:
        everywhere = bench.factory.informer(MACHINES, namespace="").store
        other = bench.factory.informer(MACHINES, namespace="m").store
        bench.transport.answer = body("b", 12, uid="u2")
        answer = await bench.writer.create(MACHINES, {"metadata": {"name": "b"}}, namespace="n")
        assert everywhere.get("n/b") is answer and bench.known("b") is answer
        assert len(other) == 0

    on_bench(scenario)


def test_a_resource_nobody_mirrors_can_be_written_all_the_same() -> None:
    async def scenario(bench: Bench) -> None:
        bench.transport.answer = {"metadata": {"name": "node", "resourceVersion": "3"}}
        node = await bench.writer.patch(NODES, "node", {"spec": {"unschedulable": True}})
        assert node.metadata.name == "node"

    on_bench(scenario)


def test_a_cluster_scoped_object_is_found_without_a_namespace() -> None:
    async def scenario(bench: Bench) -> None:
        store = bench.factory.informer(NODES).store
        bench.transport.answer = {"metadata": {"name": "x", "uid": "u", "resourceVersion": "3"}}
        node = await bench.writer.patch(NODES, "x", {})
        assert store.get("x") is node
        bench.transport.answer = {"kind": "Status", "status": "Success"}
        await bench.writer.delete(NODES, "x")
        assert "x" not in store

    on_bench(scenario)


def test_an_eviction_is_passed_on() -> None:
    async def scenario(bench: Bench) -> None:
        bench.transport.answer = {"kind": "Status", "status": "Success"}
        await bench.writer.evict("p", namespace="n", uid="u")
        assert bench.transport.asked[0].path.endswith("/namespaces/n/pods/p/eviction")

    on_bench(scenario)


async def test_a_cancelled_write_changes_nothing() -> None:
    async def scenario(bench: Bench) -> None:
        def cancel() -> None:
            raise asyncio.CancelledError

        bench.transport.meanwhile = cancel
        with pytest.raises(asyncio.CancelledError):
            await bench.writer.delete(MACHINES, "a", namespace="n")
        assert bench.known() is not None

    clock = LoopClock(EPOCH)
    transport = Answering()
    factory = InformerFactory(Client(transport, clock=clock), clock=clock, namespace="n")
    factory.store(MACHINES).replace([machine("a", 5)], "10")
    await scenario(Bench(transport, factory, factory.writer, Replay()))
