"""Changes that were decided and may have been written, though the mirror does not show them.

A claim is made in the same breath as the decision, and stays while its write is under way. If no
answer came, it stays on until the mirror shows a newer spec of the set, which tells what became of
the write: that was for the generation it knew, and fails for any other. Memory of this process
only; a successor starts from a list, which shows the truth.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from mcm.api.machine import MachineSet
from mcm.clock import Clock
from mcm.controllers.deployment.surge_pool.usage import PossibleChanges

BELIEVED_FOR: Final = 300.0
"""Seconds after which a write that no mirror has shown yet has not happened: far longer than any
server works on a request, and than a watch may be silent before it is opened anew."""


@final
@dataclass(slots=True, eq=False)
class Claim:
    """``replicas`` for the set ``name``. ``generation`` is the set's when it was decided, None: it
    is to be created. ``lost_at``: when its answer failed to come; None: it may yet.

    With ``selects`` it is a machine of that name, selected for its update in place.
    """

    name: str
    replicas: int = 0
    generation: int | None = None
    selects: bool = False
    lost_at: float | None = None


@final
class Claims:
    """Claims by the key of the deployment that made them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of: dict[str, list[Claim]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._of.values()))

    def add(self, key: str, claims: Iterable[Claim]) -> None:
        if made := list(claims):
            self._of.setdefault(key, []).extend(made)

    def drop(self, key: str, claims: Iterable[Claim]) -> None:
        """They were answered: what was done is seen, and nothing else was."""
        answered = set(claims)
        self._keep(key, [c for c in self._of.get(key, ()) if c not in answered])

    def lose(self, claims: Iterable[Claim]) -> None:
        """No answer came."""
        for claim in claims:
            claim.lost_at = self._clock.monotonic()

    def forget(self, key: str) -> None:
        """The deployment is gone."""
        self._of.pop(key, None)

    def possible(
        self, key: str, sets: Sequence[MachineSet], idle: Collection[str] = ()
    ) -> PossibleChanges:
        """Return what may have become of the deployment's ``sets``, as the mirror shows them, and
        of its machines; those that are ``idle`` are seen to be selected."""
        if key not in self._of:
            return PossibleChanges()
        by_name = {s.metadata.name: s for s in sets}
        self._keep(key, [c for c in self._of[key] if not self._is_settled(c, by_name, idle)])
        claims = self._of.get(key, ())
        left = [c for c in claims if not c.selects]
        return PossibleChanges(
            selected=sum(c.selects and c.name not in idle for c in claims),
            sizes=tuple(
                (by_name[c.name].metadata.uid, c.replicas) for c in left if c.name in by_name
            ),
            created=tuple(
                c.replicas for c in left if c.generation is None and c.name not in by_name
            ),
        )

    def next_expiry(self, keys: Iterable[str]) -> float | None:
        """Return the seconds until the first lost claim of ``keys`` is believed no more."""
        lost = [c.lost_at for key in keys for c in self._of.get(key, ()) if c.lost_at is not None]
        return min(lost) + BELIEVED_FOR - self._clock.monotonic() if lost else None

    def _is_settled(
        self, claim: Claim, sets: Mapping[str, MachineSet], idle: Collection[str]
    ) -> bool:
        if claim.lost_at is None:
            return False  # whoever made it will tell
        if self._clock.monotonic() - claim.lost_at >= BELIEVED_FOR:
            return True
        if claim.selects:
            return claim.name in idle
        present = sets.get(claim.name)
        if claim.generation is None:
            return present is not None
        return present is None or present.metadata.generation > claim.generation

    def _keep(self, key: str, claims: list[Claim]) -> None:
        if claims:
            self._of[key] = claims
        else:
            self._of.pop(key, None)
