"""The store against a server with a history: the watch lags, answers come late, lists come from
anywhere between what the watch has told and the present."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mcm.api.machine import CurrentStatus, Machine, MachineStatus
from mcm.api.meta import ObjectMeta
from mcm.informers import Changes, Store
from mcm.informers.listing import Listing
from mcm.informers.versions import same_content
from tests.unit.informers.mirror import Replay

NAMES = st.sampled_from(["a", "b"])
PHASES = st.sampled_from(["", "Pending", "Running", "Failed"])
INDEXES: Mapping[str, Callable[[Machine], Iterable[str]]] = {
    "phase": lambda m: (m.phase,) if m.phase else (),
    "letters": lambda m: m.phase.lower(),
    "name": lambda m: (m.metadata.name, m.metadata.namespace),
}


class Server:
    """Every version of the world since the beginning."""

    def __init__(self) -> None:
        self.version = 100
        self.objects: dict[str, Machine] = {}
        self.snapshots: dict[int, dict[str, Machine]] = {100: {}}
        self.events: dict[int, tuple[str, Machine]] = {}
        self.uids: dict[str, list[str]] = {}
        self.name_of: dict[str, str] = {}
        self.ends: dict[str, int] = {}

    def write(self, name: str, phase: str) -> Machine:
        known = self.objects.get(name)
        uid = known.metadata.uid if known else self._new_uid(name)
        obj = self._versioned(name, uid, phase)
        self.objects[name] = obj
        self._remember("MODIFIED" if known else "ADDED", obj)
        return obj

    def delete(self, name: str) -> Machine:
        known = self.objects.pop(name)
        last = self._versioned(name, known.metadata.uid, known.phase)
        self.ends[known.metadata.uid] = self.version
        self._remember("DELETED", last)
        return known

    def _new_uid(self, name: str) -> str:
        uid = f"uid-{len(self.name_of)}"
        self.name_of[uid] = name
        self.uids.setdefault(name, []).append(uid)
        return uid

    def _versioned(self, name: str, uid: str, phase: str) -> Machine:
        self.version += 1
        return Machine(
            metadata=ObjectMeta(name=name, uid=uid, resource_version=str(self.version)),
            status=MachineStatus(current_status=CurrentStatus(phase=phase)),
        )

    def _remember(self, kind: str, obj: Machine) -> None:
        self.events[self.version] = kind, obj
        self.snapshots[self.version] = dict(self.objects)


class StoreModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.store: Store[Machine] = Store()
        self.replay = Replay()
        self.store.subscribe(self.tell)
        self.told_up_to = 0
        self.answers: list[tuple[str, Machine]] = []
        self.observed: dict[str, int] = {}
        self.deleted: dict[str, int] = {}
        self.buried: dict[str, int] = {}
        self.versions: dict[str, int] = {}
        self.store_version = 0
        self.indexes: set[str] = set()
        self.listing: Listing[Machine] | None = None
        self.listed_at = 0
        self.to_come: list[Machine] = []

    def tell(self, changes: Changes[Machine]) -> None:
        for change in changes:
            self.replay(change)
            if change.new is None:
                self.buried.setdefault(change.object.metadata.uid, 0)

    # ---- what others do

    @rule(name=NAMES, phase=PHASES)
    def somebody_writes(self, name: str, phase: str) -> None:
        self.server.write(name, phase)

    @rule(name=NAMES)
    def somebody_deletes(self, name: str) -> None:
        if name in self.server.objects:
            self.server.delete(name)

    # ---- what we do

    @rule(name=NAMES, phase=PHASES, late=st.booleans())
    def we_write(self, name: str, phase: str, late: bool) -> None:
        self.answered("written", self.server.write(name, phase), late=late)

    @rule(name=NAMES, late=st.booleans())
    def we_delete(self, name: str, late: bool) -> None:
        if name in self.server.objects:
            self.answered("deleted", self.server.delete(name), late=late)

    def answered(self, kind: str, obj: Machine, *, late: bool) -> None:
        if late:
            self.answers.append((kind, obj))
        else:
            self.observe(kind, obj)

    @precondition(lambda self: self.answers)
    @rule(data=st.data())
    def an_answer_comes(self, data: st.DataObject) -> None:
        which = data.draw(st.integers(0, len(self.answers) - 1))
        self.observe(*self.answers.pop(which))

    def observe(self, kind: str, obj: Machine) -> None:
        uid = obj.metadata.uid
        if kind == "deleted":
            self.store.observe_deleted(obj)
            self.deleted.setdefault(uid, 0)
            self.observed.pop(uid, None)
            self.versions.pop(obj.metadata.key, None)
        else:
            self.store.observe(obj)
            version = int(obj.metadata.resource_version)
            self.observed[uid] = max(version, self.observed.get(uid, 0))

    # ---- what the reflector does

    @precondition(lambda self: self.watches() and self.told_up_to < self.server.version)
    @rule(count=st.integers(1, 4))
    def events_come(self, count: int) -> None:
        for _ in range(min(count, self.server.version - self.told_up_to)):
            self.told_up_to += 1
            kind, obj = self.server.events[self.told_up_to]
            meta = obj.metadata
            if kind == "DELETED":
                version = meta.resource_version
                self.tell(self.store.remove(meta.key, uid=meta.uid, version=version))
                self.observed.pop(meta.uid, None)
            else:
                self.tell(self.store.put(obj))
            self.store.advance(str(self.told_up_to))

    def watches(self) -> bool:
        return self.told_up_to >= 100 and self.listing is None

    @precondition(lambda self: self.watches())
    @rule()
    def a_bookmark_comes(self) -> None:
        self.store.advance(str(self.told_up_to))

    @rule(data=st.data())
    def a_list_comes(self, data: st.DataObject) -> None:
        version = data.draw(st.integers(max(100, self.told_up_to), self.server.version))
        self.relist(version)

    @rule(data=st.data())
    def a_list_begins_anew(self, data: st.DataObject) -> None:
        """Whatever one before it has shown, it may not have come to its end."""
        self.listed_at = data.draw(st.integers(max(100, self.told_up_to), self.server.version))
        self.to_come = list(self.server.snapshots[self.listed_at].values())
        self.listing = self.store.begin_list()

    @precondition(lambda self: self.to_come and self.listing is not None)
    @rule()
    def a_part_of_the_list_comes(self) -> None:
        assert self.listing is not None
        self.tell(self.store.take_listed(self.listing, self.to_come.pop(0)))

    @precondition(lambda self: self.listing is not None)
    @rule()
    def the_list_is_complete(self) -> None:
        assert self.listing is not None
        while self.to_come:
            self.a_part_of_the_list_comes()
        self.seen_in_a_list(self.listed_at)
        self.tell(self.store.finish_list(self.listing, str(self.listed_at)))
        self.forget_what_was_observed(self.listed_at)
        self.listing = None

    def relist(self, version: int) -> None:
        self.listing, self.to_come = None, []
        self.seen_in_a_list(version)
        self.tell(self.store.replace(self.server.snapshots[version].values(), str(version)))
        self.forget_what_was_observed(version)

    def seen_in_a_list(self, version: int) -> None:
        listed = self.server.snapshots[version]
        uids = {obj.metadata.uid for obj in listed.values()}
        for uid in self.deleted:
            self.deleted[uid] += uid in uids
        for uid in self.buried:
            self.buried[uid] += uid in uids

    def forget_what_was_observed(self, version: int) -> None:
        uids = {obj.metadata.uid for obj in self.server.snapshots[version].values()}
        self.told_up_to = version
        self.observed = {
            uid: seen for uid, seen in self.observed.items() if uid in uids or seen > version
        }

    @rule(name=st.sampled_from(sorted(INDEXES)))
    def an_index_is_added(self, name: str) -> None:
        if name not in self.indexes:
            self.store.add_index(name, INDEXES[name])
            self.indexes.add(name)

    # ---- what always holds

    @invariant()
    def every_index_equals_a_scan(self) -> None:
        for name in self.indexes:
            assert self.by_index(name) == self.by_scan(name)

    def by_index(self, name: str) -> Mapping[str, set[str]]:
        values = self.store.index_values(name)
        found = {v: {m.metadata.key for m in self.store.by_index(name, v)} for v in values}
        assert all(found.values()), "a value that no object has"
        for value in values:
            for found_machine in self.store.by_index(name, value):
                assert self.store.get(found_machine.metadata.key) is found_machine
        return found

    def by_scan(self, name: str) -> Mapping[str, set[str]]:
        found: dict[str, set[str]] = {}
        for obj in self.store.list():
            for value in INDEXES[name](obj):
                found.setdefault(value, set()).add(obj.metadata.key)
        return found

    @invariant()
    def changes_replay_to_the_store(self) -> None:
        known = {m.metadata.key: m for m in self.store.list()}
        assert known.keys() == self.replay.told.keys()
        assert all(same_content(self.replay.told[key], obj) for key, obj in known.items())

    @invariant()
    def the_version_of_the_store_never_falls(self) -> None:
        version = int(self.store.resource_version or 0)
        assert version >= self.store_version
        self.store_version = version

    @invariant()
    def no_object_travels_back_in_time(self) -> None:
        now = {m.metadata.key: int(m.metadata.resource_version) for m in self.store.list()}
        for key, version in now.items():
            assert version >= self.versions.get(key, 0)
        self.versions = now

    @invariant()
    def own_writes_stay_visible(self) -> None:
        known = {m.metadata.uid: int(m.metadata.resource_version) for m in self.store.list()}
        for uid, version in self.observed.items():
            ended = self.end_of(uid)
            if ended is None or ended > max(self.told_up_to, version):
                assert known.get(uid, 0) >= version or uid in self.deleted or self.succeeded(uid)

    @invariant()
    def own_deletions_stay_done(self) -> None:
        known = {m.metadata.uid for m in self.store.list()}
        for uid, lists in self.deleted.items():
            assert uid not in known or lists > 1

    @invariant()
    def nobody_who_was_told_gone_comes_back(self) -> None:
        known = {m.metadata.uid for m in self.store.list()}
        for uid, lists in self.buried.items():
            assert uid not in known or lists > 1

    @invariant()
    def own_deletions_are_not_remembered_for_ever(self) -> None:
        if self.told_up_to == self.server.version and not self.answers:
            assert self.store.remembered_deletions == 0

    def end_of(self, uid: str) -> int | None:
        return self.server.ends.get(uid)

    def succeeded(self, uid: str) -> bool:
        """Whether the store was told that another took the name (and maybe lost it again)."""
        uids = self.server.uids[self.server.name_of[uid]]
        later = uids[uids.index(uid) + 1 :]
        known = {m.metadata.uid for m in self.store.list()} | self.deleted.keys()
        return any(uid in known for uid in later)

    def teardown(self) -> None:
        """Once all news are in, nothing of the confusion is left."""
        if not self.watches():
            self.relist(self.server.version)
        while self.told_up_to < self.server.version:
            self.events_come(1)
        assert {m.metadata.name: m for m in self.store.list()} == self.server.objects
        for kind, obj in self.answers:
            observe = self.store.observe if kind == "written" else self.store.observe_deleted
            observe(obj)
        assert {m.metadata.name: m for m in self.store.list()} == self.server.objects
        self.changes_replay_to_the_store()


StoreModel.TestCase.settings = settings(max_examples=200, stateful_step_count=50, deadline=None)
TestStoreModel = StoreModel.TestCase
