"""One volume that a pod holds: its claim, its names, and why nobody waits for it, if so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """``claim`` is ``namespace/name``; ``volume`` the PersistentVolume's name, empty if there is
    none. ``names``: how a Node's status calls it."""

    claim: str
    volume: str = ""
    attacher: str = ""
    names: tuple[str, ...] = ()
    ephemeral: bool = False
    """The claim is the pod's own and goes with it: no successor uses it."""
    untracked: str = ""
    """Why nobody waits for this volume; empty: it is exclusively attached to the Node."""

    @property
    def tracked(self) -> bool:
        return not self.untracked
