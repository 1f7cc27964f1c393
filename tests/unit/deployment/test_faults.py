"""A deployment and its sets: refused writes, lost answers, a lagging mirror, in any order."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.client.errors import Conflict, Forbidden, KubeError, RequestTimeout, ServerError
from tests.unit.deployment.test_reconciler import Field, pool
from tests.unit.machineset.cluster import Cluster, Write, play

REFUSED = (
    RequestTimeout("no answer, and nothing done"),
    ServerError(500, "InternalError", "nothing done"),
    Conflict(409, "Conflict", "nothing done"),
    Forbidden(403, "Forbidden", "quota"),
)
LOST = (RequestTimeout("no answer, though done"), ServerError(504, "Timeout", "though done"))


class Faults:
    """Of what the two controllers write, for as long as ``on``; the cloud's own writes pass."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self.on = False
        self._chance = chance
        cluster.api.refuse = lambda write: self._fault(write, REFUSED)
        cluster.api.lose = lambda write: self._fault(write, LOST)

    def _fault(self, write: Write, errors: tuple[KubeError, ...]) -> KubeError | None:
        ours = write.resource in ("machinesets", "machinedeployments") or write.verb == "delete"
        ours = ours or (write.verb, write.resource) == ("create", "machines")
        if not self.on or not ours or self._chance.random() > 0.25:
            return None
        return self._chance.choice(errors)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_rollout_ends_as_it_should_whatever_answers_get_lost(seed: int) -> None:
    async def scenario() -> None:
        chance, cluster = random.Random(seed), Cluster(target=False)
        faults = Faults(cluster, chance)
        async with Field(cluster) as field:
            replicas, wanted = chance.randint(1, 3), "class-a"
            await cluster.create(MACHINE_DEPLOYMENTS, pool(replicas=replicas))
            for _ in range(chance.randint(1, 4)):
                faults.on = True
                await field.settle(chance.choice((0.01, 1.0, 15.0, 60.0)))
                faults.on = False
                if chance.random() < 0.5:
                    catch_up(cluster)
                if chance.random() < 0.6:
                    wanted = chance.choice(("class-a", "class-b", "class-c"))
                    await field.update(wanted)
            catch_up(cluster)
            await field.settle(2200)
            assert field.classes() == [wanted] * replicas
            assert field.available == replicas
            assert len([s for s in field.sets if s.spec.replicas]) == 1
            templates = [str(s.spec.template.spec["class"]) for s in field.sets]
            assert len(templates) == len(set(templates)), "two sets of one template"
            status = field.pool.status
            assert (status.replicas, status.updated_replicas) == (replicas, replicas)
            assert status.available_replicas == replicas
            assert status.observed_generation == field.pool.metadata.generation
            writes = len(cluster.writes)
            await field.settle(600)
            assert len(cluster.writes) == writes

    play(scenario)


def catch_up(cluster: Cluster) -> None:
    """The watch brings what no answer told."""
    for resource in (MACHINES, MACHINE_SETS, MACHINE_DEPLOYMENTS):
        for each in cluster.all(resource):
            cluster.behind(each, resource)
