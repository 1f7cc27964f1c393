"""When a machine counts as available: it serves, for minReadySeconds, by clocks that are sane."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import NodeCondition
from mcm.api.machine import Machine, MachinePhase
from mcm.controllers.replicas.availability import (
    available_from,
    is_available,
    min_ready_of,
    next_available_at,
)
from tests.unit.machineset.objects import NOW, ago, machine, machine_set

ZERO, MINUTE = timedelta(), timedelta(seconds=60)


def ready_since(machine: Machine, when: datetime | None) -> Machine:
    ready = NodeCondition(type="Ready", status="True", last_transition_time=when)
    status = msgspec.structs.replace(machine.status, conditions=(ready,))
    return msgspec.structs.replace(machine, status=status)


@pytest.mark.parametrize("phase", [*MachinePhase, "", "Something"])
def test_only_phases_that_serve_count(phase: str) -> None:
    serves = phase in ("Running", "Available")
    for min_ready in (ZERO, MINUTE):
        one = machine(phase=phase, changed=ago(100))
        assert is_available(one, min_ready, NOW) is serves
        assert not is_available(machine(phase=phase, deleted=True), min_ready, NOW)
        assert (available_from(one, min_ready, NOW) is not None) is serves


@pytest.mark.parametrize(
    ("changed", "ready", "age", "since"),
    [
        (ago(10), ago(500), 900, ago(10)),  # the phase's own time counts
        (ago(10), ago(-30), 900, ago(10)),  # whatever the kubelet's clock says
        (ago(-30), ago(500), 900, ago(-30)),  # two clocks never agree
        (ago(-3600), ago(500), 900, ago(500)),  # a clock was wrong: the next best counts
        (ago(-3600), ago(-3600), 900, ago(900)),
        (None, ago(500), 900, ago(500)),
        (None, None, 900, ago(900)),
    ],
)
def test_since_when_it_serves(
    changed: datetime | None, ready: datetime | None, age: float, since: datetime
) -> None:
    one = ready_since(machine(changed=changed, age=age), ready)
    assert available_from(one, MINUTE, NOW) == since + MINUTE
    assert is_available(one, MINUTE, since + MINUTE)
    assert not is_available(one, MINUTE, max(NOW, since + MINUTE - timedelta(seconds=1))) or (
        since + MINUTE <= NOW
    )


def test_a_machine_of_which_no_time_can_be_believed_counts() -> None:
    one = machine(changed=ago(-3600), age=-3600)
    assert is_available(one, MINUTE, NOW)


def test_the_next_one_by_time_alone() -> None:
    machines = [
        machine("a", changed=ago(100)),  # available
        machine("b", changed=ago(20)),
        machine("c", changed=ago(50)),
        machine("d", MachinePhase.UNKNOWN, changed=ago(59)),
    ]
    assert next_available_at(machines, MINUTE, NOW) == ago(-10)
    assert next_available_at(machines, ZERO, NOW) is None
    assert next_available_at(machines[:1], MINUTE, NOW) is None


@pytest.mark.parametrize(
    ("seconds", "span"), [(-5, 0), (0, 0), (60, 60), (2**31 - 1, 2**31 - 1), (10**30, 2**31 - 1)]
)
def test_any_number_of_seconds_is_a_span(seconds: int, span: int) -> None:
    wanted = machine_set()
    spec = msgspec.structs.replace(wanted.spec, min_ready_seconds=seconds)
    wanted = msgspec.structs.replace(wanted, spec=spec)
    assert min_ready_of(wanted) == timedelta(seconds=span)


@given(
    changed=st.none() | st.integers(-(10**6), 10**6),
    ready=st.none() | st.integers(-(10**6), 10**6),
    age=st.integers(-(10**6), 10**6),
    seconds=st.integers(1, 10**5),
)
def test_it_becomes_available_exactly_then_and_never_waits_much_longer(
    changed: int | None, ready: int | None, age: int, seconds: int
) -> None:
    one = ready_since(
        machine(changed=None if changed is None else ago(changed), age=age),
        None if ready is None else ago(ready),
    )
    span = timedelta(seconds=seconds)
    since = available_from(one, span, NOW)
    assert since is not None
    assert since <= NOW + span + timedelta(minutes=1)
    assert is_available(one, span, NOW) is (since <= NOW)
    believed = next(at for at in (changed, ready, age) if at is not None) >= -60
    if since > NOW and believed:  # time alone makes it so: looking again at that moment is enough
        assert next_available_at([one], span, NOW) == since
        assert not is_available(one, span, since - timedelta(microseconds=1))
        assert is_available(one, span, since)
