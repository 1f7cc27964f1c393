"""The volumes of a Node's pods on their way elsewhere: what is held, how far it is, who is next.

All of it is pure. :class:`NodeVolumes` is what was true at one moment, put together by
:func:`node_volumes` or from mirrors by :class:`VolumeStores`. A :class:`Handover` is opened when a
pod is asked to leave and advanced in each pass until it is over; :class:`Lanes` say who may be
asked meanwhile. A volume counts only if it is exclusively attached to the Node: what several Nodes
may hold, and what is mounted without being attached, nobody waits for.
"""

from __future__ import annotations

from mcm.drain.volumes.claims import ClaimUse, claim_keys_of, claims_of
from mcm.drain.volumes.handover import Handover, Stage, advanced, of_nobody, opened
from mcm.drain.volumes.handover_record import (
    UnreadableHandoverError,
    handover_json,
    read_handover,
)
from mcm.drain.volumes.holding import Holding
from mcm.drain.volumes.lane_widths import LaneWidths
from mcm.drain.volumes.lanes import Lanes
from mcm.drain.volumes.node_volumes import NodeVolumes, is_shareable, node_volumes
from mcm.drain.volumes.volume_stores import VolumeStores, attachments_on, index_attachments

__all__ = [
    "ClaimUse",
    "Handover",
    "Holding",
    "LaneWidths",
    "Lanes",
    "NodeVolumes",
    "Stage",
    "UnreadableHandoverError",
    "VolumeStores",
    "advanced",
    "attachments_on",
    "claim_keys_of",
    "claims_of",
    "handover_json",
    "index_attachments",
    "is_shareable",
    "node_volumes",
    "of_nobody",
    "opened",
    "read_handover",
]
