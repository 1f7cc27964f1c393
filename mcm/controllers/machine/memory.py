"""What is remembered of machines between passes; a restart loses it, and with it only speed."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import final

from mcm.controllers.machine.backoff import MachineBackoff
from mcm.controllers.machine.creation.deadline import FirstSight
from mcm.controllers.machine.creation.known_tokens import KnownTokens
from mcm.controllers.machine.creation.obstacles import Obstacles
from mcm.controllers.machine.creation.shared_backoff import SharedBackoff
from mcm.controllers.machine.drains_under_way import DrainsUnderWay
from mcm.controllers.machine.hot_update.pace import HotUpdatePace
from mcm.controllers.machine.node.changes import Refusal
from mcm.controllers.provider import Places


@final
@dataclass(frozen=True, slots=True)
class Detachment:
    """What a deletion has detached from its Node, as it was when that began.

    ``attachments`` are UIDs. What the cluster attaches meanwhile, for a pod that no drain takes
    away, is not ours to fight over. A restart begins anew, with what is left then.
    """

    since: datetime
    attachments: frozenset[str]
    volumes: int
    """How many, whether or not there is an attachment for each."""
    by_taint: bool
    """The Node is given up, so that the cluster detaches them; else attachments are deleted."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """All of it, to be forgotten together. Tokens, drains, refusals and lost Nodes go by
    machine UID."""

    backoff: MachineBackoff
    places: Places
    hot_updates: HotUpdatePace
    tokens: KnownTokens = field(default_factory=KnownTokens)
    drains: DrainsUnderWay = field(default_factory=DrainsUnderWay)
    shared: SharedBackoff
    obstacles: Obstacles = field(default_factory=Obstacles)
    first_sights: dict[str, FirstSight] = field(default_factory=dict)
    told_timeouts: set[str] = field(default_factory=set)
    """Machines of which it was told that their creation timeout cannot be read."""
    detachments: dict[str, Detachment] = field(default_factory=dict)
    """What forced deletions wait for, by machine UID."""
    detachments_after_vm: dict[str, Detachment] = field(default_factory=dict)
    """What waits to leave the Node of a VM that is deleted, by machine UID."""
    refusals: dict[str, dict[str, Refusal]] = field(default_factory=dict)
    """What servers refused to write on a machine's Node."""
    held_since: dict[str, float] = field(default_factory=dict)
    """Since when (monotonic) a machine that could run waits for its Node to be written."""
    lost_node: set[str] = field(default_factory=set)
    """Machines whose Node object was deleted under them."""

    unwritable_node_names: dict[str, str] = field(default_factory=dict)
    """Names of Nodes that no label on their machine can hold."""
    token_failures: dict[str, int] = field(default_factory=dict)
    """How often the bootstrap token of a machine that goes could not be deleted."""

    deleted_vms: set[str] = field(default_factory=set)
    """Machines of whose VM's deletion it was told; where that is not recorded, it is done again."""

    def forget(self, uid: str) -> None:
        """The machine is gone."""
        self.unwritable_node_names.pop(uid, None)
        self.token_failures.pop(uid, None)
        self.backoff.forget(uid)
        self.hot_updates.forget(uid)
        self.tokens.pop(uid, None)
        self.drains.pop(uid, None)
        self.detachments.pop(uid, None)
        self.detachments_after_vm.pop(uid, None)
        self.refusals.pop(uid, None)
        self.held_since.pop(uid, None)
        self.lost_node.discard(uid)
        self.obstacles.forget(uid)
        self.first_sights.pop(uid, None)
        self.told_timeouts.discard(uid)
        self.deleted_vms.discard(uid)
