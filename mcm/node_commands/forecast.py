"""Plays a drain on a copy of the cluster, by the engine that would carry it out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Final, final

from mcm.api.core import Node, Pod
from mcm.api.machine import Machine
from mcm.api.names import ANNOTATION_DRAIN_RECORD
from mcm.drain.budgets import Disruptions
from mcm.drain.engine import DrainEngine
from mcm.drain.execution import PodRequests
from mcm.drain.memory import DrainMemory
from mcm.drain.mode import Force
from mcm.drain.observation import DrainStores
from mcm.drain.pass_turns import PassTurns
from mcm.drain.record import Record, read_record
from mcm.drain.request import DrainRequest
from mcm.drain.result import Done, DrainResult, PodStanding, Quiet, TimedOut, Working
from mcm.drain.selection import Left, Remark, arrange, remarks_on
from mcm.drain.volumes import Holding
from mcm.node_commands.model import Asked, Model, ModelClock
from mcm.node_commands.order import Order, without_deadline

_MOST_PASSES: Final = 100_000
_A_SECOND: Final = timedelta(seconds=1)
_SEEN_TO_GO: Final = timedelta(seconds=5)
"""More than a pod has that is deleted by force."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What becomes of a pod that has to go. Moments are the latest that are to be expected.

    ``wave`` counts from 1; None: it is not asked, and waited for until it completes. ``now`` is
    where it stands after the first pass, ``end`` where it stands when nothing moves any more.
    """

    pod: Pod
    wave: int | None
    volumes: tuple[Holding, ...] = ()
    asked: Asked | None = None
    gone: datetime | None = None
    now: PodStanding | None = None
    end: PodStanding | None = None
    by_force: datetime | None = None
    """When it is deleted by force, as nothing else takes it away by then."""

    @property
    def blocked(self) -> bool:
        return self.gone is None or self.by_force is not None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """``over`` is when the Node is empty at the latest; None: never, but by force.

    ``force``: why pods are deleted by force from the beginning, or would be if that were allowed.
    """

    node: Node
    machine: Machine | None
    request: DrainRequest
    at: datetime
    fates: tuple[Fate, ...]
    left: tuple[Left, ...]
    remarks: tuple[Remark, ...]
    over: datetime | None
    force: Force = Force.NONE
    refusal: str = ""
    """Why `mcm drain` would not even begin."""

    @property
    def blockers(self) -> tuple[Fate, ...]:
        return tuple(fate for fate in self.fates if fate.blocked)

    @property
    def blocked(self) -> bool:
        """Tell whether the Node does not get empty, or only by force."""
        return bool(self.blockers or self.refusal)

    @property
    def forced_at(self) -> datetime | None:
        """Return when pods that are left are deleted by force; None: never."""
        if not self.request.may_force:
            return None
        later = self.force in (Force.NONE, Force.TIMEOUT) and not self.request.force_asked
        return self.request.deadline if later else self.at


async def forecast(
    node: Node,
    machine: Machine | None,
    stores: DrainStores,
    order: Order,
    now: datetime,
) -> Forecast:
    """Play the drain to its end, or until nothing moves any more. ``stores`` are used up."""
    return await _Play(node, machine, stores, order, now).told()


@final
class _Play:
    """One drain, played."""

    def __init__(
        self,
        node: Node,
        machine: Machine | None,
        stores: DrainStores,
        order: Order,
        now: datetime,
    ) -> None:
        self._node = node
        self._machine = machine
        self._order = order
        record = read_record(node.metadata.annotations.get(ANNOTATION_DRAIN_RECORD)).record
        request = order.request(node.metadata.name, record, now)
        self._request = request
        self._record = record
        self._clock = ModelClock(now)
        self._model = Model(stores, node.metadata.name, clock=self._clock, limits=request.limits)
        self._before = self._model.observation.snapshot(node.metadata.name, record.handovers)
        self._arrangement = arrange(
            self._before.pods,
            start=request.start,
            settings=request.waves,
            comebacks=record.comebacks,
        )
        disruptions = Disruptions(
            pods=stores.pods.get, budgets=stores.budgets.get, random=Random(0)
        )
        self._engine = DrainEngine(
            self._model.observation,
            PodRequests(
                self._model, disruptions, monotonic=self._clock.monotonic, random=Random(0)
            ),
            clock=self._clock,
            disruptions=disruptions,
            turns=PassTurns(wake=lambda _node: None),
        )

    async def told(self) -> Forecast:
        at, arrangement, request = self._clock.now(), self._arrangement, self._request
        waves = {
            pod.metadata.uid: number
            for number, wave in enumerate(arrangement.waves, 1)
            for pod in wave
        }
        first, last = await self._played()
        over = self._over(last)
        return Forecast(
            node=self._node,
            machine=self._machine,
            request=request,
            at=at,
            fates=tuple(self._fates(arrangement.taken, waves, first, last, at)),
            left=arrangement.left,
            remarks=tuple(remarks_on(arrangement)),
            over=over,
            refusal=self._order.why_refused(arrangement),
            force=last.force if isinstance(last, Done | TimedOut) else Force.NONE,
        )

    def _over(self, last: DrainResult) -> datetime | None:
        """Return when the Node is empty. A forced pass waits for nobody; so this looks on."""
        if not isinstance(last, Done):
            return None
        if last.force is Force.NONE:
            return self._clock.now()
        self._clock.advance(self._clock.now() + _SEEN_TO_GO)
        self._model.catch_up()
        going = [pod.metadata.uid for pod in self._arrangement.by_force]
        if not all(uid in self._model.gone for uid in going):
            return None
        return max((self._model.gone[uid] for uid in going), default=self._clock.now())

    async def _played(self) -> tuple[DrainResult, DrainResult]:
        """Return what the first and the last pass answered."""
        request, record = self._endless(), self._record
        memory = DrainMemory(Random(0))
        result, record = await self._engine.pass_over(request, record, memory)
        first = result
        for _ in range(_MOST_PASSES):
            moment = self._next_moment(result, record)
            if moment is None:
                return first, result
            self._clock.advance(max(moment, self._clock.now() + timedelta(milliseconds=1)))
            self._model.catch_up()
            result, record = await self._engine.pass_over(request, record, memory)
        raise AssertionError(f"the drain of {self._node.metadata.name} does not come to rest")

    def _endless(self) -> DrainRequest:
        """Without force to end it, whatever is stuck shows as such."""
        return self._request if self._request.may_force else without_deadline(self._request)

    def _next_moment(self, result: DrainResult, record: Record) -> datetime | None:
        """Return when to look again; None: nothing will have moved by then."""
        now = self._clock.now()
        match result:
            case Done() | TimedOut():
                return None
            case Quiet(look_again):
                return now + timedelta(seconds=look_again)
            case Working():
                moments = [h.until for h in record.handovers if h.until is not None and not h.over]
                if (event := self._model.next_event) is not None:
                    moments.append(event)
                if moments:
                    return min(moments)
                return self._request.deadline + _A_SECOND if self._request.may_force else None

    def _fates(
        self,
        pods: tuple[Pod, ...],
        waves: Mapping[str, int],
        first: DrainResult,
        last: DrainResult,
        at: datetime,
    ) -> Iterator[Fate]:
        begun, ended = _standings(first), _standings(last)
        for pod in pods:
            uid = pod.metadata.uid
            yield Fate(
                pod=pod,
                wave=waves.get(uid),
                volumes=self._before.volumes.exclusive_of(pod),
                asked=self._model.asked.get(uid),
                gone=self._model.gone.get(uid),
                now=begun.get(uid),
                end=ended.get(uid),
                by_force=self._forced(uid, at),
            )

    def _forced(self, uid: str, at: datetime) -> datetime | None:
        """Return when force took the pod away, unless it did so from the beginning."""
        gone = self._model.gone.get(uid)
        deadline = self._request.deadline
        if not self._request.may_force or gone is None or not at < deadline < gone:
            return None
        return deadline


def _standings(result: DrainResult) -> Mapping[str, PodStanding]:
    if isinstance(result, Working | TimedOut):
        return {standing.uid: standing for standing in result.pods}
    return {}
