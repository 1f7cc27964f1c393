"""Whether a change of an object is let in: it is, unless it brings an error that was not there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import msgspec

from mcm.api.meta import Resource
from mcm.api.validation import (
    EXAMINED,
    Examined,
    FieldError,
    errors_among,
    examine_replicas,
    read_and_examine,
)

Findings = tuple[FieldError, ...]

_BY_PLURAL: Final[Mapping[str, Resource[Examined]]] = {r.plural: r for r in EXAMINED}
_JUDGED: Final = ("CREATE", "UPDATE")
_SCALE: Final = "scale"


@final
@dataclass(frozen=True, slots=True)
class Judgement:
    """``errors`` refuse the change; ``warnings`` are shown to whoever makes it."""

    errors: Findings = ()
    warnings: Findings = ()


class _ScaleSpec(msgspec.Struct, frozen=True):
    replicas: int = 0


class _Scale(msgspec.Struct, frozen=True):
    """``autoscaling/v1`` Scale, as far as it decides something."""

    spec: _ScaleSpec = _ScaleSpec()


def judge(
    *,
    plural: str,
    subresource: str,
    operation: str,
    new: bytes,
    old: bytes,
    max_replicas: int,
) -> Judgement:
    """Judge one change of an object of our group; ``new`` and ``old`` are JSON, empty for none.

    What cannot be read is an error, too. Deletions, status and what is not ours are let in.
    """
    resource = _BY_PLURAL.get(plural)
    if resource is None or operation not in _JUDGED or not new:
        return Judgement()
    if subresource == _SCALE:
        return _compared(_of_scale(new, max_replicas), _of_scale(old, max_replicas))
    if subresource:
        return Judgement()
    present, findings = read_and_examine(resource, new, max_replicas=max_replicas)
    if present is not None and present.metadata.deletion_timestamp is not None:
        return Judgement()  # all that is left of it is to go
    before = read_and_examine(resource, old, max_replicas=max_replicas)[1] if old else ()
    return _compared(findings, before)


def _compared(findings: Findings, before: Findings) -> Judgement:
    known = {str(found) for found in before}
    errors = tuple(e for e in errors_among(findings) if str(e) not in known)
    return Judgement(errors, tuple(found for found in findings if found not in errors))


def _of_scale(body: bytes, max_replicas: int) -> Findings:
    if not body:
        return ()
    try:
        scale = msgspec.json.decode(body, type=_Scale)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return (FieldError("spec.replicas", "must be a whole number"),)
    return examine_replicas(scale.spec.replicas, max_replicas=max_replicas)
