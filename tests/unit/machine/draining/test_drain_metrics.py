"""Numbers of drains: how long pods took, what was answered, and what is under way."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry

from mcm.api.core import Pod
from mcm.api.meta import ObjectMeta
from mcm.controllers.machine.draining.metrics import DrainMetrics
from mcm.drain.execution import Action, Answer, Answered, AnswerKind, Verb
from mcm.drain.memory import Asked
from mcm.drain.request import DrainRequest, Purpose
from mcm.drain.result import Cause, PodStanding
from mcm.drain.volumes import Handover, Stage
from mcm.drain.watch import DrainWatch
from tests.unit.machine.objects import BORN, after

REQUEST = DrainRequest(node="n", start=BORN, deadline=after(hours=2), purpose=Purpose.DELETION)


def asked(at: float, *, accepted: bool = True) -> Asked:
    return Asked(verb=Verb.EVICT, tries=1, at=at, moment=after(seconds=at), accepted=accepted)


def names(registry: CollectorRegistry) -> set[str]:
    return {metric.name for metric in registry.collect()}


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


def test_pods_are_timed_from_the_accepted_request_to_their_end() -> None:
    watch = DrainWatch(Purpose.DELETION)
    first = watch.durations({"a": asked(0), "b": asked(5)}, {}, after(seconds=5))
    assert (first.left, first.held) == ((), ())
    then = watch.durations({"b": asked(5)}, {}, after(seconds=30))
    assert then.left == (30.0,)
    assert watch.durations({}, {}, after(seconds=45)).left == (40.0,)
    assert watch.durations({}, {}, after(seconds=50)).left == ()


def test_a_refused_pod_counts_once_it_was_accepted() -> None:
    watch, held = DrainWatch(Purpose.DELETION), {"a": BORN}
    assert watch.durations({"a": asked(0, accepted=False)}, held, BORN).held == ()
    assert watch.durations({"a": asked(90)}, held, after(seconds=90)).held == (90.0,)
    assert watch.durations({"a": asked(90)}, held, after(seconds=95)).held == ()
    # One that goes without having been accepted is nobody's doing of ours.
    other = DrainWatch(Purpose.DELETION)
    other.durations({"b": asked(0, accepted=False)}, {}, BORN)
    assert other.durations({}, {}, after(seconds=9)).left == ()


def test_answers_are_counted_by_step_and_kind() -> None:
    registry = CollectorRegistry()
    metrics = DrainMetrics.of(registry)
    pod = Pod(metadata=ObjectMeta(name="secret-name", namespace="shop", uid="u"))
    for verb, grace, kind in (
        (Verb.EVICT, None, AnswerKind.HELD_BY_BUDGET),
        (Verb.EVICT, None, AnswerKind.ACCEPTED),
        (Verb.DELETE, 0, AnswerKind.ACCEPTED),
    ):
        metrics.answered(Answered(Action(verb, pod, grace), Answer(kind, "200"), 0.1))
    name = "mcm_drain_requests_total"
    assert value(registry, name, step="evict", answer="held_by_budget") == 1
    assert value(registry, name, step="evict", answer="accepted") == 1
    assert value(registry, name, step="delete_at_once", answer="accepted") == 1


def _handover(stage: Stage, *, late: bool = False, detached: float | None = 20) -> Handover:
    return Handover(
        pod_uid="u",
        pod_key="shop/a",
        volumes=(),
        grace=timedelta(seconds=30),
        asked_at=BORN,
        stage=stage,
        since=after(seconds=50),
        gone_at=after(seconds=10),
        detached_at=None if detached is None else after(seconds=detached),
        late=late,
    )


@pytest.mark.parametrize(
    ("handover", "outcome", "detach", "reattach"),
    [
        (_handover(Stage.ATTACHED), "attached", 10, 30),
        (_handover(Stage.SKIPPED), "skipped", 10, None),
        (_handover(Stage.SKIPPED, late=True, detached=None), "late", None, None),
    ],
)
def test_handovers_are_timed_as_far_as_they_came(
    handover: Handover, outcome: str, detach: float | None, reattach: float | None
) -> None:
    registry = CollectorRegistry()
    DrainMetrics.of(registry).handed_over(REQUEST, handover)
    assert value(registry, "mcm_drain_handovers_total", outcome=outcome) == 1
    assert value(registry, "mcm_drain_detach_duration_seconds_sum") == (detach or 0)
    assert value(registry, "mcm_drain_detach_duration_seconds_count") == (detach is not None)
    assert value(registry, "mcm_drain_reattach_duration_seconds_sum") == (reattach or 0)
    assert value(registry, "mcm_drain_reattach_duration_seconds_count") == (reattach is not None)


def test_drains_and_the_pods_they_wait_for_are_counted_at_each_scrape() -> None:
    registry = CollectorRegistry()
    metrics = DrainMetrics.of(registry)
    watches: list[DrainWatch] = []

    def shown() -> Iterable[DrainWatch]:
        return watches

    metrics.show(shown)
    watches.append(DrainWatch(Purpose.DELETION))
    watches[0].pods = tuple(
        PodStanding(pod=f"shop/{i}", uid=str(i), cause=cause)
        for i, cause in enumerate((Cause.LEAVING, Cause.LEAVING, Cause.HELD_BY_BUDGET))
    )
    assert value(registry, "mcm_drains_under_way", purpose="deletion") == 1
    assert value(registry, "mcm_drains_under_way", purpose="preservation") == 0
    assert value(registry, "mcm_drain_pods", cause="leaving") == 2
    assert value(registry, "mcm_drain_pods", cause="held_by_budget") == 1
    watches.clear()
    assert value(registry, "mcm_drains_under_way", purpose="deletion") == 0
    assert value(registry, "mcm_drain_pods", cause="leaving") == 0


def test_every_family_is_documented_where_it_is_made_and_for_operators() -> None:
    registry = CollectorRegistry()
    DrainMetrics.of(registry)
    from pathlib import Path

    from mcm.controllers.machine.draining import metrics as module

    page = (Path(module.__file__).parents[4] / "docs" / "drain.md").read_text()
    for metric in registry.collect():
        name = f"{metric.name}_total" if metric.type == "counter" else metric.name
        assert f"{name} " in (module.__doc__ or "") and f"`{name}`" in page
        for sample in metric.samples:
            assert set(sample.labels) <= {"step", "answer", "purpose", "cause", "outcome", "le"}


def test_a_clock_that_was_set_back_makes_no_negative_duration() -> None:
    registry = CollectorRegistry()
    metrics = DrainMetrics.of(registry)
    metrics.left(-5.0)
    metrics.held(-5.0)
    assert value(registry, "mcm_drain_leave_duration_seconds_sum") == 0
    assert value(registry, "mcm_drain_hold_duration_seconds_sum") == 0
