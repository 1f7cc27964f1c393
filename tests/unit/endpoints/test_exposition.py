"""Which format is answered, and counters whose names are not as the metrics library has them."""

from __future__ import annotations

import pytest
from aiohttp.test_utils import make_mocked_request
from prometheus_client import CollectorRegistry, Counter

from mcm.driver.cloud_api import CloudApi
from mcm.endpoints.exposition import Rendered, render
from mcm.metrics import PlainCounter
from tests.metrics.exposition import process_registry

# What Prometheus 2.42 sends.
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain;version=0.0.4", False),
        (PROMETHEUS, True),
        ("application/openmetrics-text", True),
        ('application/openmetrics-text; version="1.0.0"; charset=utf-8', True),
        (";;,=,", False),
    ],
)
async def test_openmetrics_is_spoken_where_it_is_accepted(accept: str, expected: bool) -> None:
    answer = await answered(CollectorRegistry(), accept)
    assert answer.content_type.startswith("application/openmetrics-text") is expected
    assert answer.content_type.startswith("text/plain") is not expected


async def answered(registry: CollectorRegistry, accept: str = "") -> Rendered:
    with process_registry(registry):
        return await render(make_mocked_request("GET", "/metrics", {"Accept": accept}))


async def test_a_plain_counter_keeps_its_name_and_twins_are_left_out() -> None:
    registry = CollectorRegistry()
    plain = PlainCounter("mcm_failed", "Failed.", ("zone",), registry=registry)
    plain.inc("a")
    plain.inc("a")
    plain.inc('b"', by=0)
    Counter("mcm_done", "Done.", registry=registry).inc()
    text = await answered(registry)
    assert text.content_type.startswith("text/plain; version=")
    lines = '# HELP mcm_failed Failed.\n# TYPE mcm_failed {}\nmcm_failed{{zone="a"}} 2.0\n'
    lines += 'mcm_failed{{zone="b\\""}} 0.0\n'
    done = "# HELP mcm_done_total Done.\n# TYPE mcm_done_total counter\nmcm_done_total 1.0\n"
    assert b"".join(text.pieces).decode() == lines.format("counter") + done
    formal = await answered(registry, PROMETHEUS)
    assert formal.content_type.startswith("application/openmetrics-text; version=1.0.0")
    done = "# HELP mcm_done Done.\n# TYPE mcm_done counter\nmcm_done_total 1.0\n# EOF\n"
    assert b"".join(formal.pieces).decode() == lines.format("unknown") + done


def test_a_plain_counter_forgets_series_and_takes_no_other_labels() -> None:
    counter = PlainCounter("x", "X.", ("a", "b"), registry=CollectorRegistry())
    counter.inc("1", "2")
    assert (counter.value("1", "2"), counter.value("2", "1")) == (1, 0)
    counter.remove("1", "2")
    counter.remove("1", "2")
    assert counter.series() == ()
    with pytest.raises(ValueError, match="has the labels"):
        counter.inc("1")


def test_requests_to_a_cloud_are_counted_timed_and_their_failures_told_apart() -> None:
    registry, times = CollectorRegistry(), iter([1.0, 3.0, 10.0, 10.5])
    api = CloudApi("p", registry=registry, monotonic=lambda: next(times))
    with api.request("compute"):
        pass
    with pytest.raises(TimeoutError), api.request("compute"):
        raise TimeoutError
    labels = {"provider": "p", "service": "compute"}

    def shown(name: str) -> float | None:
        return registry.get_sample_value(f"mcm_cloud_api_{name}", labels)

    assert shown("requests_total") == 2
    assert shown("requests_failed_total") == 1
    assert shown("api_request_duration_seconds_sum") == 2.5
    with CloudApi().request("compute"):
        pass  # for nobody
