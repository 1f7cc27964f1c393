"""What a drain must not forget in a restart, as text on an object: read, written, bounded.

All else follows from the cluster. The text is JSON; what it says beyond what is known here, by a
newer version, is left out; what cannot be read is said so, and the drain goes on without.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, final

from mcm.api.timestamps import parse_rfc3339, rfc3339, whole_seconds
from mcm.drain.selection import NO_COMEBACKS, Comeback, Comebacks
from mcm.drain.volumes import (
    Handover,
    Stage,
    UnreadableHandoverError,
    handover_json,
    read_handover,
)

LONGEST_TEXT: Final = 32 * 1024
"""Bytes. All annotations of an object together may have 256 KiB."""
_LONGEST_UID = 128
_MOST_TIMES = 2**31


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
    handovers: tuple[Handover, ...] = ()
    comebacks: Comebacks = field(default_factory=dict)

    @property
    def is_worth_keeping(self) -> bool:
        """Tell whether anything in it could not be found out again."""
        return bool(self.held_since or self.handovers or self.comebacks)

    def says_more_than(self, written: Record) -> bool:
        """Tell whether it says something that cannot be found out again and is not ``written``.

        What is over goes from the text with the next one that is written: to read it again harms
        nobody.
        """
        return bool(
            self.held_since.keys() - written.held_since.keys()
            or _landmarks(self) - _landmarks(written)
            or self.comebacks.items() - written.comebacks.items()
        )


def _landmarks(record: Record) -> set[tuple[str, bool]]:
    """Return which pods were asked, and whose volumes have left: the limits count from there."""
    return {(h.pod_uid, h.stage is Stage.DETACHED) for h in record.handovers if not h.over}


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
    """Write it, as much as there is room for: handovers before what comes back, and that before
    pods that are held; of each what is the oldest."""
    comebacks = record.comebacks
    held = sorted(record.held_since.items(), key=lambda item: (item[1], item[0]))
    handovers = sorted(record.handovers, key=lambda h: (h.asked_at, h.pod_uid))
    while True:
        fitting = replace(
            record, held_since=dict(held), handovers=tuple(handovers), comebacks=comebacks
        )
        text = json.dumps(_raw(fitting), separators=(",", ":"))
        if len(text.encode()) <= LONGEST_TEXT or not (held or handovers or comebacks):
            return text
        if held:
            held = held[: len(held) * 3 // 4]
        elif comebacks:
            comebacks = NO_COMEBACKS
        else:
            handovers = handovers[: len(handovers) * 3 // 4]


def _raw(record: Record) -> dict[str, object]:
    raw: dict[str, object] = {}
    if record.start is not None:
        raw["start"] = rfc3339(record.start)
    if record.deadline is not None:
        raw["deadline"] = rfc3339(record.deadline)
    if record.mode:
        raw["mode"] = record.mode
    if record.held_since:
        raw["heldSince"] = {uid: rfc3339(since) for uid, since in record.held_since.items()}
    if record.handovers:
        raw["handovers"] = [handover_json(handover) for handover in record.handovers]
    if record.comebacks:
        raw["comebacks"] = {
            uid: {"times": c.times, "since": rfc3339(c.since)}
            for uid, c in record.comebacks.items()
        }
    return raw


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
        handovers=_handovers(raw.get("handovers", []), troubles),
        comebacks=_comebacks(raw.get("comebacks", {}), troubles),
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


def _handovers(raw: object, troubles: list[str]) -> tuple[Handover, ...]:
    if not isinstance(raw, list):
        troubles.append("handovers")
        return ()
    found: dict[str, Handover] = {}
    for index, item in enumerate(raw):
        try:
            handover = read_handover(item)
        except UnreadableHandoverError as error:
            troubles.append(f"handovers[{index}], which {error}")
        else:
            found[handover.pod_uid] = handover
    return tuple(found.values())


def _comebacks(raw: object, troubles: list[str]) -> Comebacks:
    if not isinstance(raw, dict):
        troubles.append("comebacks")
        return {}
    found: dict[str, Comeback] = {}
    for uid, item in raw.items():
        times = item.get("times") if isinstance(item, dict) else None
        since = _parsed(item.get("since")) if isinstance(item, dict) else None
        if since is None or not isinstance(times, int) or not 0 < times < _MOST_TIMES:
            troubles.append(f"comebacks.{str(uid)[:_LONGEST_UID]}")
        else:
            found[uid] = Comeback(times, whole_seconds(since))
    return found


def _parsed(text: object) -> datetime | None:
    if not isinstance(text, str):
        return None
    try:
        return parse_rfc3339(text)
    except ValueError:
        return None
