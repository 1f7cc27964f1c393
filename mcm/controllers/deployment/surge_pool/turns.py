"""Finds out, for a pass of one deployment, what its surge pool leaves it, and claims what it takes.

Nothing here awaits between looking and claiming.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import final

from mcm.api.machine import MachineDeployment
from mcm.client.errors import AlreadyExists, KubeError
from mcm.clock import Clock
from mcm.controllers.deployment.decision import Decision, next_step
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.sizes.bounds import Bounds
from mcm.controllers.deployment.surge_pool.budget import Budget, Share, budget_of, share_of
from mcm.controllers.deployment.surge_pool.claims import Claim, Claims
from mcm.controllers.deployment.surge_pool.membership import index_by_pool, others_of, pool_of
from mcm.controllers.deployment.surge_pool.usage import (
    Usage,
    total_desired,
    usage_in,
)
from mcm.controllers.deployment.templates import set_name
from mcm.controllers.owning.outcome import may_have_happened
from mcm.informers.store import Store


@final
@dataclass(frozen=True, slots=True)
class Turn:
    """What the pool means for one pass: its ``budget``, this member's ``share``, and whether the
    member ``waits``: it could go on if it were alone. ``again_in`` is in seconds."""

    pool: str
    budget: Budget
    share: Share
    waits: bool = False
    again_in: float | None = None

    @property
    def bounds(self) -> Bounds:
        return self.share.bounds


@final
@dataclass(slots=True)
class WritesUnderWay:
    """Writes of what was claimed. Whoever makes them tells their ``errors``."""

    errors: list[KubeError] = field(default_factory=list)


@final
class PoolTurns:
    """``look`` takes a snapshot of a deployment, ``is_valid`` tells whether it is acted on, and
    ``wake`` puts deployments' keys into the queue."""

    def __init__(
        self,
        deployments: Store[MachineDeployment],
        look: Callable[[MachineDeployment], DeploymentSnapshot],
        clock: Clock,
        *,
        is_valid: Callable[[MachineDeployment], bool],
        wake: Callable[[Iterable[str]], None],
    ) -> None:
        index_by_pool(deployments)
        self._deployments = deployments
        self._look = look
        self._is_valid = is_valid
        self._wake = wake
        self._claims = Claims(clock)
        self._noted: dict[str, Usage] = {}

    def decide(self, snapshot: DeploymentSnapshot, now: datetime) -> tuple[Decision, Turn | None]:
        """Decide the next step, within what the deployment's pool leaves it, if it is of one.

        Raises :class:`mcm.controllers.deployment.sizes.bounds.OutOfBounds` rather than harm.
        """
        deployment = snapshot.deployment
        pool = pool_of(deployment)
        if not pool:
            return next_step(snapshot, now), None
        others = others_of(deployment, self._deployments)
        usages = [self._usage_of(other, now) for other in others]
        me = usage_in(snapshot, now, valid=self._is_valid(deployment))
        self._note(deployment, me)
        specs = [d.spec for d in (deployment, *others) if self._is_valid(d)]
        budget = budget_of(specs, total_desired((me, *usages)))
        share = share_of(budget, me, usages)
        decision = next_step(snapshot, now, share.bounds)
        alone = next_step(snapshot, now, share.alone)
        waits = not _goes_on(decision) and _goes_on(alone)
        keys = [other.metadata.key for other in others]
        again_in = self._claims.next_expiry(keys) if waits else None
        return decision, Turn(pool, budget, share, waits, again_in)

    @contextmanager
    def claiming(
        self, snapshot: DeploymentSnapshot, decision: Decision
    ) -> Iterator[WritesUnderWay]:
        """Claim what ``decision`` takes, for as long as the context lasts, and for as long after
        it as nobody knows what became of its writes."""
        deployment, writes = snapshot.deployment, WritesUnderWay()
        if not pool_of(deployment):
            yield writes
            return
        key, claims = deployment.metadata.key, tuple(_claims_of(snapshot, decision))
        self._claims.add(key, claims)
        answered = refused = False  # as it stays if this is cancelled
        try:
            yield writes
            answered, refused = not any(map(_is_open, writes.errors)), bool(writes.errors)
        except KubeError as error:
            answered, refused = not _is_open(error), True
            raise
        finally:
            if answered:
                self._claims.drop(key, claims)
            else:
                self._claims.lose(claims)
            if claims and answered and refused:  # no change of a set tells those who wait for it
                self._wake(d.metadata.key for d in others_of(deployment, self._deployments))

    def forget(self, key: str) -> None:
        """The deployment is gone, and so is what it claimed."""
        self._claims.forget(key)
        self._noted.pop(key, None)

    def _note(self, deployment: MachineDeployment, usage: Usage) -> None:
        """Wake the others once the member takes another part: not all that changes it, such as a
        mark on a Node, shows on a set."""
        before = self._noted.get(deployment.metadata.key)
        self._noted[deployment.metadata.key] = usage
        if before not in (None, usage):
            self._wake(d.metadata.key for d in others_of(deployment, self._deployments))

    def _usage_of(self, deployment: MachineDeployment, now: datetime) -> Usage:
        """Count what another member takes, all that it may have written included."""
        snapshot = self._look(deployment)
        idle = snapshot.in_place.idle if snapshot.in_place is not None else ()
        claimed = self._claims.possible(deployment.metadata.key, snapshot.sets, idle)
        return usage_in(snapshot, now, valid=self._is_valid(deployment), claimed=claimed)


def _goes_on(decision: Decision) -> bool:
    return bool(decision.targets or decision.create or decision.select)


def _claims_of(snapshot: DeploymentSnapshot, decision: Decision) -> Iterator[Claim]:
    if decision.create:
        deployment = snapshot.deployment
        template, collisions = deployment.spec.template, deployment.status.collision_count
        name = set_name(deployment.metadata.name, template, collisions)
        yield Claim(name, decision.create, generation=None)
    for machine_set in snapshot.sets:
        meta, size = machine_set.metadata, decision.targets.get(machine_set.metadata.uid)
        if size is not None and size != machine_set.spec.replicas:
            yield Claim(meta.name, size, generation=meta.generation)
    for machine in sorted(decision.select):
        yield Claim(machine, selects=True)


def _is_open(error: KubeError) -> bool:
    """Whether the write may have been carried out. A set that exists already was made by a creation
    whose answer got lost, with a size that nobody knows yet."""
    return may_have_happened(error) or isinstance(error, AlreadyExists)
