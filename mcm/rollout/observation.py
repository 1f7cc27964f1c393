"""Puts a deployment together with the sets and machines that are, or are about to be, its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Generic, final

from mcm.api.machine import Machine, MachineDeployment, MachineSet
from mcm.api.meta import LabelSelector, ObjectMeta, T
from mcm.controllers.deployment.fleet import DeploymentSnapshot, by_age
from mcm.controllers.owning.claims import claims_of


def observed(
    deployment: MachineDeployment, sets: Iterable[MachineSet], machines: Iterable[Machine]
) -> DeploymentSnapshot:
    """Return what the controllers would see, once they have claimed what is theirs.

    ``sets`` and ``machines`` are all of the namespace.
    """
    mine = by_age(_Candidates(sets).of(deployment.metadata, deployment.spec.selector))
    candidates = _Candidates(machines)
    by_set = {s.metadata.uid: candidates.of(s.metadata, s.spec.selector) for s in mine}
    return DeploymentSnapshot.of(deployment, mine, by_set)


@final
class _Candidates(Generic[T]):
    """Objects of one kind by the UID of their controller, so that each is looked at once."""

    def __init__(self, objects: Iterable[T]) -> None:
        self._by_owner: dict[str, list[T]] = defaultdict(list)
        for obj in objects:
            owner = obj.metadata.controller_ref()
            self._by_owner[owner.uid if owner else ""].append(obj)

    def of(self, owner: ObjectMeta, selector: LabelSelector | None) -> Sequence[T]:
        children, orphans = self._by_owner.get(owner.uid, ()), self._by_owner.get("", ())
        claims = claims_of(owner, selector, children=children, orphans=orphans)
        return (*claims.kept, *claims.adopt)
