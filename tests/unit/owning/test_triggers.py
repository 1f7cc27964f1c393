"""Nothing that a change gives an owner to do is missed, and a status wakes nobody."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.meta import LabelSelector, ObjectMeta, OwnerReference
from mcm.controllers.owning import controller_reference
from mcm.controllers.owning.claims import claims_of
from mcm.controllers.owning.triggers import keys_of_own_change, owners_of_child_change
from mcm.informers import Change, Store
from tests.unit.machineset.cluster import EPOCH
from tests.unit.owning.widgets import (
    OWNERSHIP,
    WIDGET_SETS,
    Widget,
    WidgetSet,
    WidgetSetSpec,
    WidgetSetStatus,
)

LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
SELECTORS = st.one_of(st.none(), LABELS.map(lambda m: LabelSelector(match_labels=m)))
NAMES = ("p", "q", "r")


def reference(name: str, uid: str) -> OwnerReference:
    return controller_reference(WIDGET_SETS, ObjectMeta(name=name, namespace="ns", uid=uid))


OWNERS = st.sampled_from((None, *(reference(n, f"{n}-uid") for n in NAMES), reference("p", "old")))


@st.composite
def states(draw: st.DrawFn) -> Widget:
    owner = draw(OWNERS)
    meta = ObjectMeta(
        name="w",
        namespace="ns",
        uid="w-uid",
        labels=draw(LABELS),
        owner_references=() if owner is None else (owner,),
        deletion_timestamp=draw(st.sampled_from((None, None, EPOCH))),
    )
    return Widget(metadata=meta, color=draw(st.sampled_from(("red", "blue"))))


@st.composite
def sets(draw: st.DrawFn) -> list[WidgetSet]:
    return [
        WidgetSet(
            metadata=ObjectMeta(name=name, namespace="ns", uid=f"{name}-uid", resource_version="1"),
            spec=WidgetSetSpec(selector=draw(SELECTORS)),
        )
        for name in NAMES
    ]


def to_do(owner: WidgetSet, widget: Widget | None) -> tuple[bool, bool, bool]:
    """Whether the owner counts the widget, should adopt it, should release it."""
    around = () if widget is None else (widget,)
    claims = claims_of(owner.metadata, owner.spec.selector, children=around, orphans=around)
    return bool(claims.kept), bool(claims.adopt), bool(claims.release)


@given(old=st.none() | states(), new=st.none() | states(), owners=sets())
def test_whoever_has_something_new_to_do_is_woken(
    old: Widget | None, new: Widget | None, owners: list[WidgetSet]
) -> None:
    if old is None and new is None:
        return
    store: Store[WidgetSet] = Store()
    for owner in owners:
        store.put(owner)
    woken = set(owners_of_child_change(OWNERSHIP, Change(old, new), store))
    for owner in owners:
        counted, adopts, releases = to_do(owner, new)
        counted_before, adopts_before, releases_before = to_do(owner, old)
        if counted != counted_before or releases > releases_before or adopts > adopts_before:
            assert owner.metadata.key in woken
    assert woken <= {owner.metadata.key for owner in owners}


@given(old=states(), owners=sets())
def test_a_repetition_wakes_nobody(old: Widget, owners: list[WidgetSet]) -> None:
    store: Store[WidgetSet] = Store()
    for owner in owners:
        store.put(owner)
    assert not list(owners_of_child_change(OWNERSHIP, Change(old, old, resync=True), store))


@given(owner=sets().map(lambda found: found[0]), replicas=st.integers(0, 3), version=st.text())
def test_a_status_wakes_nobody_and_all_else_its_owner(
    owner: WidgetSet, replicas: int, version: str
) -> None:
    meta = msgspec.structs.replace(owner.metadata, resource_version=version)
    status = WidgetSetStatus(replicas=replicas)
    reported = msgspec.structs.replace(owner, metadata=meta, status=status)
    assert keys_of_own_change(Change(owner, reported)) == ()
    scaled = msgspec.structs.replace(
        reported, spec=msgspec.structs.replace(owner.spec, replicas=owner.spec.replicas + 1)
    )
    labelled = msgspec.structs.replace(
        reported, metadata=msgspec.structs.replace(meta, labels={"c": "z"})
    )
    for changed in (scaled, labelled):
        assert keys_of_own_change(Change(owner, changed)) == ("ns/p",)
