from __future__ import annotations

from datetime import datetime

import pytest

from mcm.api.machine import MACHINE_SETS, Machine
from mcm.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta, OwnerReference
from mcm.controllers.owning.claims import adoption, claims_of, controller_reference, release
from mcm.controllers.owning.index import children_of, index_by_owner, orphans_for
from mcm.informers.store import Store
from tests.unit.machineset.objects import LABELS, NOW, machine

SELECTOR = LabelSelector(match_labels=LABELS)


def owner(deleted: datetime | None = None) -> ObjectMeta:
    return ObjectMeta(name="set", namespace="ns", uid="set-uid", deletion_timestamp=deleted)


def stray(called: str = "stray", **labels: str) -> Machine:
    return machine(called, owner="", labels=labels)


def test_children_that_are_selected_are_kept_and_the_others_released() -> None:
    kept, lost = machine("a"), machine("b", labels={"name": "other"})
    claims = claims_of(owner(), SELECTOR, children=[kept, lost], orphans=[])
    assert (claims.kept, claims.adopt, claims.release) == ((kept,), (), (lost,))


def test_orphans_that_are_selected_are_adopted() -> None:
    claims = claims_of(owner(), SELECTOR, children=[], orphans=[stray(), stray("x", name="other")])
    assert [m.metadata.name for m in claims.adopt] == ["stray"]


@pytest.mark.parametrize(
    ("selector", "orphan"),
    [
        pytest.param(SELECTOR, machine("a", owner="", deleted=True), id="it is being deleted"),
        pytest.param(SELECTOR, machine("a", owner="someone"), id="it has a controller"),
        pytest.param(LabelSelector(), stray(), id="the selector is empty"),
        pytest.param(None, stray(), id="there is no selector"),
    ],
)
def test_an_orphan_is_left_alone_if(selector: LabelSelector | None, orphan: Machine) -> None:
    claims = claims_of(owner(), selector, children=[], orphans=[orphan])
    assert claims.adopt == ()
    assert claims.kept == ()


def test_an_owner_that_is_being_deleted_starts_and_ends_no_bond() -> None:
    mine, lost = machine("a"), machine("b", labels={"name": "other"})
    claims = claims_of(owner(NOW), SELECTOR, children=[mine, lost], orphans=[stray()])
    assert (claims.kept, claims.adopt, claims.release) == ((mine, lost), (), ())


def test_without_a_selector_all_that_is_controlled_is_kept() -> None:
    lost = machine("b", labels={"name": "other"})
    assert claims_of(owner(NOW), None, children=[lost], orphans=[]).kept == (lost,)


OTHER = OwnerReference(api_version="v1", kind="Other", name="o", uid="other-uid")


def test_adoption_and_release_leave_other_owners_alone() -> None:
    reference = controller_reference(MACHINE_SETS, owner())
    child = ObjectMeta(name="a", owner_references=(OTHER,))
    other = {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "other-uid"}
    mine = {
        "apiVersion": "machine.sapcloud.io/v1alpha1",
        "kind": "MachineSet",
        "name": "set",
        "uid": "set-uid",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert adoption(child, reference) == {"metadata": {"ownerReferences": [other, mine]}}
    both = ObjectMeta(name="a", owner_references=(OTHER, reference))
    assert release(both, "set-uid") == {"metadata": {"ownerReferences": [other]}}
    alone = ObjectMeta(name="a", owner_references=(reference,))
    assert release(alone, "set-uid") == {"metadata": {"ownerReferences": None}}


def test_indexes_find_children_and_orphans_without_a_search() -> None:
    store: Store[Machine] = Store()
    index_by_owner(store)
    index_by_owner(store)  # a second controller on the same store
    children = [machine("a"), machine("b", owner="uid-of-a-former-set-of-that-name")]
    orphans = [stray("s1", zone="1"), stray("s2", zone="2"), stray("s3", name="other")]
    for obj in (*children, *orphans):
        store.put(obj)

    def found(selector: LabelSelector | None, namespace: str = "ns") -> list[str]:
        return sorted(m.metadata.name for m in orphans_for(store, selector, namespace))

    assert [m.metadata.name for m in children_of(store, "set-uid")] == ["a"]
    assert found(SELECTOR) == ["s1", "s2"]
    assert found(LabelSelector(match_labels={**LABELS, "zone": "2"})) == ["s2"]
    by_expression = LabelSelectorRequirement(key="zone", operator="Exists")
    assert found(LabelSelector(match_expressions=(by_expression,))) == ["s1", "s2"]
    assert found(SELECTOR, "elsewhere") == []
    assert found(LabelSelector()) == found(None) == []
