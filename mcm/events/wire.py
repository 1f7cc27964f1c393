"""Events as the two APIs want them: ``events.k8s.io/v1``, and ``v1`` where that is not served.

Both show the same objects. The newer one refuses the older one's fields (count, first and last
time stamp, source) on creation and lets an update change nothing but the series; ``kubectl``
derives its columns from eventTime and series then.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, final

from mcm.api.meta import ApiStruct, JSONObject, ObjectMeta, Resource, T
from mcm.api.timestamps import micro_time, rfc3339

_NAME_LIMIT = 253
_TEXT_LIMIT = 128
NOTE_LIMIT = 1024
_CLUSTER_SCOPED = "default"


class EventType(StrEnum):
    """There are no others."""

    NORMAL = "Normal"
    WARNING = "Warning"


EventKind = EventType | Literal["Normal", "Warning"]


class Event(ApiStruct, frozen=True, kw_only=True):
    """What an answer is read as; nothing in it matters to the recorder."""

    metadata: ObjectMeta


EVENTS = Resource("events.k8s.io", "v1", "events", "Event", Event)
CORE_EVENTS = Resource("", "v1", "events", "Event", Event)


@final
@dataclass(frozen=True, slots=True)
class Regarding:
    """The object an event is about. No resourceVersion: repeats must compare equal."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def event_namespace(self) -> str:
        """Where its events live."""
        return self.namespace or _CLUSTER_SCOPED

    def as_reference(self) -> JSONObject:
        fields = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }
        return {key: value for key, value in fields.items() if value}


@final
@dataclass(frozen=True, slots=True)
class Occurrence:
    """One thing that happened, every text within the API's limits. Equal ones are repeats."""

    regarding: Regarding
    type: EventType
    reason: str
    action: str
    note: str


@final
@dataclass(frozen=True, slots=True)
class Tally:
    """How often an occurrence was seen, and when."""

    count: int
    first: datetime
    last: datetime


@final
@dataclass(frozen=True, slots=True)
class Reporter:
    """Who says so: a qualified name, and which of its instances."""

    component: str
    instance: str


def regarding(resource: Resource[T], obj: T) -> Regarding:
    meta = obj.metadata
    return Regarding(resource.api_version, resource.kind, meta.namespace, meta.name, meta.uid)


def occurrence(
    about: Regarding, kind: EventKind, reason: str, note: str, action: str
) -> Occurrence:
    """Cut all texts to what the API accepts. Raises ValueError for an unknown ``kind``."""
    return Occurrence(
        about,
        EventType(kind),
        cut(reason, _TEXT_LIMIT) or "Unspecified",
        cut(action, _TEXT_LIMIT) or "Reconcile",
        cut(note, NOTE_LIMIT),
    )


def reporter(component: str, host: str) -> Reporter:
    return Reporter(component, cut(f"{component}-{host}", _TEXT_LIMIT))


def cut(text: str, limit: int) -> str:
    """Cut ``text`` to ``limit`` bytes of UTF-8, whole characters only, marked by an ellipsis."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode()
    return data[: limit - len("…".encode())].decode("utf-8", "ignore") + "…"


def event_name(about: Regarding, stamp: int) -> str:
    """Return the object's name, cut if need be, with ``stamp`` in hexadecimal behind it."""
    suffix = f".{stamp:x}"
    return about.name[: _NAME_LIMIT - len(suffix)].rstrip("-.") + suffix


def event_body(what: Occurrence, tally: Tally, name: str, by: Reporter) -> JSONObject:
    """Return a new event for ``events.k8s.io/v1``."""
    body: JSONObject = {
        "metadata": {"name": name, "namespace": what.regarding.event_namespace},
        "eventTime": micro_time(tally.first),
        "type": what.type.value,
        "reason": what.reason,
        "action": what.action,
        "note": what.note,
        "regarding": what.regarding.as_reference(),
        "reportingController": by.component,
        "reportingInstance": by.instance,
    }
    return body if tally.count < 2 else {**body, **series_patch(tally)}


def series_patch(tally: Tally) -> JSONObject:
    """Return what a repeat changes in ``events.k8s.io/v1``; the count there is at least 2."""
    return {"series": {"count": tally.count, "lastObservedTime": micro_time(tally.last)}}


def core_event_body(what: Occurrence, tally: Tally, name: str, by: Reporter) -> JSONObject:
    """Return a new event for ``v1``."""
    return {
        "metadata": {"name": name, "namespace": what.regarding.event_namespace},
        "firstTimestamp": rfc3339(tally.first),
        "type": what.type.value,
        "reason": what.reason,
        "message": what.note,
        "involvedObject": what.regarding.as_reference(),
        "source": {"component": by.component},
        **core_count_patch(tally),
    }


def core_count_patch(tally: Tally) -> JSONObject:
    """Return what a repeat changes in ``v1``."""
    return {"count": tally.count, "lastTimestamp": rfc3339(tally.last)}
