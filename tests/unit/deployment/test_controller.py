from __future__ import annotations

import msgspec

from mcm.api.machine import MachineDeployment, MachineDeploymentStatus, MachineSet, MachineSetStatus
from mcm.api.meta import LabelSelector
from mcm.controllers.deployment.fleet import OWNERSHIP
from mcm.controllers.owning.triggers import keys_of_own_change, owners_of_child_change
from mcm.informers import Change, Store
from tests.unit.deployment.objects import deployment, owned_set


def named(name: str, selector: LabelSelector | None) -> MachineDeployment:
    source = deployment()
    meta = msgspec.structs.replace(source.metadata, name=name, uid=f"{name}-uid")
    spec = msgspec.structs.replace(source.spec, selector=selector)
    return msgspec.structs.replace(source, metadata=meta, spec=spec)


def store() -> Store[MachineDeployment]:
    deployments: Store[MachineDeployment] = Store()
    deployments.put(deployment())
    deployments.put(named("twin", LabelSelector(match_labels={"name": "pool"})))
    deployments.put(named("everything", LabelSelector()))
    deployments.put(named("nothing", None))
    return deployments


def keys(old: MachineSet | None, new: MachineSet | None, *, resync: bool = False) -> list[str]:
    return list(owners_of_child_change(OWNERSHIP, Change(old, new, resync=resync), store()))


def orphan(**labels: str) -> MachineSet:
    present = owned_set()
    meta = msgspec.structs.replace(
        present.metadata, owner_references=(), labels={"name": "pool", **labels}
    )
    return msgspec.structs.replace(present, metadata=meta)


def with_status(present: MachineSet) -> MachineSet:
    return msgspec.structs.replace(present, status=MachineSetStatus(replicas=1))


def test_a_set_concerns_its_owner_whatever_happens_to_it() -> None:
    assert keys(None, owned_set()) == ["ns/pool"]
    assert keys(owned_set(), None) == ["ns/pool"]
    assert keys(owned_set(), with_status(owned_set())) == ["ns/pool"]


def test_an_orphan_concerns_whoever_could_adopt_it_when_that_may_have_changed() -> None:
    assert keys(None, orphan()) == ["ns/pool", "ns/twin"]
    assert keys(owned_set(), orphan()) == ["ns/pool", "ns/twin"]
    assert keys(orphan(x="y"), orphan()) == ["ns/pool", "ns/twin"]
    assert keys(orphan(), with_status(orphan())) == []
    assert keys(orphan(), None) == []


def test_a_repetition_or_a_stranger_concerns_nobody() -> None:
    assert keys(owned_set(), owned_set(), resync=True) == []
    former = owned_set()
    ref = msgspec.structs.replace(former.metadata.owner_references[0], uid="former-uid")
    meta = msgspec.structs.replace(former.metadata, owner_references=(ref,))
    assert keys(None, msgspec.structs.replace(former, metadata=meta)) == []


def test_a_deployment_is_woken_by_its_spec_and_metadata_but_not_by_its_status() -> None:
    old = deployment()
    reported = deployment(status=MachineDeploymentStatus(replicas=3))
    assert keys_of_own_change(Change(old, reported)) == ()
    assert keys_of_own_change(Change(None, old)) == ("ns/pool",)
    assert keys_of_own_change(Change(old, deployment(5))) == ("ns/pool",)
    assert keys_of_own_change(Change(old, deployment(annotations={"a": "b"}))) == ("ns/pool",)
    assert keys_of_own_change(Change(old, old, resync=True)) == ("ns/pool",)
