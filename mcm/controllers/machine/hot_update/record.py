"""What a VM was last brought to, and what was tried since: two annotations of its machine.

Compared is what JSON means, not how it is written. All annotations of an object may have 256 KiB
together, so of a provider spec beyond :data:`LONGEST` only the SHA-256 is kept, and of those in
flight the newest that fit: equality is still known, but not what an update has to clear away.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import msgspec

from mcm.api.machine import Machine
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_IN_FLIGHT_PROVIDER_SPECS,
    ANNOTATION_LAST_APPLIED_PROVIDER_SPEC,
)

LONGEST: Final = 64 * 1024
"""Bytes of either annotation."""

_HASH: Final = "sha256:"


@final
@dataclass(frozen=True, slots=True)
class WantedSpec:
    """The provider spec of a class; ``text`` is its canonical JSON, ``recorded`` what stands on a
    machine that has it."""

    spec: JSONObject
    text: str
    recorded: str

    @classmethod
    def of(cls, spec: JSONObject) -> WantedSpec:
        text = canonical(spec)
        return cls(spec, text, text if len(text.encode()) <= LONGEST else _hash_of(text))


def canonical(document: object) -> str:
    """Return the one text of all that mean the same: sorted keys, no spaces."""
    return msgspec.json.encode(document, order="sorted").decode()


def is_applied(machine: Machine, wanted: WantedSpec) -> bool:
    """Tell whether ``wanted`` is what the VM was last brought to, as far as is recorded."""
    recorded = machine.metadata.annotations.get(ANNOTATION_LAST_APPLIED_PROVIDER_SPEC)
    if recorded is None or recorded == wanted.recorded:
        return recorded is not None
    if recorded.startswith(_HASH):
        return recorded == _hash_of(wanted.text)
    spec = _decoded(recorded)
    return isinstance(spec, dict) and canonical(spec) == wanted.text


def last_applied(machine: Machine) -> JSONObject | None:
    """Return what the VM was last brought to; None if it is not known."""
    spec = _decoded(machine.metadata.annotations.get(ANNOTATION_LAST_APPLIED_PROVIDER_SPEC, ""))
    return spec if isinstance(spec, dict) else None


def is_in_flight(machine: Machine) -> bool:
    """Tell whether an update was begun and not finished; its annotation may be unreadable."""
    return ANNOTATION_IN_FLIGHT_PROVIDER_SPECS in machine.metadata.annotations


def in_flight(machine: Machine) -> Sequence[JSONObject]:
    """Return what was tried since the last success, the oldest first, as far as it is known."""
    listed = _decoded(machine.metadata.annotations.get(ANNOTATION_IN_FLIGHT_PROVIDER_SPECS, ""))
    return [spec for spec in listed if isinstance(spec, dict)] if isinstance(listed, list) else []


def trying(machine: Machine, wanted: WantedSpec) -> Mapping[str, str | None]:
    """Return the annotations to write before ``wanted`` is tried; none if they say it already."""
    texts = [canonical(spec) for spec in in_flight(machine)]
    if wanted.text in texts:
        return {}
    room, kept = LONGEST - len("[]"), list[str]()
    for text in reversed([*texts, wanted.text]):
        room -= len(text.encode()) + len(",")
        if room < 0:
            break
        kept.insert(0, text)
    listed = f"[{','.join(kept)}]"
    known = machine.metadata.annotations.get(ANNOTATION_IN_FLIGHT_PROVIDER_SPECS)
    return {} if listed == known else {ANNOTATION_IN_FLIGHT_PROVIDER_SPECS: listed}


def brought_to(machine: Machine, wanted: WantedSpec) -> Mapping[str, str | None]:
    """Return the annotations to write once the VM is as ``wanted`` says; none if they do."""
    changes: dict[str, str | None] = {}
    annotations = machine.metadata.annotations
    if annotations.get(ANNOTATION_LAST_APPLIED_PROVIDER_SPEC) != wanted.recorded:
        changes[ANNOTATION_LAST_APPLIED_PROVIDER_SPEC] = wanted.recorded
    return changes | nothing_in_flight(machine)


def nothing_in_flight(machine: Machine) -> dict[str, str | None]:
    """Return the annotations to write where nothing was touched after all."""
    return {ANNOTATION_IN_FLIGHT_PROVIDER_SPECS: None} if is_in_flight(machine) else {}


def made_with(machine: Machine, spec: JSONObject) -> Mapping[str, str | None]:
    """Return the annotations to write for a VM that is new."""
    return brought_to(machine, WantedSpec.of(spec))


def _decoded(text: str) -> object:
    try:
        return msgspec.json.decode(text) if text else None
    except (msgspec.DecodeError, RecursionError):
        return None  # somebody else's writing: as good as none


def _hash_of(text: str) -> str:
    return f"{_HASH}{hashlib.sha256(text.encode()).hexdigest()}"
