"""Refused writes, lost answers, a lagging mirror, a user of two minds: in any order."""

from __future__ import annotations

import random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcm.client.errors import Conflict, Forbidden, KubeError, RequestTimeout, ServerError
from tests.unit.machineset.cluster import Cluster, Running, Write, play
from tests.unit.owning.test_third_family import LABELS, living, the_set, vanish, widget, widget_set
from tests.unit.owning.widgets import FINALIZER, WIDGET_SETS, WIDGETS, build

REFUSED = (
    RequestTimeout("no answer, and nothing done"),
    ServerError(500, "InternalError", "nothing done"),
    Conflict(409, "Conflict", "nothing done"),
    Forbidden(403, "Forbidden", "quota"),
)
LOST = (RequestTimeout("no answer, though done"), ServerError(504, "Timeout", "though done"))


class Weather:
    """Faults of the controller's writes by ``chance``, for as long as it is foul."""

    def __init__(self, cluster: Cluster, chance: random.Random) -> None:
        self.foul = False
        self.most_owned = 0
        self._cluster = cluster
        self._chance = chance
        cluster.api.refuse = lambda write: self._fault(write, REFUSED)
        cluster.api.lose = self._after

    def _fault(self, write: Write, errors: tuple[KubeError, ...]) -> KubeError | None:
        if not self.foul or self._chance.random() > 0.25:
            return None
        return self._chance.choice(errors)

    def _after(self, write: Write) -> KubeError | None:
        owned = [w for w in living(self._cluster) if w.metadata.controller_ref()]
        self.most_owned = max(self.most_owned, len(owned))
        return self._fault(write, LOST)


def catch_up(cluster: Cluster) -> None:
    """The watch brings what no answer told."""
    for each in cluster.all(WIDGETS):
        cluster.behind(each, WIDGETS)
    for one in cluster.all(WIDGET_SETS):
        cluster.behind(one, WIDGET_SETS)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
@example(seed=282)  # a refusal after a lost answer
@example(seed=110098453)  # a status without an answer
def test_never_a_child_too_many_and_the_right_number_in_the_end(seed: int) -> None:
    async def scenario() -> None:
        chance, cluster = random.Random(seed), Cluster()
        weather, asked, strays = Weather(cluster, chance), [chance.randint(0, 5)], 0
        async with Running(cluster, [build(cluster.context)]) as controllers:
            await cluster.create(WIDGET_SETS, widget_set(asked[0]))
            for _ in range(chance.randint(1, 5)):
                weather.foul = True
                await controllers.settle(chance.choice((0.001, 0.1, 3.0, 60.0)))
                weather.foul = False
                if chance.random() < 0.5:
                    catch_up(cluster)
                if chance.random() < 0.3:
                    strays += 1
                    await cluster.create(WIDGETS, widget(f"stray{strays}"))
                if chance.random() < 0.5:
                    asked.append(chance.randint(0, 5))
                    await cluster.patch(WIDGET_SETS, "set", {"spec": {"replicas": asked[-1]}})
            catch_up(cluster)
            await controllers.settle(3000)
            assert weather.most_owned <= max(asked) + strays
            owned = [w for w in living(cluster) if w.metadata.controller_ref()]
            assert len(owned) == len(living(cluster)) == asked[-1]
            assert all(w.metadata.labels == LABELS for w in owned)
            await vanish(cluster)
            await controllers.settle(3000)
            assert the_set(cluster).metadata.finalizers == (FINALIZER,)
            assert the_set(cluster).status.replicas == asked[-1]
            writes = len(cluster.writes)
            await controllers.settle(24 * 3600)
            assert len(cluster.writes) == writes

    play(scenario)
