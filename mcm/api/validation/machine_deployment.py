"""What a MachineDeployment must satisfy."""

from __future__ import annotations

from mcm.api.machine import MachineDeployment
from mcm.api.validation.counts import count_errors, replicas_errors
from mcm.api.validation.field_errors import FieldError
from mcm.api.validation.selector import selector_errors
from mcm.api.validation.strategy import strategy_errors
from mcm.api.validation.template import template_errors


def validate_machine_deployment(deployment: MachineDeployment) -> tuple[FieldError, ...]:
    """Check a deployment as it will act: with its strategy defaulted.

    Surge and unavailable both zero is no fault; it acts as unavailable one.
    """
    spec = deployment.spec
    counts = {
        "spec.minReadySeconds": spec.min_ready_seconds,
        "spec.revisionHistoryLimit": spec.revision_history_limit,
        "spec.progressDeadlineSeconds": spec.progress_deadline_seconds,
        "spec.rollbackTo.revision": spec.rollback_to.revision if spec.rollback_to else None,
        "spec.autoPreserveFailedMachineMax": spec.auto_preserve_failed_machine_max,
    }
    return (
        *replicas_errors(spec.replicas),
        *count_errors(counts),
        *selector_errors(spec.selector, spec.template),
        *template_errors(spec.template),
        *strategy_errors(deployment),
    )
