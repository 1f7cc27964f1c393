"""What a server's machines really went through, and whether a handler was told the same."""

from __future__ import annotations

from typing import final

import msgspec

from mcm.api import codec
from mcm.api.machine import MACHINES, Machine
from mcm.informers.change import Change
from mcm.informers.versions import newer
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.apiserver.store import Change as Write
from mcm.sandbox.apiserver.store import ChangeType


def unversioned(machine: Machine) -> Machine:
    """The machine as handlers care for it: a new version alone is not told."""
    meta = msgspec.structs.replace(machine.metadata, resource_version="")
    return msgspec.structs.replace(machine, metadata=meta)


@final
class Chronicle:
    """Every state of every machine of ``server``, from now on."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._states: dict[tuple[str, str], bytes] = {}
        self._ended: set[str] = set()
        server.store.subscribe(self._note, MACHINES.name)

    @property
    def writes(self) -> int:
        return len(self._states) + len(self._ended)

    def existed(self, machine: Machine) -> bool:
        meta = machine.metadata
        state = self._states.get((meta.uid, meta.resource_version))
        return state is not None and codec.decode_object(MACHINES, state) == machine

    def ended(self, uid: str) -> bool:
        return uid in self._ended

    def machines(self) -> dict[str, Machine]:
        """The machines there are now, as a client that lists them would see them."""
        found = self._server.store.collection(MACHINES.name).ordered()
        listed = [codec.decode_object(MACHINES, stored.encoded) for stored in found]
        return {machine.metadata.key: machine for machine in listed}

    def versions(self) -> dict[str, str]:
        collection = self._server.store.collection(MACHINES.name)
        return {stored.key: str(stored.revision) for stored in collection}

    def _note(self, write: Write) -> None:
        stored = write.stored
        if write.type is ChangeType.DELETED:
            self._ended.add(stored.uid)
        else:
            self._states[stored.uid, str(stored.revision)] = stored.encoded


@final
class Replay:
    """A handler that plays all changes back, and objects to any that does not fit: into the chain
    of what it was told before, or into the chronicle."""

    def __init__(self, chronicle: Chronicle) -> None:
        self.told: dict[str, Machine] = {}
        self.changes = 0
        self.objections: list[str] = []
        self._chronicle = chronicle
        self._buried: set[str] = set()

    def __call__(self, change: Change[Machine]) -> None:
        self.changes += 1
        key = change.object.metadata.key
        before = self.told.pop(key, None)
        self._follows(change, before)
        if change.new is None:
            self._ends(change.object)
        else:
            self._lives(change.new, before)
            self.told[key] = change.new

    def equals(self, machines: dict[str, Machine]) -> bool:
        mine = {key: unversioned(machine) for key, machine in self.told.items()}
        return mine == {key: unversioned(machine) for key, machine in machines.items()}

    def _follows(self, change: Change[Machine], before: Machine | None) -> None:
        if (change.old is None) != (before is None):
            self._object("the chain is broken", change.object)
        elif change.old is None or before is None:
            return
        elif unversioned(change.old) != unversioned(before):
            self._object("old is not what was told", change.old)

    def _lives(self, new: Machine, before: Machine | None) -> None:
        if not self._chronicle.existed(new):
            self._object("never existed", new)
        if new.metadata.uid in self._buried:
            self._object("came back from the dead", new)
        if before is not None:
            if newer(before.metadata.resource_version, new.metadata.resource_version):
                self._object("went back in time", new)
            if before.metadata.uid != new.metadata.uid:
                self._object("turned into another", new)

    def _ends(self, last: Machine) -> None:
        self._buried.add(last.metadata.uid)
        if not self._chronicle.ended(last.metadata.uid):
            self._object("is said to be gone, and is not", last)

    def _object(self, what: str, machine: Machine) -> None:
        meta = machine.metadata
        self.objections.append(f"{what}: {meta.key} {meta.uid[:8]} at {meta.resource_version}")
