"""Successors made by the Deployments of a running cluster, for pods that somebody drains."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar, final

import pytest
import yaml

from mcm.api.core import PODS, Pod
from mcm.api.meta import JSONObject
from mcm.client.errors import Conflict, Forbidden, RequestTimeout
from mcm.client.requests import Call
from mcm.client.transport import Response, StreamResponse
from mcm.client.verbs import ObjectClient
from mcm.controllers.machine.draining.surge_settling import ALL, SurgeSettling
from mcm.controllers.runtime import DONE
from mcm.drain.surge import Surges
from mcm.informers import InformerFactory
from mcm.workqueue import WorkQueue
from tests.unit.world.manifests import budget, template, workload
from tests.unit.world.rig import Rig, at, name_of, on_rig

R = TypeVar("R")
ROLES = Path(__file__).parents[4] / "charts" / "mcm" / "files" / "rbac"
MARK = "machine.sapcloud.io/drain-surge"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/web"
NODES = ("a", "b", "c")


def singleton(kind: str, *, replicas: int = 1) -> JSONObject:
    made = template(terminationGracePeriodSeconds=5)
    metadata = made["metadata"]
    assert isinstance(metadata, dict)
    metadata["annotations"] = {MARK: kind}
    return workload("Deployment", replicas=replicas, template=made)


class WrappedClient(ObjectClient):
    """Passes everything on."""

    def __init__(self, client: ObjectClient) -> None:
        self._client = client
        self.asked: set[tuple[str, str]] = set()

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        return await self._client.perform(call, read)

    def follow(
        self, call: Call, *, read_timeout: float | None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        return self._client.follow(call, read_timeout=read_timeout)


@final
class LossyClient(WrappedClient):
    """Loses the answer to the first patch."""

    lost = 0

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        answer = await super().perform(call, read)
        if call.method == "PATCH" and not self.lost:
            self.lost += 1
            raise RequestTimeout("no answer")
        return answer


@final
class NotingClient(WrappedClient):
    """Notes (verb, resource)."""

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        assert call.resource is not None
        self.asked.add((call.verb.lower(), call.resource.plural))
        return await super().perform(call, read)


@final
class ForbiddingClient(WrappedClient):
    """May get objects, and nothing else."""

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        if call.method == "PATCH" or call.verb == "LIST":
            raise Forbidden(403, "Forbidden", "deployments is forbidden")
        return await super().perform(call, read)


@final
class Drainer:
    """Drains a node as the engine does: prepares, then evicts who need not wait."""

    def __init__(self, rig: Rig, informers: InformerFactory, node: str) -> None:
        self.rig = rig
        self.node = node
        self.due: dict[str, float] = {}
        self.said: list[str] = []
        self.awaited: list[str] = []
        self.informers = informers
        self.surges = self.new_surges()
        informers.informer(PODS).add_handler(lambda change: self.surges.pod_changed(change.object))

    def new_surges(self, client: ObjectClient | None = None) -> Surges:
        """As a new process has them."""
        self.due.clear()
        return Surges(
            client or self.rig.client,
            self.informers.store(PODS),
            clock=self.rig.clock,
            marked=lambda key, seconds: self.due.update({key: self.rig.now + seconds}),
        )

    def pods(self) -> list[Pod]:
        return [p for p in self.informers.store(PODS).list() if p.spec.node_name == self.node]

    async def step(self, *, evict: bool = True) -> None:
        due = [p for p in self.pods() if p.metadata.deletion_timestamp is None]
        prepared = await self.surges.prepare(
            due, deadline=self.rig.clock.now() + timedelta(hours=1), exclusive=lambda pod: False
        )
        self.said += prepared.said.values()
        self.awaited += [awaited.detail for awaited in prepared.awaited.values()]
        for pod in due:
            if evict and pod.metadata.uid not in prepared.awaited:
                await self.rig.evict(pod.metadata.name)
        await self.settle()

    async def settle(self) -> None:
        for key in [key for key, when in self.due.items() if when <= self.rig.now]:
            del self.due[key]
            with suppress(Conflict):
                if (after := await self.surges.settle(key)) is not None:
                    self.due[key] = self.rig.now + after
                continue
            self.due[key] = self.rig.now

    async def until_empty(self, *, within: float = 60.0, serving: bool = True) -> float:
        """Drain until the node is empty; somebody serves at every moment of it."""
        began = self.rig.now
        while self.pods():
            assert self.rig.now - began < within, f"not empty within {within} s"
            await self.step()
            for _ in range(25):
                await self.rig.pass_time(0.01)
                assert not serving or serves(self.rig), f"nobody serves at {self.rig.now - began}"
        return self.rig.now - began

    async def until_settled(self, *, within: float = 60.0) -> None:
        began = self.rig.now
        while marked(self.rig):
            assert self.rig.now - began < within, "not put back"
            await self.settle()
            await self.rig.pass_time(0.05)
            assert serves(self.rig)


def serves(rig: Rig) -> bool:
    running = set(rig.running())
    return any(
        name_of(p) in running and not at(p, "metadata", "deletionTimestamp")
        for p in rig.all("pods")
    )


def found(rig: Rig) -> JSONObject:
    return rig.get("deployments", "web", "apps")


def replicas(rig: Rig) -> object:
    return at(found(rig), "spec", "replicas")


def marked(rig: Rig) -> bool:
    labels, notes = (at(found(rig), "metadata", part) or {} for part in ("labels", "annotations"))
    assert isinstance(labels, dict) and isinstance(notes, dict)
    assert (MARK in labels) is (MARK in notes)
    return MARK in notes


Scenario = Callable[[Rig, Drainer], Coroutine[Any, Any, None]]


def while_draining(*manifests: JSONObject) -> Callable[[Scenario], Callable[[], None]]:
    """Run a scenario in a cluster where these workloads serve, and their first pod's node is
    cordoned."""

    def decorated(scenario: Scenario) -> Callable[[], None]:
        async def main(rig: Rig) -> None:
            await rig.boot(*NODES)
            await rig.until(lambda: rig.ready(*NODES) and not any(map(rig.taints, NODES)))
            await rig.create(*manifests)
            await rig.until(lambda: serves(rig) and all(rig.placed().values()))
            informers = InformerFactory(rig.client, clock=rig.clock)
            informers.informer(PODS)
            task = rig.start(informers.run())
            node = next(iter(rig.placed().values()))
            await rig.cordon(node)
            await rig.pass_time(0.5)
            await scenario(rig, Drainer(rig, informers, node))
            await rig.stop(task)

        def test() -> None:
            on_rig(main)

        test.__name__ = scenario.__name__
        test.__doc__ = scenario.__doc__
        return test

    return decorated


@while_draining(singleton("scale"))
async def test_a_scaled_singleton_always_serves_and_is_single_again(rig: Rig, d: Drainer) -> None:
    await d.until_empty()
    await d.until_settled()
    await rig.until(lambda: len(rig.names("pods")) == 1)
    assert serves(rig) and replicas(rig) == 1
    assert not d.said and "by scale of its Deployment" in d.awaited


@while_draining(singleton("scale"), budget(minAvailable=1))
async def test_even_where_a_budget_would_never_let_the_single_pod_go(rig: Rig, d: Drainer) -> None:
    await d.until_empty()
    await d.until_settled()
    assert replicas(rig) == 1


@while_draining(singleton("restart"))
async def test_a_restarted_singleton_always_serves(rig: Rig, d: Drainer) -> None:
    await d.until_empty()
    await d.until_settled()
    await rig.until(lambda: len(rig.names("pods")) == 1)
    template_notes = at(found(rig), "spec", "template", "metadata", "annotations")
    assert isinstance(template_notes, dict)
    assert "kubectl.kubernetes.io/restartedAt" in template_notes
    assert len(rig.all("replicasets", "apps")) == 2, "it was restarted once"


@while_draining(singleton("scale"))
async def test_who_forgets_everything_at_every_step_scales_only_once(rig: Rig, d: Drainer) -> None:
    most = 0
    for _ in range(40):
        d.surges = d.new_surges()
        await d.step()
        most = max(most, int(str(replicas(rig))))
        await rig.pass_time(0.25)
        assert serves(rig)
        for key in await d.surges.find():
            d.due[key] = 0.0
            with suppress(Conflict):
                await d.settle()
    assert most == 2 and replicas(rig) == 1 and not d.pods() and not marked(rig)


@while_draining(singleton("scale"))
async def test_a_lost_answer_scales_nothing_twice(rig: Rig, d: Drainer) -> None:
    lossy = LossyClient(rig.client)
    d.surges = d.new_surges(lossy)
    await d.step()
    assert lossy.lost == 1 and replicas(rig) == 2
    assert d.awaited == ["RequestTimeout: no answer"]
    await d.until_empty()
    await d.until_settled()
    assert replicas(rig) == 1 and not d.said


@while_draining(singleton("scale"))
async def test_a_drain_that_nobody_goes_on_with_is_undone(rig: Rig, d: Drainer) -> None:
    await d.step(evict=False)
    assert replicas(rig) == 2 and marked(rig)
    heir = d.new_surges()
    (key,) = await heir.find()
    assert key == "default/web"
    after = await heir.settle(key)
    assert after is not None and after == pytest.approx(660.0, abs=2.0)
    await rig.pass_time(after)
    assert await heir.settle(key) is None
    assert replicas(rig) == 1 and not marked(rig)
    assert await heir.find() == []


@while_draining(singleton("scale"))
async def test_an_heir_puts_back_what_it_did_not_begin_as_soon_as_the_pod_goes(
    rig: Rig, d: Drainer
) -> None:
    await d.step(evict=False)
    await rig.until(lambda: len(rig.running()) == 2)
    d.surges = d.new_surges()
    (key,) = await d.surges.find()
    d.due[key] = rig.now
    await d.settle()
    (old,) = d.pods()
    assert await rig.evict(old.metadata.name) == 201
    await d.until_settled(within=5.0)
    assert replicas(rig) == 1


@while_draining(singleton("scale"))
async def test_all_it_asks_for_is_within_the_chart_s_roles(rig: Rig, d: Drainer) -> None:
    noting = NotingClient(rig.client)
    d.surges = d.new_surges(noting)
    await d.until_empty()
    await d.until_settled()
    assert await d.surges.find() == []
    assert noting.asked == {
        ("get", "replicasets"),
        ("get", "deployments"),
        ("list", "deployments"),
        ("patch", "deployments"),
        ("list", "horizontalpodautoscalers"),
    }
    rules = yaml.safe_load((ROLES / "target.yaml").read_text())
    granted = {(verb, kind) for r in rules for verb in r["verbs"] for kind in r["resources"]}
    assert noting.asked <= granted


@while_draining(singleton("scale"))
async def test_who_may_not_patch_deployments_evicts_as_usual(rig: Rig, d: Drainer) -> None:
    d.surges = d.new_surges(ForbiddingClient(rig.client))
    await d.until_empty(serving=False)
    assert len(d.said) == 1 and "Forbidden" in d.said[0]
    assert replicas(rig) == 1 and not marked(rig)


@while_draining(singleton("scale"))
async def test_what_others_left_is_looked_for_and_looked_after(rig: Rig, d: Drainer) -> None:
    await d.step(evict=False)
    queue: WorkQueue[str] = WorkQueue("surge", clock=rig.clock)
    settling = SurgeSettling(d.new_surges(), queue)
    assert (await settling.reconcile(ALL)).after == 1800.0
    assert await queue.get() == "default/web"
    kept = await settling.reconcile("default/web")
    assert kept.after is not None and kept.after > 600.0
    await rig.pass_time(kept.after)
    assert await settling.reconcile("default/web") == DONE
    assert await settling.reconcile("default/none") == DONE
    assert not marked(rig)


@while_draining(workload("ReplicaSet", replicas=1))
async def test_who_may_not_look_at_deployments_is_asked_again_in_half_an_hour(
    rig: Rig, d: Drainer
) -> None:
    queue: WorkQueue[str] = WorkQueue("surge", clock=rig.clock)
    settling = SurgeSettling(d.new_surges(ForbiddingClient(rig.client)), queue)
    assert (await settling.reconcile(ALL)).after == 1800.0


@while_draining(singleton("scale"))
async def test_who_gives_up_can_put_all_back_at_once(rig: Rig, d: Drainer) -> None:
    await d.step(evict=False)
    assert replicas(rig) == 2
    await d.surges.put_back()
    assert replicas(rig) == 1 and not marked(rig) and serves(rig)
    await d.surges.put_back()


@while_draining(singleton("scale"))
async def test_a_user_who_scales_meanwhile_is_respected(rig: Rig, d: Drainer) -> None:
    await d.step(evict=False)
    await rig.patch(DEPLOYMENT, {"spec": {"replicas": 3}})
    await d.until_empty()
    await d.until_settled()
    assert replicas(rig) == 3


@while_draining(singleton("scale"))
async def test_a_successor_that_never_serves_holds_the_drain_up_for_ten_minutes(
    rig: Rig, d: Drainer
) -> None:
    for node in NODES:
        await rig.cordon(node)
    took = await d.until_empty(within=700.0, serving=False)
    assert 600 <= took <= 620
    assert d.said == ["no successor was Ready in time"]
    await rig.until(lambda: not d.pods())
    await d.settle()
    await rig.pass_time(1.0)
    await d.settle()
    assert replicas(rig) == 1 and not marked(rig)


@while_draining(singleton("scale", replicas=2))
async def test_who_has_several_replicas_goes_as_others_do(rig: Rig, d: Drainer) -> None:
    await d.until_empty()
    assert not marked(rig) and not d.awaited
    assert d.said == ["Deployment default/web asks for 2 replicas, and surge is for a single one"]


@while_draining(workload("ReplicaSet", replicas=1))
async def test_who_does_not_ask_costs_no_request(rig: Rig, d: Drainer) -> None:
    before = rig.server.requests.snapshot()
    await d.step(evict=False)
    assert rig.server.requests.snapshot() == before
    assert not d.awaited and not d.said
