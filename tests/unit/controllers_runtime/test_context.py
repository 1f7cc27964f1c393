"""What controllers are built from: queues and controllers that share their metric families."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from mcm.clock import LoopClock
from mcm.controllers.context import ControllerContext
from mcm.controllers.runtime import DONE, Outcome
from mcm.controllers.settings import ControllerSettings
from mcm.metrics import exponential_buckets, once_per_registry
from mcm.workqueue import QueueMetrics


def new_context(registry: CollectorRegistry) -> ControllerContext:
    absent = cast("object", None)
    return ControllerContext(
        control=absent,  # type: ignore[arg-type] # the runtime never touches these
        target=None,
        control_informers=absent,  # type: ignore[arg-type]
        target_informers=None,
        namespace="ns",
        clock=LoopClock(datetime(2026, 1, 1, tzinfo=UTC)),
        events=absent,  # type: ignore[arg-type]
        provider=absent,  # type: ignore[arg-type]
        options=ControllerSettings(),
        registry=registry,
        random=random.Random(0),
    )


async def reconcile(key: str) -> Outcome:
    return DONE


async def test_queues_and_controllers_of_one_context_report_side_by_side() -> None:
    registry = CollectorRegistry()
    context = new_context(registry)
    for name, workers in (("machineset", 10), ("machine", 50)):
        queue = context.queue(name)
        queue.add("a")
        controller = context.controller(name, queue, reconcile, workers=workers)
        assert (controller.name, controller.queue) == (name, queue)
    for name, workers in (("machineset", 10), ("machine", 50)):
        sample = registry.get_sample_value
        assert sample("mcm_workqueue_adds_total", {"name": name}) == 1
        assert sample("mcm_controller_max_workers", {"controller": name}) == workers


def test_metric_families_are_made_once_for_a_registry() -> None:
    first, second = CollectorRegistry(), CollectorRegistry()
    assert once_per_registry(first, QueueMetrics) is once_per_registry(first, QueueMetrics)
    assert once_per_registry(first, QueueMetrics) is not once_per_registry(second, QueueMetrics)


def test_buckets_grow_by_their_factor() -> None:
    assert exponential_buckets(1, 10, 4) == (1, 10, 100, 1000)
    with pytest.raises(ValueError):
        exponential_buckets(1, 1, 4)
