"""What an object must satisfy before a controller acts on it.

The API server enforces only the CRD's structure. These checks return every fault they find, never
raise, and name the field, so that a condition or an event can say what to mend.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import final

from mcm.api import names
from mcm.api.defaulting import defaulted_strategy
from mcm.api.durations import parse_duration
from mcm.api.labels import is_label_key, is_label_value, is_object_name
from mcm.api.machine import (
    ClassSpec,
    InPlaceUpdate,
    Machine,
    MachineClass,
    MachineClassNodeTemplate,
    MachineDeployment,
    MachineSet,
    MachineSpec,
    MachineTemplate,
    RollingUpdate,
)
from mcm.api.meta import LabelSelector, ObjectMeta
from mcm.api.quantities import parse_quantity
from mcm.api.selectors import complaint_about, matches
from mcm.api.templates import TemplateError, labels_of, machine_spec_of

_MOST_SHOWN = 80
_INT32_MAX = 2**31 - 1
_STRATEGIES = (
    names.STRATEGY_IN_PLACE_UPDATE,
    names.STRATEGY_RECREATE,
    names.STRATEGY_ROLLING_UPDATE,
)
_ORCHESTRATIONS = (names.ORCHESTRATION_AUTO, names.ORCHESTRATION_MANUAL)
_NEEDED_CAPACITY = ("cpu", "gpu", "memory")
_DURATION_FIELDS = {
    "drainTimeout": "drain_timeout",
    "healthTimeout": "health_timeout",
    "creationTimeout": "creation_timeout",
    "inPlaceUpdateTimeout": "in_place_update_timeout",
    "machinePreserveTimeout": "machine_preserve_timeout",
}
_MISMATCH = "is not matching with spec.template.metadata.labels"


class ErrorKind(StrEnum):
    REQUIRED = "Required"
    INVALID = "Invalid"


@final
@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault. ``field`` is the JSON path from the object's root, ``value`` what stood there."""

    field: str
    detail: str
    kind: ErrorKind = ErrorKind.INVALID
    value: str | int | None = None

    def __str__(self) -> str:
        if self.kind is ErrorKind.REQUIRED:
            return f"{self.field}: Required value: {self.detail}"
        shown = f'"{self.value}"' if isinstance(self.value, str) else str(self.value)
        head = "Invalid value" if self.value is None else f"Invalid value {shown}"
        return f"{self.field}: {head}: {self.detail}"


Errors = Iterator[FieldError]


def describe(errors: Iterable[FieldError]) -> str:
    """Write faults as one line, for a condition, an event or a log."""
    return "; ".join(map(str, errors))


def validate_machine(machine: Machine) -> tuple[FieldError, ...]:
    return (
        *_unread(machine.metadata),
        *_class(machine.spec.class_, "spec.class"),
        *_configuration(machine.spec, "spec"),
    )


def validate_machine_set(machine_set: MachineSet) -> tuple[FieldError, ...]:
    spec = machine_set.spec
    counts = {
        "spec.minReadySeconds": spec.min_ready_seconds,
        "spec.autoPreserveFailedMachineMax": spec.auto_preserve_failed_machine_max,
    }
    return (
        *_replicas(spec.replicas),
        *_counts(counts),
        *_selector(spec.selector, spec.template),
        *_template(spec.template),
    )


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
        *_replicas(spec.replicas),
        *_counts(counts),
        *_selector(spec.selector, spec.template),
        *_template(spec.template),
        *_strategy(deployment),
    )


def validate_machine_class(machine_class: MachineClass) -> tuple[FieldError, ...]:
    """Check ``nodeTemplate``, which may be absent. ``providerSpec`` is for the driver to judge."""
    template = machine_class.node_template
    parts = () if template is None else tuple(_node_template(template))
    return (*_unread(machine_class.metadata), *parts)


# Parts --------------------------------------------------------------------------------------------


def _required(field: str, detail: str) -> FieldError:
    return FieldError(field, detail, ErrorKind.REQUIRED)


def _unread(meta: ObjectMeta) -> Errors:
    """What could not be read of an object is wrong with it."""
    for fault in meta.faults:
        yield FieldError(fault.path, fault.detail)


def _class(class_: ClassSpec, path: str) -> Errors:
    if not class_.kind:
        yield _required(f"{path}.kind", "Kind is required")
    if not class_.name:
        yield _required(f"{path}.name", "Name is required")
    elif not is_object_name(class_.name):
        detail = "must be the name of an object: at most 253 of a-z, 0-9, - and ."
        yield FieldError(f"{path}.name", detail, value=_shortened(class_.name))


def _configuration(spec: MachineSpec, path: str) -> Errors:
    for name, attribute in _DURATION_FIELDS.items():
        text = getattr(spec, attribute)
        if text is not None:
            yield from _duration(text, f"{path}.{name}")
    yield from _counts({f"{path}.maxEvictRetries": spec.max_evict_retries})


def _duration(text: str, field: str) -> Errors:
    try:
        span = parse_duration(text)
    except ValueError as error:
        reason = _shortened(str(error).partition(": ")[2])
        shown = _shortened(text)
        yield FieldError(field, f"must be a duration like 10m0s ({reason})", value=shown)
        return
    if span.total_seconds() < 0:
        yield FieldError(field, "must not be negative", value=text)


def _replicas(replicas: int) -> Errors:
    if replicas < 0:
        yield FieldError("spec.replicas", "Replicas has to be a whole number", value=replicas)


def _counts(counts: Mapping[str, int | None]) -> Errors:
    for field, count in counts.items():
        if count is not None and count < 0:
            yield FieldError(field, "must not be negative", value=count)


def _selector(selector: LabelSelector | None, template: MachineTemplate) -> Errors:
    if selector is None:
        yield _required("spec.selector", "must select the labels of spec.template.metadata")
        return
    labels = labels_of(template)
    for key, value in selector.match_labels.items():
        if labels.get(key) != value:
            yield FieldError(f"spec.selector.matchLabels[{key}]", _MISMATCH, value=value)
    for index, requirement in enumerate(selector.match_expressions):
        field = f"spec.selector.matchExpressions[{index}]"
        if complaint := complaint_about(requirement):
            yield FieldError(field, complaint)
        elif not matches(LabelSelector(match_expressions=(requirement,)), labels):
            yield FieldError(field, _MISMATCH, value=requirement.key)


def _template(template: MachineTemplate) -> Errors:
    yield from _string_map(template, "labels")
    yield from _string_map(template, "annotations")
    try:
        spec = machine_spec_of(template)
    except TemplateError as error:
        yield FieldError(error.path, error.detail)
        return
    yield from _class(spec.class_, "spec.template.spec.class")
    yield from _configuration(spec, "spec.template.spec")


def _string_map(template: MachineTemplate, name: str) -> Errors:
    """Template metadata is not typed by the CRD: anything may stand there."""
    field, value = f"spec.template.metadata.{name}", template.metadata.get(name)
    if value is None:
        return
    if not isinstance(value, dict):
        yield FieldError(field, "must be an object with text values")
        return
    for key, item in value.items():
        if complaint := _complaint_about_pair(key, item, is_label=name == "labels"):
            shown = item if isinstance(item, str) else repr(item)
            yield FieldError(f"{field}[{key}]", complaint, value=shown)


def _complaint_about_pair(key: str, value: object, *, is_label: bool) -> str:
    """The API server would refuse each machine made with such a label or annotation."""
    if not isinstance(value, str):
        return "must be a text (quote it)"
    if not is_label_key(key if is_label else key.lower()):
        return "the key must be a name of at most 63 characters, with or without a DNS prefix"
    if is_label and not is_label_value(value):
        return "must be empty or at most 63 letters, digits, '-', '_', '.'"
    return ""


def _strategy(deployment: MachineDeployment) -> Errors:
    strategy, replicas = defaulted_strategy(deployment.spec), deployment.spec.replicas
    match strategy.type:
        case names.STRATEGY_RECREATE:
            return
        case names.STRATEGY_ROLLING_UPDATE:
            yield from _block(strategy.rolling_update, "spec.strategy.rollingUpdate", replicas)
        case names.STRATEGY_IN_PLACE_UPDATE:
            yield from _block(strategy.in_place_update, "spec.strategy.inPlaceUpdate", replicas)
            yield from _orchestration(strategy.in_place_update)
        case unknown:
            detail = f"strategy type must be one of {_listed(_STRATEGIES)}"
            yield FieldError("spec.strategy.type", detail, value=unknown)


def _block(block: RollingUpdate | InPlaceUpdate | None, path: str, replicas: int) -> Errors:
    if block is None:
        yield _required(path, "must say maxSurge and maxUnavailable")
        return
    yield from _share(block.max_unavailable, f"{path}.maxUnavailable", replicas)
    yield from _share(block.max_surge, f"{path}.maxSurge", replicas)


def _share(value: int | str | None, field: str, replicas: int) -> Errors:
    """A number of machines, or a percentage of the replicas."""
    if value is None:
        yield _required(field, "must be a whole number or a percentage like 25%")
        return
    count = _count(value, replicas)
    if count is None or count < 0:
        yield FieldError(field, "must be a whole number or a percentage like 25%", value=value)
    elif count > _INT32_MAX:
        yield FieldError(field, "is more machines than an int32 can count", value=value)


def _count(value: int | str, replicas: int) -> int | None:
    """Resolve a share, rounded up; None if the text is no percentage."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    if digits == value or not (digits.isascii() and digits.isdigit() and len(digits) < 16):
        return None
    return -(-int(digits) * max(replicas, 0) // 100)


def _orchestration(block: InPlaceUpdate | None) -> Errors:
    if block is not None and block.orchestration_type not in _ORCHESTRATIONS:
        field = "spec.strategy.inPlaceUpdate.orchestrationType"
        detail = "orchestrationType must be either Auto or Manual"
        yield FieldError(field, detail, value=block.orchestration_type)


def _node_template(template: MachineClassNodeTemplate) -> Errors:
    for key in _NEEDED_CAPACITY:
        if key not in template.capacity:
            yield _required(f"nodeTemplate.capacity[{key}]", f"{key} is required")
    yield from _quantities(template.capacity, "nodeTemplate.capacity")
    yield from _quantities(template.virtual_capacity, "nodeTemplate.virtualCapacity")
    texts = {
        "instanceType": template.instance_type,
        "region": template.region,
        "zone": template.zone,
    }
    for name, text in texts.items():
        if not text:
            yield _required(f"nodeTemplate.{name}", f"{name} is required")


def _quantities(amounts: Mapping[str, str | int], path: str) -> Errors:
    for key, amount in amounts.items():
        try:
            negative = parse_quantity(amount) < 0
        except ValueError:
            yield FieldError(
                f"{path}[{key}]", "must be a quantity like 4, 500m or 16Gi", value=amount
            )
            continue
        if negative:
            yield FieldError(f"{path}[{key}]", "must not be negative", value=amount)


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"


def _listed(options: Iterable[str]) -> str:
    return f"[{' '.join(options)}]"
