"""The note on a set of machines that were given up before they ever joined, and are gone by now.

A set replaces such a machine at once, so that soon nothing else tells of it. It notes it on itself
before, and drops the note when all of its machines have joined.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Final, final

import msgspec

from mcm.api.machine import Machine, MachineSet
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_STARTUP_FAILURES
from mcm.controllers.replicas.availability import serves
from mcm.controllers.replicas.joining import has_never_joined
from mcm.controllers.replicas.membership import is_failed, is_terminating

_LONGEST_TEXT: Final = 500


@final
@dataclass(frozen=True, slots=True)
class StartupNote:
    """The last ``machine`` that was given up, what it said, and how many were, in a row."""

    machine: str
    code: str
    text: str
    count: int


def read_note(machine_set: MachineSet) -> StartupNote | None:
    """Return the note on the set; None if there is none, or nobody can read it."""
    text = machine_set.metadata.annotations.get(ANNOTATION_STARTUP_FAILURES)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=StartupNote)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def note_change(
    machine_set: MachineSet, machines: Sequence[Machine], doomed: Iterable[Machine]
) -> JSONObject:
    """Return the patch to write before the ``doomed`` of ``machines`` go; empty if none is due."""
    note = read_note(machine_set)
    lost = [m for m in doomed if is_failed(m) and has_never_joined(m)]
    unknown = [m for m in lost if note is None or m.metadata.name != note.machine]
    if unknown:
        last = max(unknown, key=lambda m: m.metadata.name)
        done = last.status.last_operation
        text = done.description[:_LONGEST_TEXT]
        count = (note.count if note else 0) + len(unknown)
        return _annotating(StartupNote(last.metadata.name, done.error_code, text, count))
    noted = ANNOTATION_STARTUP_FAILURES in machine_set.metadata.annotations
    return _annotating(None) if noted and not lost and _is_up(machine_set, machines) else {}


def _is_up(machine_set: MachineSet, machines: Sequence[Machine]) -> bool:
    staying = [m for m in machines if not is_terminating(m)]
    if machine_set.spec.replicas == 0:
        return not staying
    if len(staying) < machine_set.spec.replicas or any(map(has_never_joined, staying)):
        return False
    return any(map(serves, staying))


def _annotating(note: StartupNote | None) -> JSONObject:
    text = json.dumps(asdict(note)) if note else None
    return {"metadata": {"annotations": {ANNOTATION_STARTUP_FAILURES: text}}}
