"""The status of PodDisruptionBudgets, from which the server grants or refuses evictions."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import final

import msgspec

from mcm.api.core import PodDisruptionBudget
from mcm.api.meta import JSONObject, OwnerReference
from mcm.api.selectors import matches
from mcm.api.timestamps import rfc3339
from mcm.client.client import Client
from mcm.client.errors import NotFound
from mcm.clock import Clock
from mcm.controllers.runtime import DONE, Outcome
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.sandbox.world.actor import Actor
from mcm.sandbox.world.budgets import Allowance, allowance
from mcm.sandbox.world.kinds import (
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    Deployment,
    Pod,
    ReplicaSet,
)
from mcm.sandbox.world.replica_sets import explicit
from mcm.sandbox.world.stateful_sets.kinds import STATEFUL_SETS, StatefulSet

_CONDITION = "DisruptionAllowed"


@final
class Disruption(Actor):
    """Keyed by budget. A version is the precondition of its writes: the server takes from the same
    numbers with each eviction, and none of those may be lost."""

    name = "disruption-controller"

    def __init__(self, client: Client, mirror: InformerFactory, *, clock: Clock) -> None:
        super().__init__(client, mirror, clock=clock)
        self._budgets = mirror.store(POD_DISRUPTION_BUDGETS)
        self._pods = mirror.store(PODS)
        self._sets = mirror.store(REPLICA_SETS)
        self._deployments = mirror.store(DEPLOYMENTS)
        self._stateful_sets = mirror.store(STATEFUL_SETS)
        mirror.informer(POD_DISRUPTION_BUDGETS).add_handler(self._on_budget)
        mirror.informer(PODS).add_handler(self._on_pod)
        mirror.informer(REPLICA_SETS).add_handler(self._on_owner)
        mirror.informer(DEPLOYMENTS).add_handler(self._on_owner)
        mirror.informer(STATEFUL_SETS).add_handler(self._on_owner)

    # ---- what an event concerns -----------------------------------------------------------------

    def _on_budget(self, change: Change[PodDisruptionBudget]) -> None:
        self._queue.add(change.object.metadata.key)

    def _on_pod(self, change: Change[Pod]) -> None:
        states = [pod for pod in (change.old, change.new) if pod is not None]
        for budget in self._budgets.list(states[0].metadata.namespace):
            if any(matches(budget.spec.selector, pod.metadata.labels) for pod in states):
                self._queue.add(budget.metadata.key)

    def _on_owner(
        self, change: Change[ReplicaSet] | Change[Deployment] | Change[StatefulSet]
    ) -> None:
        old, new = change.old, change.new
        if old is not None and new is not None and old.spec.replicas == new.spec.replicas:
            return
        for budget in self._budgets.list(change.object.metadata.namespace):
            self._queue.add(budget.metadata.key)

    # ---- one budget -----------------------------------------------------------------------------

    async def _reconcile(self, key: str) -> Outcome:
        budget = self._budgets.get(key)
        if budget is None or budget.metadata.deletion_timestamp is not None:
            return DONE
        namespace = budget.metadata.namespace
        pods = [
            pod
            for pod in self._pods.list(namespace)
            if not pod.finished and matches(budget.spec.selector, pod.metadata.labels)
        ]
        found = allowance(
            budget.spec,
            pods,
            scale=self._scale(namespace, pods),
            granted=budget.status.disrupted_pods,
            now=self._clock.now(),
        )
        await self._report(budget, found)
        return Outcome(after=found.wait, reason="until a granted eviction is forgotten")

    def _scale(self, namespace: str, pods: Iterable[Pod]) -> int:
        """Sum up what the pods' owners want, each owner once; who has none counts for one."""
        owners: dict[str, OwnerReference] = {}
        alone = 0
        for pod in pods:
            ref = pod.metadata.controller_ref()
            if ref is None:
                alone += 1
            else:
                owners[ref.uid] = ref
        wanted: dict[str, int] = {}
        for ref in owners.values():
            uid, replicas = self._wanted_by(namespace, ref, pods)
            wanted[uid] = replicas
        return alone + sum(wanted.values())

    def _wanted_by(
        self, namespace: str, ref: OwnerReference, pods: Iterable[Pod]
    ) -> tuple[str, int]:
        """Return the topmost owner's UID and its replicas; as many as there are, if unknown."""
        key = f"{namespace}/{ref.name}"
        stateful_set = self._stateful_sets.get(key)
        if stateful_set is not None and stateful_set.metadata.uid == ref.uid:
            return ref.uid, stateful_set.spec.replicas
        replica_set = self._sets.get(key)
        if replica_set is None or replica_set.metadata.uid != ref.uid:
            return ref.uid, sum(1 for pod in pods if pod.metadata.controller_ref() == ref)
        above = replica_set.metadata.controller_ref()
        deployment = self._deployments.get(f"{namespace}/{above.name}") if above else None
        if deployment is None or above is None or deployment.metadata.uid != above.uid:
            return ref.uid, replica_set.spec.replicas
        return above.uid, deployment.spec.replicas

    async def _report(self, budget: PodDisruptionBudget, found: Allowance) -> None:
        status = msgspec.structs.replace(
            budget.status,
            observed_generation=budget.metadata.generation,
            disruptions_allowed=found.allowed,
            current_healthy=found.healthy,
            desired_healthy=found.desired,
            expected_pods=found.expected,
            disrupted_pods=found.disrupted,
        )
        if status == budget.status:
            return
        meta = budget.metadata
        members = explicit(status)
        # In a merge patch, what is to go must be named.
        gone = dict.fromkeys(budget.status.disrupted_pods)
        members["disruptedPods"] = {**gone, **found.disrupted}
        members["conditions"] = [self._condition(budget, found)]
        with suppress(NotFound):
            await self._writer.patch(
                POD_DISRUPTION_BUDGETS,
                meta.name,
                {
                    "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
                    "status": members,
                },
                namespace=meta.namespace,
                subresource="status",
            )

    def _condition(self, budget: PodDisruptionBudget, found: Allowance) -> JSONObject:
        enough = found.allowed > 0
        return {
            "type": _CONDITION,
            "status": "True" if enough else "False",
            "reason": "SufficientPods" if enough else "InsufficientPods",
            "message": "",
            "observedGeneration": budget.metadata.generation,
            "lastTransitionTime": rfc3339(self._clock.now()),
        }
