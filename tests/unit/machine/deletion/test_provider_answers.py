from __future__ import annotations

import pytest

from mcm.controllers.machine import last_operation
from mcm.controllers.machine.backoff import Pace
from mcm.controllers.machine.deletion.provider_answers import (
    on_vm_deletion_error,
    on_vm_status_error,
)
from mcm.driver import Code, DriverError


@pytest.mark.parametrize(
    ("code", "text", "pace"),
    [
        (Code.UNIMPLEMENTED, "Initiate node drain", None),
        (Code.NOT_FOUND, last_operation.vm_not_found_before_drain().description, None),
        (Code.UNINITIALIZED, last_operation.vm_uninitialized_before_drain().description, None),
        (Code.UNAVAILABLE, last_operation.vm_status_retry().description, Pace.TRANSIENT),
        (Code.ABORTED, last_operation.vm_status_retry().description, Pace.TRANSIENT),
        (Code.INTERNAL, None, Pace.LASTING),
        (None, None, Pace.LASTING),
    ],
)
def test_the_vms_status_decides_how_a_deletion_finds_its_node(
    code: Code | None, text: str | None, pace: Pace | None
) -> None:
    error = DriverError(code, "why") if code is not None else None
    answer = on_vm_status_error(error, "why")
    assert answer.pace is pace
    assert answer.operation.state == ("Failed" if pace else "Processing")
    if text is not None:
        assert answer.operation.description == text


@pytest.mark.parametrize(
    ("code", "description", "pace"),
    [
        (Code.NOT_FOUND, last_operation.vm_gone().description, None),
        (Code.UNKNOWN, last_operation.vm_deletion_retry("T").description, Pace.TRANSIENT),
        (Code.DEADLINE_EXCEEDED, last_operation.vm_deletion_retry("T").description, Pace.TRANSIENT),
        (Code.PERMISSION_DENIED, last_operation.vm_deletion_aborted("T").description, Pace.LASTING),
        (
            Code.RESOURCE_EXHAUSTED,
            last_operation.vm_deletion_aborted("T").description,
            Pace.LASTING,
        ),
        (None, last_operation.vm_deletion_undecodable("T").description, Pace.LASTING),
    ],
)
def test_a_failed_vm_deletion_says_so_and_is_tried_again(
    code: Code | None, description: str, pace: Pace | None
) -> None:
    error = DriverError(code, "why") if code is not None else None
    answer = on_vm_deletion_error(error, "T")
    assert (answer.operation.description, answer.pace) == (description, pace)
    assert answer.operation.type == "Delete"
