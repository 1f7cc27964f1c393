"""What an object must satisfy before a controller acts on it: one module for each kind and part.

The API server enforces only the CRD's structure. These checks are pure, return everything they
find, never raise, and name the field, so that a condition, an event, a command or the API server's
own refusal can say what to mend. ``validate_…`` return errors only, for whoever is about to act;
:func:`examine` returns warnings, too. Whoever asks uses the names below; the modules are for these.
"""

from __future__ import annotations

from mcm.api.validation.counts import DEFAULT_MAX_REPLICAS
from mcm.api.validation.examination import (
    EXAMINED,
    Examined,
    examine,
    examine_replicas,
    read_and_examine,
)
from mcm.api.validation.field_errors import ErrorKind, FieldError, describe, errors_among
from mcm.api.validation.machine import validate_machine
from mcm.api.validation.machine_class import validate_machine_class
from mcm.api.validation.machine_deployment import validate_machine_deployment
from mcm.api.validation.machine_set import validate_machine_set

__all__ = [
    "DEFAULT_MAX_REPLICAS",
    "EXAMINED",
    "ErrorKind",
    "Examined",
    "FieldError",
    "describe",
    "errors_among",
    "examine",
    "examine_replicas",
    "read_and_examine",
    "validate_machine",
    "validate_machine_class",
    "validate_machine_deployment",
    "validate_machine_set",
]
