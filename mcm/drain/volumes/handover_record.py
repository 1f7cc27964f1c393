"""Handovers as members of a drain's record: written in JSON, read with suspicion."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypeVar, final

from mcm.api.meta import JSONObject
from mcm.api.timestamps import micro_time, parse_rfc3339
from mcm.drain.volumes.handover import Handover, Stage
from mcm.drain.volumes.holding import Holding

_T = TypeVar("_T")
_LONGEST_WAIT = timedelta(days=36500)


@final
class UnreadableHandoverError(ValueError):
    """Text that is no handover. Says which member is wrong."""


def handover_json(handover: Handover) -> JSONObject:
    """Write what cannot be found out again. What is re-derived in each look is left out."""
    raw: JSONObject = {
        "pod": handover.pod_key,
        "uid": handover.pod_uid,
        "ownerUID": handover.owner_uid,
        "replaced": handover.replaced,
        "volumes": [_holding_json(holding) for holding in handover.volumes],
        "graceSeconds": int(handover.grace.total_seconds()),
        "stage": handover.stage.value,
        "askedAt": micro_time(handover.asked_at),
        "since": micro_time(handover.since),
    }
    if handover.gone_at is not None:
        raw["goneAt"] = micro_time(handover.gone_at)
    if handover.detached_at is not None:
        raw["detachedAt"] = micro_time(handover.detached_at)
    if handover.over:
        raw["reason"] = handover.reason
    return raw


def read_handover(raw: object) -> Handover:
    """Read it. Raises UnreadableHandoverError."""
    if not isinstance(raw, dict):
        raise UnreadableHandoverError("is no JSON object")
    try:
        grace = timedelta(seconds=_member(raw, "graceSeconds", int))
    except OverflowError:
        raise UnreadableHandoverError("graceSeconds is out of range") from None
    if not timedelta() <= grace <= _LONGEST_WAIT:
        raise UnreadableHandoverError("graceSeconds is out of range")
    volumes = tuple(_holding(holding) for holding in _member(raw, "volumes", list))
    if not volumes:
        raise UnreadableHandoverError("volumes is empty")
    return Handover(
        pod_uid=_name(raw, "uid"),
        pod_key=_name(raw, "pod"),
        owner_uid=_member(raw, "ownerUID", str),
        replaced=_member(raw, "replaced", bool),
        volumes=volumes,
        grace=grace,
        asked_at=_moment(raw, "askedAt"),
        stage=_stage(raw),
        since=_moment(raw, "since"),
        gone_at=_moment(raw, "goneAt") if "goneAt" in raw else None,
        detached_at=_moment(raw, "detachedAt") if "detachedAt" in raw else None,
        reason=_member(raw, "reason", str) if "reason" in raw else "",
    )


def _holding_json(holding: Holding) -> JSONObject:
    raw: JSONObject = {
        "claim": holding.claim,
        "volume": holding.volume,
        "attacher": holding.attacher,
        "names": list(holding.names),
    }
    if holding.ephemeral:
        raw["ephemeral"] = True
    return raw


def _holding(raw: object) -> Holding:
    if not isinstance(raw, dict):
        raise UnreadableHandoverError("volumes holds something that is no JSON object")
    names = _member(raw, "names", list)
    if not all(isinstance(name, str) for name in names):
        raise UnreadableHandoverError("names holds something that is no text")
    return Holding(
        claim=_name(raw, "claim"),
        volume=_name(raw, "volume"),
        attacher=_member(raw, "attacher", str),
        names=tuple(names),
        ephemeral=_member(raw, "ephemeral", bool) if "ephemeral" in raw else False,
    )


def _member(raw: Mapping[str, object], member: str, kind: type[_T]) -> _T:
    value = raw.get(member)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UnreadableHandoverError(f"{member} is missing or of a wrong type")
    return value


def _name(raw: Mapping[str, object], member: str) -> str:
    text = _member(raw, member, str)
    if not text:
        raise UnreadableHandoverError(f"{member} is empty")
    return text


def _moment(raw: Mapping[str, object], member: str) -> datetime:
    try:
        return parse_rfc3339(_member(raw, member, str))
    except UnreadableHandoverError:
        raise
    except ValueError:
        raise UnreadableHandoverError(f"{member} is no timestamp") from None


def _stage(raw: Mapping[str, object]) -> Stage:
    text = _member(raw, "stage", str)
    if text not in tuple(Stage):
        raise UnreadableHandoverError(f"stage {text[:40]!r} is unknown")
    return Stage(text)
