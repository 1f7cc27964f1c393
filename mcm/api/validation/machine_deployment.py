"""What a MachineDeployment must satisfy."""

from __future__ import annotations

from mcm.api.machine import MACHINE_DEPLOYMENTS, MachineDeployment
from mcm.api.selectors import is_empty
from mcm.api.validation.counts import DEFAULT_MAX_REPLICAS, count_findings, replicas_findings
from mcm.api.validation.field_errors import (
    FieldError,
    Findings,
    errors_among,
    unread,
    warning,
)
from mcm.api.validation.marks import mark_findings
from mcm.api.validation.selector import selector_findings
from mcm.api.validation.strategy import strategy_findings
from mcm.api.validation.template import template_findings


def validate_machine_deployment(
    deployment: MachineDeployment, *, max_replicas: int = DEFAULT_MAX_REPLICAS
) -> tuple[FieldError, ...]:
    """Return what keeps a deployment from being acted on, with its strategy defaulted.

    ``max_replicas``: 0 for no bound. Surge and unavailable both zero is no error; it acts as
    unavailable one.
    """
    return errors_among(machine_deployment_findings(deployment, max_replicas))


def machine_deployment_findings(deployment: MachineDeployment, max_replicas: int) -> Findings:
    """Check all of a deployment; ``spec.paused`` may be either."""
    meta, spec = deployment.metadata, deployment.spec
    counts = {
        "spec.minReadySeconds": spec.min_ready_seconds,
        "spec.revisionHistoryLimit": spec.revision_history_limit,
        "spec.progressDeadlineSeconds": spec.progress_deadline_seconds,
        "spec.autoPreserveFailedMachineMax": spec.auto_preserve_failed_machine_max,
    }
    yield from unread(meta)
    yield from replicas_findings(spec.replicas, max_replicas)
    yield from count_findings(counts)
    yield from _rollback_findings(deployment)
    yield from _deadline_findings(deployment)
    yield from selector_findings(spec.selector, spec.template)
    if spec.selector is not None and is_empty(spec.selector):
        yield FieldError("spec.selector", "must not be empty, it would select every machine")
    yield from template_findings(spec.template)
    yield from strategy_findings(deployment)
    yield from mark_findings(MACHINE_DEPLOYMENTS.kind, meta.labels, meta.annotations, "metadata")


def _rollback_findings(deployment: MachineDeployment) -> Findings:
    asked = deployment.spec.rollback_to
    if asked is not None and asked.revision < 0:
        yield FieldError("spec.rollbackTo.revision", "must not be negative", value=asked.revision)


def _deadline_findings(deployment: MachineDeployment) -> Findings:
    """A machine that becomes available too late to count as progress makes every update late."""
    deadline, ready = (
        deployment.spec.progress_deadline_seconds,
        deployment.spec.min_ready_seconds,
    )
    if deadline is not None and 0 <= deadline <= ready:
        detail = f"is not more than minReadySeconds ({ready}): every update will seem stuck"
        yield warning("spec.progressDeadlineSeconds", detail, value=deadline)
