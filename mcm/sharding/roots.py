"""Where objects belong: the labels of the deployment or set above them, else their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, final

from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineDeployment,
    MachineSet,
)
from mcm.api.meta import KubeObject, ObjectMeta, Resource
from mcm.controllers.owning import children_of, index_by_owner
from mcm.informers import InformerFactory, Store
from mcm.sharding.membership import Standing

DIVIDED: Final[Sequence[Resource[Machine] | Resource[MachineSet] | Resource[MachineDeployment]]] = (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
)
"""The kinds that shards divide among them, owners first."""
_PLURALS: Final = {resource.kind: resource.plural for resource in DIVIDED}


@final
class Roots:
    """Reads the mirrors of one namespace."""

    def __init__(self, informers: InformerFactory) -> None:
        self._deployments: Store[MachineDeployment] = informers.store(MACHINE_DEPLOYMENTS)
        self._sets: Store[MachineSet] = informers.store(MACHINE_SETS)
        self._machines: Store[Machine] = informers.store(MACHINES)
        index_by_owner(self._sets)
        index_by_owner(self._machines)
        self._stores: Mapping[
            str, Store[Machine] | Store[MachineSet] | Store[MachineDeployment]
        ] = {
            MACHINE_DEPLOYMENTS.plural: self._deployments,
            MACHINE_SETS.plural: self._sets,
            MACHINES.plural: self._machines,
        }
        self._owners: Mapping[str, Store[MachineSet] | Store[MachineDeployment]] = {
            MACHINE_SETS.kind: self._sets,
            MACHINE_DEPLOYMENTS.kind: self._deployments,
        }

    def store(self, plural: str) -> Store[Machine] | Store[MachineSet] | Store[MachineDeployment]:
        """Return the mirror of one of :data:`DIVIDED`."""
        return self._stores[plural]

    def standing_of(self, obj: KubeObject) -> Standing:
        """Return where ``obj`` belongs."""
        meta = obj.metadata
        for _ in DIVIDED:  # no longer chain is made by anybody
            ref = meta.controller_ref()
            if ref is None:
                return Standing(meta.labels)
            store = self._owners.get(ref.kind)
            if store is None:
                return Standing(meta.labels)  # a controller of somebody else's: it ends here
            owner = store.get(f"{meta.namespace}/{ref.name}")
            if owner is None or owner.metadata.uid != ref.uid:
                return Standing(meta.labels, certain=False)
            meta = owner.metadata
        return Standing(meta.labels, certain=False)

    def top_of(self, plural: str, obj: KubeObject) -> tuple[str, ObjectMeta]:
        """Return resource and metadata of the last owner above ``obj`` that is seen, else its."""
        meta = obj.metadata
        for _ in DIVIDED:
            ref = meta.controller_ref()
            store = self._owners.get(ref.kind) if ref is not None else None
            owner = store.get(f"{meta.namespace}/{ref.name}") if store and ref else None
            if owner is None or ref is None or owner.metadata.uid != ref.uid:
                break
            plural, meta = _PLURALS[ref.kind], owner.metadata
        return plural, meta

    def below(self, obj: KubeObject) -> Iterator[tuple[str, str]]:
        """Yield resource and key of all that ``obj`` is above of."""
        uid = obj.metadata.uid
        for machine in children_of(self._machines, uid):
            yield MACHINES.plural, machine.metadata.key
        for owned in children_of(self._sets, uid):
            yield MACHINE_SETS.plural, owned.metadata.key
            yield from self.below(owned)

    def every(self) -> Iterator[tuple[str, KubeObject]]:
        """Yield resource and object of all that is divided."""
        for resource in DIVIDED:
            for obj in self.store(resource.plural).list():
                yield resource.plural, obj
