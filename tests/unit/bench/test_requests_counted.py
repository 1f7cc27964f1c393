"""Requests are counted by what the server says, and the bench's own are known and taken off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.clusters.counting import kind_of
from bench.clusters.raw_rates import RawRates, mean
from bench.clusters.requests import Counts, Kind, read_counts
from mcm.client.transport import Request
from mcm.sandbox.apiserver.requests.counters import RequestCounters, exposition

_REAL = """
# TYPE apiserver_request_total counter
apiserver_request_total{code="0",component="apiserver",dry_run="",group="",resource="nodes",scope="cluster",subresource="",verb="WATCH",version="v1"} 3
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="nodes",scope="resource",subresource="",verb="POST",version="v1"} 10
apiserver_request_total{code="200",component="apiserver",dry_run="",group="machine.sapcloud.io",resource="machines",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 21
apiserver_request_total{code="409",component="apiserver",dry_run="",group="machine.sapcloud.io",resource="machines",scope="resource",subresource="status",verb="PATCH",version="v1alpha1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="machine.sapcloud.io",resource="machines",scope="resource",subresource="",verb="APPLY",version="v1alpha1"} 1
apiserver_request_total{code="201",component="apiserver",dry_run="",group="events.k8s.io",resource="events",scope="resource",subresource="",verb="POST",version="v1"} 1.2e+01
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 4
apiserver_request_total{code="404",component="apiserver",dry_run="",group="",resource="secrets",scope="resource",subresource="",verb="GET",version="v1"} 5
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="",scope="",subresource="/readyz",verb="GET",version=""} 7
apiserver_request_slo_duration_seconds_count{resource="machines",verb="PATCH"} 99
"""  # noqa: E501


def test_a_real_servers_metrics_are_told_apart_by_who_can_have_asked() -> None:
    counts = read_counts(_REAL).without({Kind("POST", "nodes"): 8})
    assert counts.own_writes() == {
        Kind("POST", "nodes"): 2,
        Kind("PATCH", "machines", "status"): 23,
        Kind("PATCH", "machines"): 1,
    }
    assert counts.own_refused() == 2
    assert counts.own_reads() == {Kind("GET", "secrets"): 5}
    assert counts.events() == {Kind("POST", "events"): 12}
    assert counts.others() == {Kind("PUT", "leases"): 4}


def test_the_sandboxs_metrics_are_read_alike() -> None:
    counters = RequestCounters()
    for _ in range(3):
        counters.record("create", "machines.machine.sapcloud.io", "", "mcm", 201)
    counters.record("update", "nodes", "status", 'a "b"} 7', 409)
    counters.record("watch", "nodes", "", "mcm", 200)
    counts = read_counts(exposition(counters, watches=1, objects={"nodes": 3}))
    assert counts.own_writes() == {Kind("POST", "machines"): 3, Kind("PUT", "nodes", "status"): 1}
    assert counts.own_refused() == 1


def test_a_difference_holds_only_what_has_happened() -> None:
    before = Counts({Kind("POST", "nodes"): 3, Kind("GET", "nodes"): 1}, {})
    now = Counts({Kind("POST", "nodes"): 5, Kind("GET", "nodes"): 1, Kind("PUT", "nodes"): 2}, {})
    assert now.since(before).all == {Kind("POST", "nodes"): 2, Kind("PUT", "nodes"): 2}


_kinds = st.builds(
    Kind,
    st.sampled_from(["GET", "LIST", "POST", "PUT", "PATCH", "DELETE", "DELETECOLLECTION"]),
    st.sampled_from(["machines", "nodes", "events", "leases", "secrets", "flowschemas"]),
    st.sampled_from(["", "status"]),
)
_counted = st.dictionaries(_kinds, st.integers(1, 50))


@given(_counted, _counted)
def test_each_write_is_somebodys_and_nothing_is_less_than_none(
    every: dict[Kind, int], sent: dict[Kind, int]
) -> None:
    counts = Counts(every, {}).without(sent)
    parts = [counts.own_writes(), counts.events(), counts.others()]
    assert sum(map(len, parts)) == len(counts.writes())
    assert {k: n for part in parts for k, n in part.items()} == counts.writes()
    assert all(0 < n <= every[k] for k, n in counts.all.items())
    assert counts.since(counts).all == {}


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", "/api/v1/nodes", "POST nodes"),
        ("PATCH", "/api/v1/nodes/n/status", "PATCH nodes/status"),
        ("GET", "/api/v1/nodes", "LIST nodes"),
        ("GET", "/api/v1/namespaces/x", "GET namespaces"),
        ("POST", "/api/v1/namespaces", "POST namespaces"),
        ("DELETE", "/api/v1/namespaces/x/secrets/s", "DELETE secrets"),
        ("POST", "/apis/machine.sapcloud.io/v1alpha1/namespaces/x/machines", "POST machines"),
        ("GET", "/apis/machine.sapcloud.io/v1alpha1/machines", "LIST machines"),
        ("GET", "/apis/machine.sapcloud.io/v1alpha1", "None"),
        ("GET", "/metrics", "None"),
    ],
)
def test_what_the_bench_sends_is_counted_as_the_server_counts_it(
    method: str, path: str, kind: str
) -> None:
    assert str(kind_of(Request(method, path))) == kind


def _rates(**rates: float) -> RawRates:
    named = {name.replace("__", "/").replace("_", " "): rate for name, rate in rates.items()}
    return RawRates(named, connections=4, requests=10, seconds=1.0, generator_cpu_seconds=0.1)


def test_the_server_needs_the_sum_of_what_each_request_takes_alone() -> None:
    rates = _rates(POST_machines=100, PATCH_machines=200, PATCH_machines__status=50)
    mix = {
        Kind("POST", "machines"): 100,
        Kind("PATCH", "machines"): 100,
        Kind("PATCH", "machines", "status"): 100,
    }
    assert rates.seconds_for(mix) == pytest.approx(1 + 0.5 + 2)


@pytest.mark.parametrize(
    ("kind", "rate"),
    [
        (Kind("PUT", "machines", "status"), 3),
        (Kind("PATCH", "machinesets"), 2),
        (Kind("PATCH", "machinedeployments", "status"), 3),
        (Kind("POST", "machineclasses"), 1),
        (Kind("GET", "secrets"), 4),
        (Kind("LIST", "pods"), 4),
        (Kind("PUT", "leases"), 6),
        (Kind("PATCH", "nodes", "status"), 6),
        (Kind("POST", "pods"), 5),
        (Kind("DELETECOLLECTION", "machines"), 7),
    ],
)
def test_what_was_not_measured_counts_as_its_nearest_likeness(kind: Kind, rate: float) -> None:
    rates = _rates(
        POST_machines=1,
        PATCH_machines=2,
        PATCH_machines__status=3,
        GET_machines=4,
        POST_secrets=5,
        PATCH_nodes=6,
        DELETE_machines=7,
    )
    assert rates.rate_of(kind) == rate


def test_of_two_measurements_the_mean_time_counts() -> None:
    both = mean([_rates(POST_nodes=100), _rates(POST_nodes=300)])
    assert both.rates == {"POST nodes": 150}
    assert (both.requests, both.seconds, both.generator_cpu_seconds) == (20, 2.0, 0.2)
