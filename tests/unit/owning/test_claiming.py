"""Whoever claims, in whatever order answers come: no child changes hands without being let go."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import msgspec
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.api.codec import decode_object
from mcm.api.meta import JSONObject, LabelSelector, ObjectMeta, OwnerReference
from mcm.api.selectors import is_empty, matches
from mcm.client.errors import KubeError
from mcm.client.requests import Call
from mcm.client.transport import Response
from mcm.clock import LoopClock
from mcm.controllers.owning import Claimer, controller_reference
from mcm.controllers.owning.claims import Claims, adoption, claims_of, release, same_bonds
from mcm.informers import InformerFactory
from mcm.sandbox.apiserver.store import Change
from tests.unit.machineset.cluster import EPOCH, Api, play
from tests.unit.owning.widgets import OWNERSHIP, WIDGET_SETS, WIDGETS, Widget, WidgetSet

R = TypeVar("R")
LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
SELECTORS = st.one_of(st.none(), LABELS.map(lambda m: LabelSelector(match_labels=m)))
OWNERS = ("p", "q", "r")


def reference(owner: str) -> OwnerReference:
    meta = ObjectMeta(name=owner, namespace="ns", uid=f"{owner}-uid")
    return controller_reference(WIDGET_SETS, meta)


@st.composite
def widgets(draw: st.DrawFn) -> list[Widget]:
    found: list[Widget] = []
    for number in range(draw(st.integers(0, 6))):
        owner = draw(st.sampled_from(("", *OWNERS)))
        meta = ObjectMeta(
            name=f"w{number}",
            namespace="ns",
            uid=f"w{number}-uid",
            resource_version=str(number + 1),
            labels=draw(LABELS),
            owner_references=(reference(owner),) if owner else (),
            deletion_timestamp=draw(st.sampled_from((None, None, EPOCH))),
        )
        found.append(Widget(metadata=meta))
    return found


def claims(owner: ObjectMeta, selector: LabelSelector | None, all_: list[Widget]) -> Claims[Widget]:
    """Everything is offered as both: what is whose, the decision sees for itself."""
    return claims_of(owner, selector, children=all_, orphans=all_)


@given(around=widgets(), selector=SELECTORS, leaving=st.booleans())
def test_claims_are_sound_whatever_children_and_selector(
    around: list[Widget], selector: LabelSelector | None, leaving: bool
) -> None:
    deleted = EPOCH if leaving else None
    owner = ObjectMeta(name="p", namespace="ns", uid="p-uid", deletion_timestamp=deleted)
    claimed = claims(owner, selector, around)
    for each in (*claimed.kept, *claimed.release):
        controller = each.metadata.controller_ref()
        assert controller is not None and controller.uid == "p-uid"
    for orphan in claimed.adopt:
        assert orphan.metadata.controller_ref() is None
        assert orphan.metadata.deletion_timestamp is None
        assert not is_empty(selector) and matches(selector, orphan.metadata.labels)
    if leaving or selector is None:
        assert (claimed.adopt, claimed.release) == ((), ())
    names = [w.metadata.name for w in (*claimed.kept, *claimed.adopt, *claimed.release)]
    assert len(names) == len(set(names))


@given(around=widgets(), selector=SELECTORS)
def test_claiming_twice_changes_nothing(
    around: list[Widget], selector: LabelSelector | None
) -> None:
    owner = ObjectMeta(name="p", namespace="ns", uid="p-uid")
    first = claims(owner, selector, around)
    changes = {w.metadata.name: adoption(w.metadata, reference("p")) for w in first.adopt}
    changes |= {w.metadata.name: release(w.metadata, "p-uid") for w in first.release}
    after = [_changed(w, changes.get(w.metadata.name)) for w in around]
    second = claims(owner, selector, after)
    assert (second.adopt, second.release) == ((), ())
    expected = {w.metadata.name for w in (*first.kept, *first.adopt)}
    assert {w.metadata.name for w in second.kept} == expected


def _changed(widget: Widget, change: JSONObject | None) -> Widget:
    if change is None:
        return widget
    metadata = change["metadata"]
    assert isinstance(metadata, dict)
    references = msgspec.convert(metadata["ownerReferences"] or [], tuple[OwnerReference, ...])
    meta = msgspec.structs.replace(widget.metadata, owner_references=references)
    return msgspec.structs.replace(widget, metadata=meta)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (ObjectMeta(uid="u", resource_version="2", annotations={"a": "b"}), True),
        (ObjectMeta(uid="v"), False),
        (ObjectMeta(uid="u", labels={"a": "b"}), False),
        (ObjectMeta(uid="u", deletion_timestamp=EPOCH), False),
        (ObjectMeta(uid="u", owner_references=(reference("q"),)), False),
    ],
)
def test_what_decides_on_a_bond(other: ObjectMeta, same: bool) -> None:
    assert same_bonds(ObjectMeta(uid="u", resource_version="1"), other) is same


# ---- many who claim, on one server, each with a mirror of its own --------------------------------

Delays = Iterator[float]


class SlowApi(Api):
    """Each request takes as long as it is told, there and back, and each write is checked."""

    def __init__(self, clock: LoopClock, delays: Delays) -> None:
        super().__init__(clock)
        self.adopted: list[str] = []
        self.snatched: list[str] = []
        self._delays = delays
        self.server.store.subscribe(self._look, f"widgets.{WIDGETS.group}")

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        await self._clock.sleep(next(self._delays))
        answer = await super().perform(call, read)
        await self._clock.sleep(next(self._delays))
        return answer

    def _look(self, change: Change) -> None:
        if change.previous is None:
            return
        before, after = controller_in(change.previous.body), controller_in(change.stored.body)
        if before != after:
            if before and after:
                self.snatched.append(f"{change.stored.name} from {before} by {after}")
            if after:
                self.adopted.append(after)


def controller_in(obj: JSONObject) -> str:
    metadata = obj.get("metadata")
    references = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    return next((r["uid"] for r in references or () if r.get("controller")), "")


class Claimant:
    """One owner's side: a mirror as old as it happens to be, and what is claimed by it."""

    def __init__(self, name: str, api: SlowApi, clock: LoopClock) -> None:
        self.name = name
        self._api = api
        factory = InformerFactory(api, clock=clock, namespace="ns")
        self.widgets = factory.store(WIDGETS)
        self.sets = factory.store(WIDGET_SETS)
        self._claimer = Claimer(
            OWNERSHIP, self.sets, self.widgets, reader=api, writer=factory.writer
        )

    def look(self) -> None:
        """Let the mirror catch up with the server."""
        for obj in self._api.all(WIDGETS):
            self.widgets.observe(decode_object(WIDGETS, orjson.dumps(obj)))
        for obj in self._api.all(WIDGET_SETS):
            self.sets.observe(decode_object(WIDGET_SETS, orjson.dumps(obj)))

    @property
    def owner(self) -> WidgetSet:
        owner = self.sets.get(f"ns/{self.name}")
        assert owner is not None
        return owner

    async def claim(self) -> None:
        try:
            await self._claimer.claim(self.owner)
        except (KubeError, ExceptionGroup):
            return  # the runtime would come back

    def owned(self) -> set[str]:
        return {w.metadata.name for w in self._claimer.owned(self.owner)}


def body_of(name: str, labels: Mapping[str, str]) -> JSONObject:
    return {"metadata": {"name": name, "labels": dict(labels)}}


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_no_child_is_taken_from_another_in_any_order_of_answers(seed: int) -> None:
    """Two owners that select the same, mirrors that lag, a user who relabels: whatever comes first,
    a child is let go before another adopts it, and in the end each orphan has one owner."""
    chance = random.Random(seed)
    children = [f"w{number}" for number in range(chance.randint(1, 3))]

    async def scenario() -> None:
        clock = LoopClock(EPOCH)
        api = SlowApi(clock, iter(lambda: float(chance.randint(0, 3)), None))
        for name in "pq":
            body = {**body_of(name, {}), "spec": {"selector": {"matchLabels": {"a": "x"}}}}
            await api.create(WIDGET_SETS, body, namespace="ns")
        for child in children:
            await api.create(WIDGETS, body_of(child, {"a": "x"}), namespace="ns")
        claimants = [Claimant(name, api, clock) for name in "pq"]

        async def claim_now_and_then(claimant: Claimant) -> None:
            claimant.look()
            for _ in range(chance.randint(1, 3)):
                await claimant.claim()
                if chance.random() < 0.5:
                    claimant.look()

        async def relabel() -> None:
            for child in children:
                labels: JSONObject = {"a": chance.choice("xy")}
                await api.patch(WIDGETS, child, {"metadata": {"labels": labels}}, namespace="ns")

        async with asyncio.TaskGroup() as group:
            for claimant in claimants:
                group.create_task(claim_now_and_then(claimant))
            group.create_task(relabel())
        for _ in range(2):
            for claimant in claimants:
                claimant.look()
                await claimant.claim()
        assert api.snatched == []
        for claimant in claimants:
            claimant.look()
        everything = claimants[0].widgets.list()
        selected = {w.metadata.name for w in everything if w.metadata.labels == {"a": "x"}}
        first, second = (claimant.owned() for claimant in claimants)
        assert first | second == selected
        assert not first & second
        writes = len(api.writes)
        for claimant in claimants:
            await claimant.claim()
        assert len(api.writes) == writes  # claiming again changes nothing

    play(scenario)


def test_of_two_that_adopt_at_the_same_time_one_is_refused() -> None:
    async def scenario() -> None:
        clock = LoopClock(EPOCH)
        api = SlowApi(clock, iter(lambda: 1.0, None))
        for name in "pq":
            body = {**body_of(name, {}), "spec": {"selector": {"matchLabels": {"a": "x"}}}}
            await api.create(WIDGET_SETS, body, namespace="ns")
        await api.create(WIDGETS, body_of("w", {"a": "x"}), namespace="ns")
        claimants = [Claimant(name, api, clock) for name in "pq"]
        for claimant in claimants:
            claimant.look()
        async with asyncio.TaskGroup() as group:
            for claimant in claimants:
                group.create_task(claimant.claim())
        assert [w.name for w in api.writes if w.verb == "patch"] == ["w", "w"]  # both did try
        assert len(api.adopted) == 1
        assert api.snatched == []

    play(scenario)


def test_a_child_whose_status_alone_was_written_meanwhile_is_adopted_at_once() -> None:
    """Its version is another than when the claim was made; what decides on it is not."""

    async def scenario() -> None:
        clock = LoopClock(EPOCH)
        api = SlowApi(clock, iter(lambda: 1.0, None))
        body = {**body_of("p", {}), "spec": {"selector": {"matchLabels": {"a": "x"}}}}
        await api.create(WIDGET_SETS, body, namespace="ns")
        await api.create(WIDGETS, body_of("w", {"a": "x"}), namespace="ns")
        claimant = Claimant("p", api, clock)
        claimant.look()

        async def painter() -> None:
            await api.patch(WIDGETS, "w", {"color": "red"}, namespace="ns")
            claimant.look()  # before the proof that the owner lives has come back

        async with asyncio.TaskGroup() as group:
            group.create_task(painter())
            group.create_task(claimant.claim())
        assert claimant.owned() == {"w"}
        assert api.adopted == [claimant.owner.metadata.uid]

    play(scenario)
