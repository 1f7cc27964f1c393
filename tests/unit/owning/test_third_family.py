"""A third family of sets has all of it from the engine: what it does, not how it is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from mcm.api.meta import JSONObject
from mcm.client.errors import Conflict, Forbidden, KubeError, RequestTimeout
from mcm.client.requests import Call
from mcm.client.transport import Response
from tests.unit.machineset.cluster import Cluster, Running, Write, play
from tests.unit.owning.widgets import FINALIZER, WIDGET_SETS, WIDGETS, Widget, WidgetSet, build

R = TypeVar("R")
LABELS = {"shop": "toys"}


def widget_set(replicas: int, name: str = "set", **labels: str) -> JSONObject:
    spec = {"replicas": replicas, "selector": {"matchLabels": labels or LABELS}, "color": "red"}
    return {"metadata": {"name": name}, "spec": spec}


def widget(name: str, **labels: str) -> JSONObject:
    return {"metadata": {"name": name, "labels": labels or LABELS}}


def running(cluster: Cluster) -> Running:
    return Running(cluster, [build(cluster.context)])


def living(cluster: Cluster) -> list[Widget]:
    return [w for w in cluster.all(WIDGETS) if w.metadata.deletion_timestamp is None]


def the_set(cluster: Cluster, name: str = "set") -> WidgetSet:
    return cluster.get(WIDGET_SETS, name)


def owner_of(cluster: Cluster, name: str) -> str:
    reference = cluster.get(WIDGETS, name).metadata.controller_ref()
    return "" if reference is None else reference.name


async def vanish(cluster: Cluster) -> None:
    for leaving in cluster.all(WIDGETS):
        if leaving.metadata.deletion_timestamp is not None:
            await cluster.patch(WIDGETS, leaving.metadata.name, {"metadata": {"finalizers": None}})


def test_a_set_makes_its_children_reports_and_then_writes_nothing() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(WIDGET_SETS, widget_set(3))
            await controllers.settle()
            assert [w.color for w in cluster.all(WIDGETS)] == ["red"] * 3
            status = the_set(cluster).status
            assert (status.replicas, status.observed_generation) == (3, 1)
            assert the_set(cluster).metadata.finalizers == (FINALIZER,)
            verbs = [f"{w.verb} {w.resource} {w.subresource}".strip() for w in cluster.writes[1:]]
            expected = ["patch widgetsets", *["create widgets"] * 3, "patch widgetsets status"]
            assert verbs == expected
            assert cluster.events.seen[0][3].startswith("Created widget set-")
            cluster.writes.clear()
            await controllers.settle(24 * 3600)
            assert cluster.writes == []

    play(scenario)


def test_a_child_that_comes_goes_or_changes_hands_wakes_its_owners() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(WIDGET_SETS, widget_set(2))
            await cluster.create(WIDGET_SETS, widget_set(1, "other", shop="books"))
            await controllers.settle()
            moved = next(w for w in living(cluster) if w.metadata.labels == LABELS).metadata.name
            await cluster.patch(WIDGETS, moved, {"metadata": {"labels": {"shop": "books"}}})
            await controllers.settle()
            # Released by the one, adopted by the other, which had one already and lets one go.
            assert owner_of(cluster, moved) == "other"
            assert the_set(cluster).status.replicas == 2
            assert len([w for w in living(cluster) if w.metadata.labels == LABELS]) == 2
            assert len([w for w in living(cluster) if w.metadata.labels != LABELS]) == 1
            await vanish(cluster)
            await controllers.settle()
            assert the_set(cluster, "other").status.replicas == 1

    play(scenario)


def test_an_orphan_is_adopted_by_one_of_two_that_select_it() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(WIDGET_SETS, widget_set(0, "a"))
            await cluster.create(WIDGET_SETS, widget_set(0, "b"))
            await controllers.settle()
            # Both hear of it at once; whoever adopts it deletes it, as none is wanted.
            await cluster.create(WIDGETS, widget("stray"))
            await controllers.settle()
            adoptions = [w for w in cluster.writes if (w.verb, w.resource) == ("patch", "widgets")]
            assert len(adoptions) in (1, 2)  # the second is refused: the version is another
            assert cluster.all(WIDGETS) == []

    play(scenario)


@pytest.mark.parametrize("gone", ["replaced", "leaving", "deleted"])
def test_an_owner_the_server_does_not_know_any_more_adopts_nothing(gone: str) -> None:
    async def scenario() -> None:
        cluster = Cluster()
        controllers = running(cluster)  # the stores are there now
        await cluster.create(WIDGET_SETS, widget_set(1))
        await cluster.create(WIDGETS, widget("stray"))
        finalized: JSONObject = {"metadata": {"finalizers": [FINALIZER]}}
        await cluster.patch(WIDGET_SETS, "set", finalized)
        # The server has moved on, and no watch has told the store.
        if gone == "replaced":
            other: JSONObject = {"metadata": {"uid": "another"}}
            cluster.api.alter(WIDGET_SETS, "set", other, cluster.namespace)
        elif gone == "leaving":
            leaving: JSONObject = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
            cluster.api.alter(WIDGET_SETS, "set", leaving, cluster.namespace)
        else:
            cluster.api.remove(WIDGET_SETS, "set", cluster.namespace)
        async with controllers:
            cluster.writes.clear()
            await controllers.settle(60)
            assert owner_of(cluster, "stray") == ""
            assert [w for w in cluster.writes if w.resource == "widgets"] == []

    play(scenario)


@pytest.mark.parametrize("error", [RequestTimeout("no answer"), Conflict(409, "Conflict", "late")])
def test_while_it_is_open_whose_an_orphan_is_no_child_is_made_in_its_place(
    error: KubeError,
) -> None:
    async def scenario() -> None:
        cluster = Cluster()
        adoptions: list[Write] = []

        def lose(write: Write) -> KubeError | None:
            if (write.verb, write.resource) != ("patch", "widgets"):
                return None
            adoptions.append(write)
            return error if len(adoptions) < 4 else None

        if isinstance(error, Conflict):
            cluster.api.refuse = lose
        else:
            cluster.api.lose = lose
        async with running(cluster) as controllers:
            await cluster.create(WIDGETS, widget("stray"))
            await cluster.create(WIDGET_SETS, widget_set(1))
            await controllers.settle(1)
            cluster.behind(cluster.get(WIDGETS, "stray"), WIDGETS)  # the watch catches up
            await controllers.settle(60)
            assert owner_of(cluster, "stray") == "set"
            assert len(cluster.all(WIDGETS)) == 1

    play(scenario)


def test_a_status_whose_answer_got_lost_is_put_right_when_the_mirror_knows() -> None:
    """It says 2, the mirror still says 1, and 1 it is again: the same is not the same."""

    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(WIDGET_SETS, widget_set(1))
            await controllers.settle()
            cluster.api.lose = lambda w: RequestTimeout("no answer") if w.subresource else None
            await cluster.create(WIDGETS, widget("stray"))  # adopted, one too many, deleted
            cluster.api.refuse = lambda w: (
                Forbidden(403, "Forbidden", "not now") if w.verb == "delete" else None
            )
            await controllers.settle(1)
            assert the_set(cluster).status.replicas == 2
            cluster.api.lose = cluster.api.refuse = lambda _: None
            await controllers.settle(60)
            await vanish(cluster)
            await controllers.settle(60)
            cluster.behind(the_set(cluster), WIDGET_SETS)  # the watch catches up
            await controllers.settle(1000)
            assert len(cluster.all(WIDGETS)) == 1
            assert the_set(cluster).status.replicas == 1
            writes = len(cluster.writes)
            await controllers.settle(24 * 3600)
            assert len(cluster.writes) == writes

    play(scenario)


def test_an_adoption_that_is_refused_for_good_does_not_stop_the_set() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        denied = Forbidden(403, "Forbidden", "a webhook will not have it")
        cluster.api.refuse = lambda w: denied if w.name == "stray" and w.verb == "patch" else None
        async with running(cluster) as controllers:
            await cluster.create(WIDGETS, widget("stray"))
            await cluster.create(WIDGET_SETS, widget_set(1))
            await controllers.settle(60)
            assert owner_of(cluster, "stray") == ""
            assert len(cluster.all(WIDGETS)) == 2

    play(scenario)


def test_an_orphan_whose_newest_state_cannot_be_read_is_left_alone() -> None:
    """The mirror shows its last legible state: no version of that will ever be accepted."""

    async def scenario() -> None:
        cluster = Cluster()
        controllers = running(cluster)  # the stores are there now
        await cluster.create(WIDGETS, widget("stray"))
        cluster.api.alter(WIDGETS, "stray", {"color": "none"}, "ns")
        cluster.factory.store(WIDGETS).mark_unreadable("ns/stray", "color: not a string")
        async with controllers:
            await cluster.create(WIDGET_SETS, widget_set(1))
            await controllers.settle(60)
            assert owner_of(cluster, "stray") == ""
            assert the_set(cluster).status.replicas == 1
            assert [w.name for w in cluster.writes if w.name == "stray"] == ["stray"]  # our own
            # It stays to be looked at, though it is one too many.
            mended: JSONObject = {"color": "red", "metadata": {"finalizers": ["example.com/look"]}}
            cluster.api.alter(WIDGETS, "stray", mended, "ns")
            cluster.behind(cluster.get(WIDGETS, "stray"), WIDGETS)  # somebody mended it
            await controllers.settle(60)
            assert owner_of(cluster, "stray") == "set"

    play(scenario)


def test_lost_answers_never_cost_a_child_too_many() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        lost = iter([True, False, True, True] + [False] * 1000)

        def lose(write: Write) -> KubeError | None:
            if (write.verb, write.resource) != ("create", "widgets"):
                return None
            return RequestTimeout("no answer") if next(lost) else None

        cluster.api.lose = lose
        async with running(cluster) as controllers:
            await cluster.create(WIDGET_SETS, widget_set(4))
            await controllers.settle(600)
            assert len(cluster.all(WIDGETS)) == 4
            for each in cluster.all(WIDGETS):
                cluster.behind(each, WIDGETS)
            await controllers.settle(600)
            assert len(cluster.all(WIDGETS)) == 4

    play(scenario)


def test_a_refusal_after_a_lost_answer_does_not_unmake_the_child() -> None:
    """The first request used the quota up: that its repetition is refused proves nothing."""

    async def scenario() -> None:
        cluster = Cluster()
        asked: list[Write] = []

        def refuse(write: Write) -> KubeError | None:
            if (write.verb, write.resource) != ("create", "widgets"):
                return None
            asked.append(write)
            refused = 1 < len(asked) < 5
            return Forbidden(403, "Forbidden", "exceeded quota") if refused else None

        cluster.api.refuse = refuse
        cluster.api.lose = lambda w: RequestTimeout("no answer") if len(asked) == 1 else None
        async with running(cluster) as controllers:
            await cluster.create(WIDGET_SETS, widget_set(1))
            await controllers.settle(60)
            assert len({write.name for write in asked}) == 1
            assert len(cluster.all(WIDGETS)) == 1

    play(scenario)


def test_creations_that_are_cancelled_under_way_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of a batch fails as nobody expects and takes the others along, which had arrived."""

    async def scenario() -> None:
        cluster = Cluster()
        perform, created = cluster.api.perform, 0

        async def stumbling(call: Call, read: Callable[[Response], R]) -> R:
            nonlocal created
            answer = await perform(call, read)
            if call.verb == "CREATE" and call.resource is WIDGETS:
                created += 1
                if created == 2:
                    await cluster.clock.sleep(0.5)
                    raise RuntimeError("a bug")
                await cluster.clock.sleep(1)
            return answer

        monkeypatch.setattr(cluster.api, "perform", stumbling)
        async with running(cluster) as controllers:
            await cluster.create(WIDGET_SETS, widget_set(3))
            await controllers.settle(60)
            assert len(cluster.all(WIDGETS)) == 3

    play(scenario)


def test_a_name_that_became_anothers_while_it_was_asked_for_is_given_up() -> None:
    """The store shows whose it is before the refusal arrives: no event will come for this set."""

    async def scenario() -> None:
        cluster = Cluster()
        taken: list[str] = []

        def race(write: Write) -> KubeError | None:
            if (write.verb, write.resource) == ("create", "widgets") and not taken:
                taken.append(write.name)
                meta: JSONObject = {"name": write.name, "namespace": "ns", "uid": "x"}
                cluster.api.put(WIDGETS, {"metadata": meta})
                cluster.behind(cluster.get(WIDGETS, write.name), WIDGETS)
            return None

        cluster.api.refuse = race
        async with running(cluster) as controllers:
            await cluster.create(WIDGET_SETS, widget_set(1))
            await controllers.settle(60)
            assert owner_of(cluster, taken[0]) == ""
            own = [w for w in cluster.all(WIDGETS) if w.metadata.controller_ref()]
            assert len(own) == 1
            assert own[0].metadata.name != taken[0]

    play(scenario)


def test_a_deleted_set_takes_its_children_along_and_goes_last() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(WIDGET_SETS, widget_set(3))
            await controllers.settle()
            await cluster.delete(WIDGET_SETS, "set")
            await controllers.settle()
            assert living(cluster) == []
            assert the_set(cluster).metadata.finalizers == (FINALIZER,)
            await vanish(cluster)
            await controllers.settle()
            assert cluster.all(WIDGET_SETS) == []

    play(scenario)


def test_a_deleted_set_keeps_its_children_if_it_was_asked_to() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with running(cluster) as controllers:
            await cluster.create(WIDGET_SETS, widget_set(2))
            await controllers.settle()
            keep: JSONObject = {"metadata": {"finalizers": [FINALIZER, "orphan"]}}
            await cluster.patch(WIDGET_SETS, "set", keep)
            await cluster.delete(WIDGET_SETS, "set")
            await controllers.settle()
            assert the_set(cluster).metadata.finalizers == ("orphan",)
            assert len(living(cluster)) == 2

    play(scenario)
