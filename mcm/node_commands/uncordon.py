"""Undoes what ``mcm drain`` did to a Node, and says whose a cordon is that it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

import msgspec

from mcm.api.core import NODES
from mcm.cluster_commands.running import Failed
from mcm.cluster_commands.writing import tried_anew
from mcm.node_commands.clusters import Clusters
from mcm.node_commands.competence import why_not_uncordon
from mcm.node_commands.drain_mark import lifted
from mcm.node_commands.node_name import Named


@final
@dataclass(frozen=True, slots=True)
class Undone:
    """What came of it: ``changed`` if something was ours to undo, ``left`` by whom the Node stays
    cordoned; empty if it does not."""

    node: str
    changed: bool
    left: str = ""

    def __str__(self) -> str:
        if self.left:
            forgotten = "mcm's record was removed; it " if self.changed else ""
            return (
                f"node/{self.node} {forgotten}stays cordoned, {self.left}: "
                f"`kubectl uncordon {self.node}` lifts that"
            )
        return f"node/{self.node} {'uncordoned' if self.changed else 'already uncordoned'}"


async def uncordon(clusters: Clusters, named: Named) -> Undone:
    """Undo it. Raises Failed where a controller needs the cordon, else what the client raises."""
    name = await clusters.name_of(named)
    return await tried_anew(lambda: _attempt(clusters, name))


async def _attempt(clusters: Clusters, name: str) -> Undone:
    node = await clusters.node(name)
    if obstacle := why_not_uncordon(node, await clusters.machine_of(node)):
        raise Failed(obstacle)
    change = lifted(node)
    if change is not None:
        node = await clusters.target.patch(NODES, name, change)
    left = await _by_whom(clusters, name) if node.spec.unschedulable else ""
    return Undone(name, change is not None, left)


# ---- who cordons -----------------------------------------------------------------------------


class _Managed(msgspec.Struct, frozen=True, rename="camel"):
    """Which client wrote which fields, as the server remembers it."""

    manager: str = ""
    fields_v1: dict[str, object] = msgspec.field(name="fieldsV1", default={})


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    managed_fields: tuple[_Managed, ...] = ()


class _Raw(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


_UNKNOWN: Final = "but not by mcm"


async def _by_whom(clusters: Clusters, name: str) -> str:
    body = await clusters.target.get_raw(NODES.path(name=name))
    return cordoned_by(body)


def cordoned_by(node: bytes) -> str:
    """Say which client set ``spec.unschedulable``, if the server tells."""
    try:
        managed = msgspec.json.decode(node, type=_Raw).metadata.managed_fields
    except msgspec.DecodeError:
        return _UNKNOWN
    for entry in managed:
        spec = entry.fields_v1.get("f:spec")
        if isinstance(spec, dict) and "f:unschedulable" in spec and entry.manager:
            return f"by {entry.manager}"
    return _UNKNOWN
