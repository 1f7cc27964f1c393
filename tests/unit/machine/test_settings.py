from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from mcm.api.machine import Machine
from mcm.controllers.machine.settings import settings_of
from mcm.controllers.settings import ControllerSettings
from tests.unit.machine.objects import machine

FLAGS = ControllerSettings()
MINUTE = timedelta(minutes=1)


def configured(**fields: object) -> Machine:
    subject = machine()
    return msgspec.structs.replace(subject, spec=msgspec.structs.replace(subject.spec, **fields))


def test_without_words_of_its_own_a_machine_has_the_flags_limits() -> None:
    settings = settings_of(machine(), FLAGS)
    assert settings.creation_timeout == 20 * MINUTE
    assert settings.health_timeout == 10 * MINUTE
    assert settings.drain_timeout == 120 * MINUTE
    assert settings.drain_limits.retries == 360
    assert "KernelDeadlock" in settings.node_conditions


def test_the_annotation_wins_over_the_spec_and_the_spec_over_the_flag() -> None:
    key = "node.machine.sapcloud.io/effective-creation-timeout"
    spec_only = configured(creation_timeout="5m")
    both = msgspec.structs.replace(
        spec_only, metadata=msgspec.structs.replace(spec_only.metadata, annotations={key: "7m"})
    )
    broken = msgspec.structs.replace(
        spec_only, metadata=msgspec.structs.replace(spec_only.metadata, annotations={key: "soon"})
    )
    assert settings_of(spec_only, FLAGS).creation_timeout == 5 * MINUTE
    assert settings_of(both, FLAGS).creation_timeout == 7 * MINUTE
    assert settings_of(broken, FLAGS).creation_timeout == 5 * MINUTE


@pytest.mark.parametrize(
    ("drain", "retries", "expected"),
    [
        (None, None, 360),
        ("10m", None, 30),
        ("2h", 10, 10),
        ("30s", None, 1),
        ("15s", None, 1),
        ("0s", None, 1),
        ("15s", 0, 0),
        (None, 0, 0),
    ],
)
def test_eviction_retries_are_bounded_by_the_drain_timeout(
    drain: str | None, retries: int | None, expected: int
) -> None:
    subject = configured(drain_timeout=drain, max_evict_retries=retries)
    assert settings_of(subject, FLAGS).drain_limits.retries == expected


@pytest.mark.parametrize(
    ("flags", "drain", "retries", "expected"),
    [
        (ControllerSettings(drain_timeout=240 * MINUTE), None, None, 720),
        (ControllerSettings(drain_timeout=10 * MINUTE), None, None, 30),
        (ControllerSettings(), "4h", None, 720),
        (ControllerSettings(max_evict_retries=360), "4h", None, 360),
        (ControllerSettings(max_evict_retries=5), None, None, 5),
        (ControllerSettings(max_evict_retries=5), None, 7, 7),
        (ControllerSettings(max_evict_retries=0), None, None, 0),
    ],
)
def test_without_a_number_pods_are_evicted_for_as_long_as_the_drain_may_take(
    flags: ControllerSettings, drain: str | None, retries: int | None, expected: int
) -> None:
    subject = configured(drain_timeout=drain, max_evict_retries=retries)
    assert settings_of(subject, flags).drain_limits.retries == expected


def test_a_machine_may_be_unhealthy_for_ever_if_it_says_so() -> None:
    assert settings_of(configured(disable_health_timeout=True), FLAGS).health_timeout is None
    assert settings_of(configured(health_timeout="-1m"), FLAGS).health_timeout == 10 * MINUTE


@pytest.mark.parametrize(
    ("text", "expected"), [("A, B ,,C", {"A", "B", "C"}), ("", set()), ("A", {"A"})]
)
def test_listed_conditions_are_trimmed(text: str, expected: set[str]) -> None:
    assert settings_of(configured(node_conditions=text), FLAGS).node_conditions == expected
