"""What a drain must not forget in a restart, as text on an object: read, written, bounded.

All else follows from the cluster. The text is JSON; what it says beyond what is known here, by a
newer version, is left out; what cannot be read is said so, and the drain goes on without.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, final

from mcm.api.timestamps import parse_rfc3339, rfc3339, whole_seconds

LONGEST_TEXT: Final = 32 * 1024
"""Bytes. All annotations of an object together may have 256 KiB."""
_LONGEST_UID = 128


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """``start``, ``deadline`` and ``mode`` are told for people, and for a drain that follows from
    nothing else than this; where the request says otherwise, the request counts."""

    start: datetime | None = None
    deadline: datetime | None = None
    mode: str = ""
    held_since: Mapping[str, datetime] = field(default_factory=dict)
    """Since when a pod, by UID, was refused or not even asked: patience counts from here."""

    @property
    def is_worth_keeping(self) -> bool:
        """Tell whether anything in it could not be found out again."""
        return bool(self.held_since)

    def says_more_than(self, other: Record) -> bool:
        """Tell whether what cannot be found out again differs between the two."""
        return dict(self.held_since) != dict(other.held_since)


@final
@dataclass(frozen=True, slots=True)
class ReadRecord:
    """``trouble`` says what of the text could not be read; empty if all could."""

    record: Record
    trouble: str = ""


def read_record(text: str | None) -> ReadRecord:
    """Read what is written on an object; None or an empty text: nothing is."""
    if not text:
        return ReadRecord(Record())
    if len(text.encode()) > LONGEST_TEXT:
        return ReadRecord(Record(), "the drain's record is too long to be ours")
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        return ReadRecord(Record(), f"the drain's record is no JSON: {error}")
    if not isinstance(raw, dict):
        return ReadRecord(Record(), "the drain's record is no JSON object")
    return _read_members(raw)


def record_text(record: Record) -> str:
    """Write it: what is the oldest first, as much as there is room for."""
    held = sorted(record.held_since.items(), key=lambda item: (item[1], item[0]))
    while len((text := _text(record, held)).encode()) > LONGEST_TEXT and held:
        held = held[: len(held) * 3 // 4]
    return text


def _text(record: Record, held: list[tuple[str, datetime]]) -> str:
    raw: dict[str, object] = {}
    if record.start is not None:
        raw["start"] = rfc3339(record.start)
    if record.deadline is not None:
        raw["deadline"] = rfc3339(record.deadline)
    if record.mode:
        raw["mode"] = record.mode
    if held:
        raw["heldSince"] = {uid: rfc3339(since) for uid, since in held}
    return json.dumps(raw, separators=(",", ":"))


def _read_members(raw: Mapping[str, object]) -> ReadRecord:
    troubles: list[str] = []
    mode = raw.get("mode", "")
    if not isinstance(mode, str):
        troubles.append("mode")
        mode = ""
    record = Record(
        start=_moment(raw, "start", troubles),
        deadline=_moment(raw, "deadline", troubles),
        mode=mode,
        held_since=_held(raw.get("heldSince", {}), troubles),
    )
    trouble = f"the drain's record cannot be read at {', '.join(troubles)}" if troubles else ""
    return ReadRecord(record, trouble)


def _moment(raw: Mapping[str, object], member: str, troubles: list[str]) -> datetime | None:
    text = raw.get(member)
    if text is None:
        return None
    moment = _parsed(text)
    if moment is None:
        troubles.append(member)
    return moment


def _held(raw: object, troubles: list[str]) -> Mapping[str, datetime]:
    if not isinstance(raw, dict):
        troubles.append("heldSince")
        return {}
    held: dict[str, datetime] = {}
    for uid, text in raw.items():
        since = _parsed(text)
        if since is None or not uid or len(uid) > _LONGEST_UID:
            troubles.append(f"heldSince.{str(uid)[:_LONGEST_UID]}")
        else:
            held[uid] = whole_seconds(since)
    return held


def _parsed(text: object) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        return parse_rfc3339(text)
    except ValueError:
        return None
