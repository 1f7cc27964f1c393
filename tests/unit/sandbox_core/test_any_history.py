"""The whole server under random histories: what watchers see, and what lists say, agree."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mcm.simulation.virtualtime import VirtualLoop
from tests.unit.sandbox_core.workbench import (
    MERGE,
    WIDGETS,
    Document,
    Watcher,
    virtual_workbench,
    widget,
)

NAMES = st.sampled_from(["a", "b", "c"])
COLOURS = st.sampled_from(["red", "blue"])


class Mirror:
    """What a client knows that only follows a watch."""

    def __init__(self, watcher: Watcher, query: dict[str, str]) -> None:
        self.watcher = watcher
        self.query = query
        self.objects: dict[str, Document] = {}
        self.newest = 0

    def take(self, kind: str, obj: Document, *, initial: bool) -> None:
        name = obj["metadata"]["name"]
        version = int(obj["metadata"]["resourceVersion"])
        assert initial or version > self.newest, "out of order, or twice"
        self.newest = max(self.newest, version)
        if kind == "DELETED":
            assert self.objects.pop(name, None) is not None, "deleted what was not there"
            return
        assert (name in self.objects) == (kind == "MODIFIED"), (kind, name)
        self.objects[name] = obj


class AnyHistory(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.mirrors: list[Mirror] = []

    @initialize()
    def start(self) -> None:
        self.loop.run_until_complete(self._start())

    async def _start(self) -> None:
        self.api = virtual_workbench(window=1000)
        self.api.define_widgets()

    def teardown(self) -> None:
        self.loop.close()

    def do(self, method: str, path: str, body: object = None, **options: str) -> int:
        async def ask() -> int:
            return self.api.send(method, path, body, **options).status

        return self.loop.run_until_complete(ask())

    # ---- what clients do ------------------------------------------------------------------------

    @rule(name=NAMES, colour=COLOURS, held=st.booleans())
    def create(self, name: str, colour: str, held: bool) -> None:
        obj = widget(name, colour=colour)
        obj["metadata"]["labels"] = {"colour": colour}
        if held:
            obj["metadata"]["finalizers"] = ["x/y"]
        assert self.do("POST", WIDGETS, obj) in (201, 409)

    @rule(name=NAMES, size=st.integers(-1, 2))
    def resize(self, name: str, size: int) -> None:
        status = self.do("PATCH", f"{WIDGETS}/{name}", {"spec": {"size": size}}, media=MERGE)
        assert status in (200, 404, 422)

    @rule(name=NAMES, colour=COLOURS)
    def repaint(self, name: str, colour: str) -> None:
        patch = {"metadata": {"labels": {"colour": colour}}, "spec": {"colour": colour}}
        assert self.do("PATCH", f"{WIDGETS}/{name}", patch, media=MERGE) in (200, 404)

    @rule(name=NAMES, phase=st.sampled_from("xyz"))
    def report(self, name: str, phase: str) -> None:
        patch = {"status": {"phase": phase}, "spec": {"size": 99}}
        assert self.do("PATCH", f"{WIDGETS}/{name}/status", patch, media=MERGE) in (200, 404)

    @rule(name=NAMES)
    def put_as_it_was(self, name: str) -> None:
        async def ask() -> None:
            answer = self.api.send("GET", f"{WIDGETS}/{name}")
            if answer.status == 200:
                before = self.api.server.store.revision
                assert self.api.put(f"{WIDGETS}/{name}", answer.body) == answer.body
                assert self.api.server.store.revision == before

        self.loop.run_until_complete(ask())

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        assert self.do("DELETE", f"{WIDGETS}/{name}") in (200, 404)

    @rule(name=NAMES)
    def release(self, name: str) -> None:
        patch = {"metadata": {"finalizers": None}}
        assert self.do("PATCH", f"{WIDGETS}/{name}", patch, media=MERGE) in (200, 404)

    @rule(colour=COLOURS)
    def delete_all(self, colour: str) -> None:
        assert self.do("DELETE", WIDGETS, labelSelector=f"colour={colour}") == 200

    # ---- who looks on ---------------------------------------------------------------------------

    @rule(
        query=st.sampled_from(
            [
                {},
                {"labelSelector": "colour=red"},
                {"labelSelector": "colour notin (red)"},
                {"fieldSelector": "spec.colour=blue"},
                {"fieldSelector": "metadata.name!=a"},
            ]
        ),
        listed=st.booleans(),
    )
    def begin_to_watch(self, query: dict[str, str], listed: bool) -> None:
        self.loop.run_until_complete(self._begin_to_watch(query, listed=listed))

    async def _begin_to_watch(self, query: dict[str, str], *, listed: bool) -> None:
        if len(self.mirrors) >= 6:
            return
        if not listed:
            mirror = Mirror(self.api.watch(WIDGETS, **query), query)
            await self._read(mirror, initial=True)
        else:
            body = self.api.get(WIDGETS, **query)
            version = body["metadata"]["resourceVersion"]
            mirror = Mirror(self.api.watch(WIDGETS, resourceVersion=version, **query), query)
            mirror.objects = {o["metadata"]["name"]: o for o in body["items"]}
            mirror.newest = int(version)
        self.mirrors.append(mirror)

    async def _read(self, mirror: Mirror, *, initial: bool = False) -> None:
        while mirror.watcher.pending:
            kind, obj = await mirror.watcher.next()
            mirror.take(kind, obj, initial=initial)

    @invariant()
    def mirrors_agree_with_lists(self) -> None:
        self.loop.run_until_complete(self._compare())

    async def _compare(self) -> None:
        for mirror in self.mirrors:
            await self._read(mirror)
            items = self.api.get(WIDGETS, **mirror.query)["items"]
            assert mirror.objects == {o["metadata"]["name"]: o for o in items}

    @invariant()
    def objects_are_what_their_rules_say(self) -> None:
        if not hasattr(self, "api"):
            return
        for obj in self.api.server.objects("toys.example", "widgets"):
            meta: Document = obj["metadata"]  # type: ignore[assignment]
            assert meta["generation"] >= 1
            # What is being deleted is there for a reason.
            assert "deletionTimestamp" not in meta or meta["finalizers"]
            assert obj["spec"]["size"] in (0, 1, 2)  # type: ignore[index]


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
