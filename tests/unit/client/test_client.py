from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from mcm.api.core import LEASES, NODES, PODS
from mcm.api.machine import MACHINES
from mcm.client.client import Client
from mcm.client.discovery import served
from mcm.client.errors import (
    AlreadyExists,
    ConnectionRefused,
    Forbidden,
    NotFound,
    ProtocolError,
    RequestTimeout,
    TooManyRequests,
    TransportError,
)
from mcm.client.metrics import ClientMetrics
from mcm.client.transport import Lane, Response
from mcm.clock import LoopClock
from mcm.simulation.virtualtime import run_virtual

Ok = Callable[..., Response]
Verb = Callable[[Client], Coroutine[Any, Any, object]]

NODE = {"kind": "Node", "metadata": {"name": "n1", "resourceVersion": "1"}}
THROTTLED = Response(429, {}, b'{"kind":"Status","code":429,"reason":"TooManyRequests"}')


class LeadershipLost(Exception):
    pass


def run(work: Coroutine[Any, Any, object]) -> object:
    async def main() -> object:
        return await work

    return run_virtual(main)


READS: dict[str, Verb] = {
    "get": lambda c: c.get(NODES, "n1"),
    "list": lambda c: c.list_page(NODES),
    "raw": lambda c: c.get_raw("/version"),
}
WRITES: dict[str, Verb] = {
    "create": lambda c: c.create(NODES, NODE),
    "update": lambda c: c.update(NODES, "n1", NODE),
    "patch": lambda c: c.patch(NODES, "n1", {"metadata": {"labels": {"a": "b"}}}),
    "delete": lambda c: c.delete(NODES, "n1"),
}
EVICT: dict[str, Verb] = {"evict": lambda c: c.evict("p", namespace="d")}


def answer_for(name: str, ok: Ok) -> Response:
    if name == "list":
        return ok({"metadata": {"resourceVersion": "5"}, "items": [NODE]})
    return ok(NODE)


def test_verbs_return_typed_objects(rig: Any, ok: Ok) -> None:
    client, transport = rig(ok(NODE))
    node = run(client.get(NODES, "n1"))
    assert isinstance(node, NODES.type)
    assert transport.sent[0].headers["User-Agent"] == "mcm"
    assert transport.sent[0].lane is Lane.REQUEST


@pytest.mark.parametrize("name", [*READS, *WRITES, *EVICT])
def test_every_verb_survives_a_refused_connection(name: str, rig: Any, ok: Ok) -> None:
    verb = {**READS, **WRITES, **EVICT}[name]
    client, transport = rig(ConnectionRefused("no"), ConnectionRefused("no"), answer_for(name, ok))
    run(verb(client))
    assert len(transport.sent) == 3
    assert 0.25 <= transport.at[1] < 0.375
    assert 0.5 <= transport.at[2] - transport.at[1] < 0.75


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_reads_and_writes_wait_when_throttled(name: str, rig: Any, ok: Ok) -> None:
    throttled = Response(429, {"retry-after": "3"}, b"{}")
    client, transport = rig(throttled, answer_for(name, ok))
    run({**READS, **WRITES}[name](client))
    assert 3 <= transport.at[1] < 3.2


def test_an_eviction_that_a_budget_refuses_is_the_drains_to_judge(rig: Any) -> None:
    body = (
        b'{"kind":"Status","code":429,"reason":"TooManyRequests","details":{"causes":'
        b'[{"reason":"DisruptionBudget","message":"needs 2 healthy pods and has 2"}]}}'
    )
    client, transport = rig(Response(429, {"retry-after": "10"}, body))
    with pytest.raises(TooManyRequests) as caught:
        run(client.evict("p", namespace="d"))
    assert len(transport.sent) == 1
    assert caught.value.causes[0].reason == "DisruptionBudget"
    assert caught.value.retry_after == 10


@pytest.mark.parametrize("name", READS)
def test_a_read_is_repeated_after_a_lost_connection(name: str, rig: Any, ok: Ok) -> None:
    client, transport = rig(TransportError("reset"), RequestTimeout("late"), answer_for(name, ok))
    run(READS[name](client))
    assert len(transport.sent) == 3


@pytest.mark.parametrize("name", [*WRITES, *EVICT])
def test_a_write_that_may_have_happened_is_not_repeated(name: str, rig: Any) -> None:
    client, transport = rig(TransportError("reset"))
    with pytest.raises(TransportError):
        run({**WRITES, **EVICT}[name](client))
    assert len(transport.sent) == 1


def test_a_read_that_stays_throttled_gives_up_with_the_servers_word(rig: Any) -> None:
    client, transport = rig(*[THROTTLED] * 10)
    with pytest.raises(TooManyRequests):
        run(client.get(NODES, "n1"))
    assert len(transport.sent) == 5


def test_a_call_ends_within_its_budget(rig: Any, clock: LoopClock) -> None:
    async def main() -> float:
        with pytest.raises(RequestTimeout):
            await client.get(NODES, "n1")
        return clock.monotonic()

    script = [step for _ in range(5) for step in (30.0, RequestTimeout("late"))]
    client, transport = rig(*script, timeout=30.0, budget=60.0)
    assert run_virtual(main) <= 60.0 + 30.0
    timeouts = [r.timeout for r in transport.sent]
    assert timeouts[0] == 30.0
    assert 1.0 <= timeouts[1] < 30.0
    assert len(timeouts) == 2


@pytest.mark.parametrize("name", [*WRITES, *EVICT])
def test_the_fence_is_asked_before_every_attempt_of_a_write(name: str, rig: Any) -> None:
    asked = []

    def fence() -> None:
        asked.append(len(transport.sent))
        if len(asked) == 2:
            raise LeadershipLost

    client, transport = rig(ConnectionRefused("no"), fence=fence)
    with pytest.raises(LeadershipLost):
        run({**WRITES, **EVICT}[name](client))
    assert asked == [0, 1]
    assert len(transport.sent) == 1


def test_leadership_lost_in_the_queue_stops_the_write(rig: Any, ok: Ok, clock: LoopClock) -> None:
    leading = True

    def fence() -> None:
        if not leading:
            raise LeadershipLost

    async def main() -> None:
        nonlocal leading
        slow = asyncio.ensure_future(client.get(NODES, "n1"))
        await clock.sleep(0.1)
        write = asyncio.ensure_future(client.create(NODES, NODE))
        await clock.sleep(0.1)
        leading = False
        with pytest.raises(LeadershipLost):
            await write
        await slow

    client, transport = rig(5.0, ok(NODE), fence=fence, max_in_flight=1)
    run_virtual(main)
    assert [r.method for r in transport.sent] == ["GET"]


@pytest.mark.parametrize("name", [*WRITES, *EVICT])
def test_the_transport_can_ask_the_fence_once_more(name: str, rig: Any, ok: Ok) -> None:
    def fence() -> None: ...

    client, transport = rig(answer_for(name, ok), fence=fence)
    run({**WRITES, **EVICT}[name](client))
    assert transport.sent[0].permit is fence and transport.sent[0].body


@pytest.mark.parametrize("name", READS)
def test_reading_needs_no_leadership(name: str, rig: Any, ok: Ok) -> None:
    def fence() -> None:
        raise LeadershipLost

    client, _ = rig(answer_for(name, ok), fence=fence)
    run(READS[name](client))


def test_a_deletion_tells_whether_the_object_stays(rig: Any, ok: Ok) -> None:
    waiting = {**NODE["metadata"], "deletionTimestamp": "2024-01-01T00:00:00Z", "finalizers": ["f"]}  # type: ignore[dict-item]
    client, _ = rig(
        ok({"kind": "Node", "metadata": waiting}), ok({"kind": "Status", "status": "Success"})
    )
    stays = run(client.delete(NODES, "n1", uid="u"))
    assert isinstance(stays, NODES.type) and stays.metadata.finalizers == ("f",)
    assert run(client.delete(NODES, "n1")) is None


def test_errors_of_the_server_are_typed(rig: Any) -> None:
    exists = b'{"kind":"Status","code":409,"reason":"AlreadyExists","message":"there"}'
    client, _ = rig(Response(409, {}, exists), Response(404, {}, b"{}"), Response(403, {}, b"{}"))
    with pytest.raises(AlreadyExists, match="there"):
        run(client.create(NODES, NODE))
    with pytest.raises(NotFound):
        run(client.get(NODES, "n1"))
    with pytest.raises(Forbidden):
        run(client.get(NODES, "n1"))


def test_a_client_for_the_lease_uses_its_own_lane_and_times(rig: Any, ok: Ok) -> None:
    lease = {"metadata": {"name": "l", "namespace": "d"}}
    client, transport = rig(ok(lease), lane=Lane.LEASE, timeout=5.0)
    run(client.update(LEASES, "l", lease, namespace="d"))
    assert (transport.sent[0].lane, transport.sent[0].timeout) == (Lane.LEASE, 5.0)


def test_cancelling_a_call_gives_its_slot_back(rig: Any, ok: Ok, clock: LoopClock) -> None:
    async def main() -> None:
        hanging = asyncio.ensure_future(client.get(NODES, "n1"))
        await clock.sleep(1)
        hanging.cancel()
        await asyncio.wait([hanging])
        await client.get(NODES, "n1")

    client, transport = rig(1e6, max_in_flight=1)
    transport._script.append(ok(NODE))
    run_virtual(main)
    assert len(transport.sent) == 2


def test_the_metrics_count_attempts_times_and_retries(rig: Any, ok: Ok) -> None:
    registry = CollectorRegistry()
    client, _ = rig(
        ConnectionRefused("no"), THROTTLED, 0.5, ok(NODE), metrics=ClientMetrics(registry)
    )
    run(client.patch(NODES, "n1", {}))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, labels)

    total = "rest_client_requests_total"
    assert value(total, code="<error>", method="PATCH", resource="nodes") == 1
    assert value(total, code="429", method="PATCH", resource="nodes") == 1
    assert value(total, code="200", method="PATCH", resource="nodes") == 1
    retries = "rest_client_request_retries_total"
    assert value(retries, code="<error>", verb="PATCH", resource="nodes") == 1
    assert value(retries, code="429", verb="PATCH", resource="nodes") == 1
    took, url = "rest_client_request_latency_seconds", "/api/v1/nodes/{name}"
    assert value(f"{took}_count", verb="PATCH", url=url) == 3
    assert value(f"{took}_sum", verb="PATCH", url=url) == pytest.approx(0.5)
    assert value("rest_client_rate_limiter_duration_seconds_count", verb="PATCH") == 3


def test_a_retry_is_logged_with_its_cause(
    rig: Any, ok: Ok, caplog: pytest.LogCaptureFixture
) -> None:
    client, _ = rig(ConnectionRefused("cannot reach https://a:1: connection refused"), ok(NODE))
    with caplog.at_level(logging.DEBUG, logger="mcm.client"):
        run(client.get(NODES, "n1"))
    (record,) = (r for r in caplog.records if r.getMessage() == "request will be repeated")
    assert vars(record)["cause"] == "cannot reach https://a:1: connection refused"


def test_the_same_seed_waits_the_same(rig: Any, ok: Ok) -> None:
    def waits() -> list[float]:
        client, transport = rig(*[ConnectionRefused("no")] * 4, ok(NODE), random=random.Random(7))
        run(client.get(NODES, "n1"))
        at: list[float] = transport.at
        return at

    assert waits() == waits()


def test_closing_the_client_closes_the_transport(rig: Any) -> None:
    client, transport = rig()
    run(client.aclose())
    assert transport.closed == 1


@pytest.mark.parametrize(
    ("resources", "expected"),
    [(["machines", "machines/status"], True), (["machinesets"], False), (None, False)],
)
def test_a_resource_is_served_if_the_server_lists_it(
    resources: list[str] | None, expected: bool, rig: Any, ok: Ok
) -> None:
    body = {"resources": None if resources is None else [{"name": n} for n in resources]}
    client, transport = rig(ok(body))
    assert run(served(client, MACHINES)) is expected
    assert transport.sent[0].path == "/apis/machine.sapcloud.io/v1alpha1"


def test_an_unknown_group_is_not_served(rig: Any) -> None:
    client, _ = rig(Response(404, {}, b"404 page not found"))
    assert run(served(client, MACHINES)) is False


def test_not_being_allowed_to_look_is_not_the_same_as_missing(rig: Any) -> None:
    client, _ = rig(Response(403, {}, b"{}"), Response(200, {}, b"<html>"))
    with pytest.raises(Forbidden):
        run(served(client, MACHINES))
    with pytest.raises(ProtocolError):
        run(served(client, PODS))
