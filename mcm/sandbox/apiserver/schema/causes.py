"""One violation of a schema, worded as the API server words it in ``details.causes``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

INVALID = "FieldValueInvalid"
REQUIRED = "FieldValueRequired"
TYPE_INVALID = "FieldValueTypeInvalid"
NOT_SUPPORTED = "FieldValueNotSupported"
TOO_LONG = "FieldValueTooLong"
TOO_MANY = "FieldValueTooMany"
DUPLICATE = "FieldValueDuplicate"


@final
@dataclass(frozen=True, slots=True)
class FieldCause:
    """``field`` is a path (``spec.disks[0].size``), ``message`` says what is wrong with it."""

    reason: str
    message: str
    field: str


def required(field: str, detail: str = "") -> FieldCause:
    return FieldCause(REQUIRED, f"Required value: {detail}" if detail else "Required value", field)


def invalid(field: str, value: object, detail: str) -> FieldCause:
    return FieldCause(INVALID, f"Invalid value: {shown(value)}: {detail}", field)


def wrong_type(field: str, expected: str, actual: str) -> FieldCause:
    detail = f'{field or "."} in body must be of type {expected}: "{actual}"'
    return FieldCause(TYPE_INVALID, f'Invalid value: "{actual}": {detail}', field)


def not_supported(field: str, value: object, allowed: Sequence[object]) -> FieldCause:
    names = ", ".join(json.dumps(v if isinstance(v, str) else json.dumps(v)) for v in allowed)
    message = f"Unsupported value: {shown(value)}: supported values: {names}"
    return FieldCause(NOT_SUPPORTED, message, field)


def too_long(field: str, limit: int) -> FieldCause:
    return FieldCause(TOO_LONG, f"Too long: may not be more than {limit} bytes", field)


def too_many(field: str, actual: int, limit: int) -> FieldCause:
    return FieldCause(TOO_MANY, f"Too many: {actual}: must have at most {limit} items", field)


def duplicate(field: str, value: object) -> FieldCause:
    return FieldCause(DUPLICATE, f"Duplicate value: {shown(value)}", field)


def shown(value: object) -> str:
    """Write a value as messages do, which is as Go prints it."""
    if isinstance(value, dict):
        members = ", ".join(f"{json.dumps(k)}:{shown(v)}" for k, v in sorted(value.items()))
        return f"map[string]interface {{}}{{{members}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(shown, value))}}}"
    if value is None:
        return '"null"'
    return json.dumps(value, ensure_ascii=False)
