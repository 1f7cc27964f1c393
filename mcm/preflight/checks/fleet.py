"""The state that the fleet is in: what is frozen, failing, kept, or done otherwise by ours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from mcm.api.names import (
    ANNOTATION_PRESERVE,
    ANNOTATION_TRIGGER_DELETION,
    ANNOTATION_UNFREEZE,
    KIND_MACHINE_CLASS,
    LABEL_FORCE_DELETION,
    LABEL_FREEZE,
    LABEL_SCALE_UP_DISABLED,
    MACHINE_FINALIZER,
)
from mcm.preflight.finding import Finding, ok, problem, warning
from mcm.preflight.seen import JSONDocument, Objects, Seen, Unread

_CHECK: Final = "fleet"
_IN_TROUBLE: Final = ("Failed", "CrashLoopBackOff", "Unknown", "InPlaceUpdateFailed")
_CUT: Final = 120


def check_fleet(seen: Seen) -> Iterator[Finding]:
    yield from _machines(_read(seen.machines))
    yield from _sets(_read(seen.machine_sets))
    yield from _deployments(_read(seen.machine_deployments))
    yield from _old_classes(seen)
    for found in (seen.machines, seen.machine_sets, seen.machine_deployments):
        yield from _foreign_finalizers(_read(found))


def _machines(machines: Sequence[JSONDocument]) -> Iterator[Finding]:
    phases = Counter(_phase(m) or "new" for m in machines)
    counted = ", ".join(f"{number} {phase}" for phase, number in sorted(phases.items()))
    yield ok(_CHECK, "machines", counted or "there are none")
    for machine in machines:
        phase = _phase(machine)
        if phase in _IN_TROUBLE:
            last = (machine.get("status") or {}).get("lastOperation") or {}
            text = f"is {phase}: {str(last.get('description', ''))[:_CUT]}"
            remedy = "it is treated on from here; look at it first if it should not be replaced"
            yield warning(_CHECK, _name(machine), text, remedy)
        if LABEL_FORCE_DELETION in _labels(machine) and "deletionTimestamp" in _meta(machine):
            text = "is being deleted by force: its pods are not waited for"
            yield warning(_CHECK, _name(machine), text, "remove the label if that is not meant")
        if ANNOTATION_PRESERVE in _annotations(machine):
            value = _annotations(machine)[ANNOTATION_PRESERVE]
            text = f"{ANNOTATION_PRESERVE} is {value!r}: it is kept on, to the same expiry"
            yield ok(_CHECK, _name(machine), text)


def _sets(sets: Sequence[JSONDocument]) -> Iterator[Finding]:
    for found in sets:
        if _labels(found).get(LABEL_FREEZE) == "True":
            text = "is frozen: it makes no machine until it has no more than it may have"
            remedy = f"look why; to unfreeze it at once: the annotation {ANNOTATION_UNFREEZE}"
            yield warning(_CHECK, _name(found), text, remedy)
        if LABEL_SCALE_UP_DISABLED in _labels(found):
            text = f"has the label {LABEL_SCALE_UP_DISABLED}, which the Go original never takes off"
            remedy = "ours does, when its deployment goes back to it"
            yield warning(_CHECK, _name(found), text, remedy)


def _deployments(deployments: Sequence[JSONDocument]) -> Iterator[Finding]:
    for found in deployments:
        spec = found.get("spec") or {}
        if spec.get("paused"):
            yield ok(_CHECK, _name(found), "is paused, and stays so")
        if spec.get("minReadySeconds"):
            text = (
                f"spec.minReadySeconds is {spec['minReadySeconds']}: the Go original ignores it, "
                "ours waits so long before a machine is available"
            )
            yield warning(_CHECK, _name(found), text, "set it to 0 for rollouts as they were")
        if _annotations(found).get(ANNOTATION_TRIGGER_DELETION):
            text = f"{ANNOTATION_TRIGGER_DELETION} names machines that are to go"
            yield ok(_CHECK, _name(found), f"{text}; those of other deployments are not touched")
        updated = int((found.get("status") or {}).get("updatedReplicas") or 0)
        if updated < int((found.get("status") or {}).get("replicas") or 0):
            yield ok(_CHECK, _name(found), "is being rolled out; it is carried on where it stands")


def _old_classes(seen: Seen) -> Iterator[Finding]:
    for plural, found in seen.old_classes.items():
        classes = _read(found)
        if classes:
            names = ", ".join(sorted(str(_meta(c).get("name")) for c in classes)[:5])
            text = f"{len(classes)} of them ({names}): a kind that was before MachineClass"
            remedy = "its provider replaces them if it knows how; else make MachineClasses of them"
            yield warning(_CHECK, plural, text, remedy)
    for found in (seen.machine_deployments, seen.machine_sets):
        for owner in _read(found):
            template = ((owner.get("spec") or {}).get("template") or {}).get("spec") or {}
            kind = (template.get("class") or {}).get("kind")
            if kind and kind != KIND_MACHINE_CLASS:
                text = f"spec.template.spec.class.kind is {kind}"
                yield problem(_CHECK, _name(owner), text, "have it name a MachineClass")


def _foreign_finalizers(objects: Sequence[JSONDocument]) -> Iterator[Finding]:
    for found in objects:
        others = [f for f in _meta(found).get("finalizers") or () if f != MACHINE_FINALIZER]
        if others:
            text = f"has finalizers of others: {', '.join(others)}"
            yield warning(_CHECK, _name(found), text, "see that somebody takes them off")


def _read(found: Objects) -> Sequence[JSONDocument]:
    """What cannot be read is told of elsewhere."""
    return () if isinstance(found, Unread) else found


def _meta(found: JSONDocument) -> JSONDocument:
    meta: JSONDocument = found.get("metadata") or {}
    return meta


def _labels(found: JSONDocument) -> dict[str, str]:
    return _meta(found).get("labels") or {}


def _annotations(found: JSONDocument) -> dict[str, str]:
    return _meta(found).get("annotations") or {}


def _phase(machine: JSONDocument) -> str:
    current = (machine.get("status") or {}).get("currentStatus") or {}
    return str(current.get("phase") or "")


def _name(found: JSONDocument) -> str:
    return f"{found.get('kind')} {_meta(found).get('namespace')}/{_meta(found).get('name')}"
