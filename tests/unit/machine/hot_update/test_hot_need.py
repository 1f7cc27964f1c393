from __future__ import annotations

import pytest

from mcm.api.machine import LastOperation, Machine
from mcm.controllers.machine.hot_update.need import is_unfinished, needs_update
from mcm.controllers.machine.hot_update.record import WantedSpec
from tests.unit.machine.objects import machine

WANTED = WantedSpec.of({"tags": {"a": "1"}})
SAME, OTHER = '{"tags":{"a":"1"}}', '{"tags":{"a":"2"}}'


def recorded(
    applied: str | None = SAME, *, flying: bool = False, last: tuple[str, str, str] = ("", "", "")
) -> Machine:
    annotations = {} if applied is None else {"last-applied-providerspec": applied}
    if flying:
        annotations["inflight-providerspecs"] = f"[{OTHER}]"
    kind, state, code = last
    done = LastOperation(type=kind, state=state, error_code=code)
    return machine(annotations=annotations, operation=done)


@pytest.mark.parametrize(
    ("subject", "needed"),
    [
        # Case 1.1: nothing is recorded.
        (recorded(None), True),
        # Case 1.2: compared with what is recorded.
        (recorded(SAME), False),
        (recorded('{ "tags": {"a": "1"} }'), False),
        (recorded(OTHER), True),
        (recorded("nonsense"), True),
        (recorded(SAME, last=("Update", "Successful", "")), False),
        (recorded(OTHER, last=("Update", "Successful", "")), True),
        (recorded(SAME, last=("HealthCheck", "Failed", "")), False),
        (recorded(SAME, last=("Create", "Processing", "")), False),
        # Edge case 1: it failed half-way, and the class was changed back.
        (recorded(SAME, last=("Update", "Failed", "Unavailable")), True),
        (recorded(SAME, flying=True), True),
        # Edge case 2: the process ended half-way, and the class was changed back.
        (recorded(SAME, last=("Update", "Processing", "")), True),
        (recorded(SAME, flying=True, last=("HealthCheck", "Processing", "")), True),
        # The provider has no such verb, so nothing was touched.
        (recorded(SAME, last=("Update", "Failed", "Unimplemented")), False),
        (recorded(OTHER, last=("Update", "Failed", "Unimplemented")), True),
    ],
)
def test_a_vm_needs_an_update_unless_it_certainly_is_as_the_class_says(
    subject: Machine, *, needed: bool
) -> None:
    assert needs_update(subject, WANTED) is needed
    assert not is_unfinished(subject) or needed
