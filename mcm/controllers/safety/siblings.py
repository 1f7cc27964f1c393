"""Asks for machines of namespaces with managers of their own, which may own VMs that we find."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from mcm.api.machine import MACHINES, Machine
from mcm.client.verbs import ObjectReader
from mcm.controllers.safety.orphans import Vm, is_claimed

_PAGE = 500


@final
@dataclass(frozen=True, slots=True)
class Claims:
    """What the machines that were found claim."""

    by_name: Mapping[str, Sequence[Machine]]
    provider_ids: frozenset[str]
    unreadable: bool

    def hold(self, vm: Vm) -> bool:
        """Tell whether one of them may own ``vm``. One that cannot be read may own any."""
        named = self.by_name.get(vm.machine_name, ())
        claimed = any(is_claimed(vm, machine) for machine in named)
        return self.unreadable or claimed or vm.provider_id in self.provider_ids


@final
class Siblings:
    """Reads past all mirrors: these namespaces are not mirrored here."""

    def __init__(self, reader: ObjectReader, namespaces: Sequence[str]) -> None:
        self._reader = reader
        self._namespaces = tuple(namespaces)

    async def claims(self) -> Claims:
        """Return what their machines claim now. Raises what the client raises."""
        by_name, ids, unreadable = defaultdict[str, list[Machine]](list), set[str](), False
        for namespace in self._namespaces:
            async for machines, bad in self._pages(namespace):
                unreadable = unreadable or bad
                for machine in machines:
                    by_name[machine.metadata.name].append(machine)
                    ids.add(machine.spec.provider_id)
        return Claims(by_name, frozenset(ids - {""}), unreadable)

    async def _pages(self, namespace: str) -> AsyncIterator[tuple[Sequence[Machine], bool]]:
        token = ""
        while True:
            page = await self._reader.list_page(
                MACHINES, namespace=namespace, limit=_PAGE, continue_token=token
            )
            yield page.items, bool(page.bad)
            token = page.continue_token
            if not token:
                return
