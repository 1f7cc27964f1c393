from __future__ import annotations

from datetime import timedelta

import pytest

from mcm.api.meta import JSONObject
from mcm.driver.codes import Code
from mcm.driver.errors import DriverError
from mcm.providers.simulated.provider_spec import ProviderSpec, decode


def test_nothing_asked_for_means_short_latencies_and_no_failures() -> None:
    assert decode({}) == ProviderSpec()
    assert decode({}).delay("create") == timedelta(seconds=1)
    assert decode({}).delay("status") == timedelta(0)


def test_latencies_are_go_durations() -> None:
    spec = decode({"createLatency": "1m30s", "deleteLatency": "250ms"})
    assert spec.delay("create") == timedelta(seconds=90)
    assert spec.delay("delete") == timedelta(milliseconds=250)


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"createLatency": "soon"}, "createLatency"),
        ({"deleteLatency": "5"}, "deleteLatency"),
        ({"bootLatency": "x"}, "bootLatency"),
        ({"joinLatency": "-1s"}, "joinLatency"),
        ({"createLatency": 5}, "createLatency"),
        ({"quota": "many"}, "quota"),
        ({"quota": -1}, "quota"),
        ({"joins": "no"}, "joins"),
        ({"bootLatencies": "5s"}, "bootLatencies"),
        ({"failures": [{"verb": "reboot"}]}, "failures[0].verb"),
        ({"failures": [{"verb": "create"}, {"verb": "x"}]}, "failures[1].verb"),
        ({"failures": [{"verb": "create", "code": "Oops"}]}, "failures[0].code"),
        ({"failures": [{"verb": "create", "probability": 2}]}, "failures[0].probability"),
        ({"failures": [{"verb": "create", "times": -1}]}, "failures[0].times"),
        ({"failures": [{"verb": "update", "at": "disc"}]}, "failures[0].at"),
        ({"failures": [{"verb": "create", "at": "vm"}]}, "failures[0].at"),
        ({"tags": {"team": "a"}}, "team"),
        ({"tags": {"vm": {"team": 1}}}, "tags.vm"),
        ({"nodeConditions": {"Ready": True}}, "nodeConditions"),
    ],
)
def test_a_spec_that_cannot_be_meant_is_refused_by_the_name_of_its_field(
    document: JSONObject, field: str
) -> None:
    with pytest.raises(DriverError) as caught:
        decode(document)
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert field in caught.value.message


@pytest.mark.parametrize("code", [c.text for c in Code])
def test_every_machine_code_can_be_simulated(code: str) -> None:
    assert decode({"failures": [{"verb": "create", "code": code}]}).failures[0].code == code
