"""What the Go original had written by some moment of the recorded life of a fleet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from mcm.api.timestamps import parse_rfc3339
from mcm.sandbox.apiserver.server import ApiServer

_FOLDER = Path(__file__).parents[2] / "api" / "recorded"
_GROUP = "machine.sapcloud.io"
_STORAGES = {
    # Owners before what they own.
    "machinedeployments": f"machinedeployments.{_GROUP}",
    "machinesets": f"machinesets.{_GROUP}",
    "machineclasses": f"machineclasses.{_GROUP}",
    "secrets": "secrets",
    "bootstrap-secrets": "secrets",
    "nodes": "nodes",
    "machines": f"machines.{_GROUP}",
}

_BEFORE = datetime(1970, 1, 1, tzinfo=UTC)
_NO_VM = ("Initiate node object deletion", "Initiate machine object finalizer removal")

Document = dict[str, Any]


@dataclass(frozen=True)
class Event:
    """One recorded event; ``version`` orders those of all resources."""

    resource: str
    kind: str
    object: Document

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def version(self) -> int:
        return int(self.object["metadata"]["resourceVersion"])


@cache
def events() -> tuple[Event, ...]:
    return tuple(sorted(_read(), key=lambda event: event.version))


def _read() -> Iterator[Event]:
    for resource in _STORAGES:
        for line in (_FOLDER / f"{resource}.jsonl").read_text().splitlines():
            event = json.loads(line)
            yield Event(resource, event["type"], event["object"])


@dataclass
class Moment:
    """The cluster as it stood at ``version``. ``vms``: the names of those the cloud had."""

    version: int
    objects: dict[str, dict[str, Document]]
    vms: set[str]
    time: datetime

    @property
    def machines(self) -> dict[str, Document]:
        return self.objects["machines"]

    @property
    def tokens(self) -> dict[str, Document]:
        return self.objects["bootstrap-secrets"]


def at(version: int) -> Moment:
    """Rebuild a moment. The driver of the recording made VM and Node at once, and deleted the VM
    before that was written on the machine."""
    moment = Moment(version, {resource: {} for resource in _STORAGES}, set(), _BEFORE)
    for event in events():
        if event.version > version:
            break
        moment.objects[event.resource][event.name] = event.object
        if event.kind == "DELETED":
            del moment.objects[event.resource][event.name]
        if _tells_of_a_vm(event):
            moment.vms.add(event.name)
        if event.resource == "machines" and any(text in _said(event.object) for text in _NO_VM):
            moment.vms.discard(event.name)
        moment.time = _latest(event.object, moment.time)
    return moment


def _tells_of_a_vm(event: Event) -> bool:
    if event.resource == "machines":
        return "providerID" in event.object["spec"]
    return (event.resource, event.kind) == ("nodes", "ADDED")


def _said(machine: Document) -> str:
    operation = machine.get("status", {}).get("lastOperation", {})
    return str(operation.get("description", ""))


def _latest(obj: Document, so_far: datetime) -> datetime:
    written = [entry["time"] for entry in obj["metadata"]["managedFields"]]
    times = [parse_rfc3339(text) for text in written]
    return max((*times, so_far))


def put(server: ApiServer, moment: Moment) -> None:
    """Store what there was at that moment, as it was."""
    for resource, storage in _STORAGES.items():
        for name, obj in moment.objects[resource].items():
            namespace = obj["metadata"].get("namespace", "")
            server.store.create(storage, namespace, name, deepcopy(obj))  # which keeps it


def soon_after(moment: Moment) -> datetime:
    return moment.time + timedelta(seconds=1)
