"""Drains a Node for a person: marks it, lets the engine pass over it, and says how that ended."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Final, TypeAlias, final

from mcm.api.core import NODES, PODS, Node
from mcm.api.names import ANNOTATION_DRAIN_RECORD
from mcm.client.errors import KubeError
from mcm.clock import Clock
from mcm.cluster_commands.connecting import read_all
from mcm.cluster_commands.running import Failed
from mcm.cluster_commands.writing import tried_anew
from mcm.drain.budgets import Disruptions
from mcm.drain.engine import QUIET_FOR, DrainEngine
from mcm.drain.execution import Answered, PodRequests, Verb
from mcm.drain.memory import DrainMemory
from mcm.drain.mode import Force
from mcm.drain.observation import Observation
from mcm.drain.pass_turns import PassTurns
from mcm.drain.record import Record, read_record, record_text
from mcm.drain.request import DrainRequest
from mcm.drain.result import Done, DrainResult, PodStanding, Quiet, TimedOut, Working
from mcm.drain.selection import arrange
from mcm.drain.summary import in_words
from mcm.drain.surge import Surges
from mcm.drain.volumes import Handover
from mcm.node_commands import drain_mark
from mcm.node_commands.clusters import Clusters
from mcm.node_commands.competence import why_not_drain
from mcm.node_commands.marked_node import MarkedNode
from mcm.node_commands.mirrors import Mirrors
from mcm.node_commands.order import Order
from mcm.node_commands.progress import Display, Progress
from mcm.wording import first_few

_LONGEST_WAIT: Final = 10.0
"""Seconds from one look at the mirrors to the next, which costs no request."""
_SHORTEST_LOOK: Final = 30.0
"""Seconds for a first look at the cluster, however little time is left."""
_SEEN_TO_GO: Final = 60.0
"""Seconds in which pods that were deleted by force are to be gone."""


@final
@dataclass(frozen=True, slots=True)
class Interference:
    """Why the run ends though the Node is not empty. ``ours``: the mark on the Node still is."""

    text: str
    ours: bool = True


_Ending: TypeAlias = DrainResult | Interference


@final
class DrainByHand:
    """One run of ``mcm drain``, by ``by``."""

    def __init__(
        self,
        clusters: Clusters,
        name: str,
        order: Order,
        *,
        by: str,
        take_over: bool,
        display: Display,
        clock: Clock,
        random: Random,
    ) -> None:
        self._clusters = clusters
        self._client = clusters.target
        self._name = name
        self._order = order
        self._by = by
        self._take_over = take_over
        self._display = display
        self._clock = clock
        self._random = random
        self._node = MarkedNode(clusters.target, name, f"{random.getrandbits(64):016x}")
        self._changed = asyncio.Event()
        self._to_settle: set[str] = set()
        """The keys of Deployments."""
        self._unwritten = ""
        """Why the record could not be written the last time; empty: it was."""
        self._asked: dict[str, str] = {}
        """The keys of pods that were asked and are not known to be gone, by UID."""

    async def run(self) -> None:
        """Drain it. Raises Failed if it was refused or did not end, else what the client raises."""
        request, record = await tried_anew(self._begin)
        try:
            ending = await self._drained(request, record)
        except BaseException as error:
            await self._node.leave()
            if isinstance(error, asyncio.CancelledError):
                self._display.say(
                    f"interrupted: `mcm drain {self._name}` goes on, `mcm uncordon {self._name}` "
                    "undoes what was done to the node"
                )
            raise
        await self._end(request, ending)

    # ---- begin and end ---------------------------------------------------------------------------

    async def _begin(self) -> tuple[DrainRequest, Record]:
        node = await self._clusters.node(self._name)
        machine = await self._clusters.machine_of(node)
        if obstacle := why_not_drain(node, machine, by=self._by, take_over=self._take_over):
            raise Failed(obstacle)
        read = read_record(node.metadata.annotations.get(ANNOTATION_DRAIN_RECORD))
        now = self._clock.now()
        request = self._order.request(self._name, read.record, now)
        pods = await read_all(self._client, PODS, field_selector=f"spec.nodeName={self._name}")
        if refusal := self._order.why_refused(arrange(pods, start=request.start)):
            raise Failed(refusal)
        record = replace(read.record, start=request.start, deadline=request.deadline)
        text = record_text(record)
        patch = drain_mark.begun(node, by=self._by, run=self._node.run, now=now, record=text)
        await self._client.patch(NODES, self._name, patch)
        self._display.say(_begun(node, read.trouble))
        return request, record

    async def _end(self, request: DrainRequest, ending: _Ending) -> None:
        match ending:
            case Interference(ours=ours, text=text):
                if ours:
                    await self._node.leave()
                raise Failed(text)
            case Done(force=force, refusals=refusals):
                if refusals:
                    await self._node.leave()
                    raise Failed(f"pods could not be deleted: {refusals}")
                await self._node.finish()
                how = f" by force{_because(force)}" if force is not Force.NONE else ""
                self._display.say(f"node/{self._name} drained{how}")
            case TimedOut(force=force, pods=pods):
                await self._node.leave()
                raise Failed(_given_up(self._name, force, _words(pods, request)))
            case Quiet() | Working():
                raise AssertionError("the drain has not ended")

    async def _kept(self, record: Record, written: Record) -> Record:
        """Write the record if it says more than what is written; return what is written now."""
        if not record.says_more_than(written):
            return written
        try:
            await self._node.keep(record_text(record))
        except KubeError as error:
            if str(error) != self._unwritten:
                self._display.say(f"the drain's record could not be written: {error}")
            self._unwritten = str(error)
            return written
        self._unwritten = ""
        return record

    # ---- passes ----------------------------------------------------------------------------------

    async def _drained(self, request: DrainRequest, record: Record) -> _Ending:
        async with asyncio.TaskGroup() as group:
            mirrors = Mirrors(
                self._client,
                self._name,
                clock=self._clock,
                changed=self._changed.set,
                group=group,
            )
            surges = self._surges(mirrors)
            try:
                await self._started(mirrors, request)
                return await self._passes(mirrors, surges, request, record)
            finally:
                mirrors.stop()
                await self._put_back(surges)

    async def _started(self, mirrors: Mirrors, request: DrainRequest) -> None:
        """Have all mirrored. Raises Failed if that is not done by the deadline."""
        left = (request.deadline - self._clock.now()).total_seconds()
        try:
            async with asyncio.timeout(max(_SHORTEST_LOOK, left)):
                await mirrors.start()
        except TimeoutError:
            raise Failed(f"node {self._name} could not be observed in time") from None

    async def _passes(
        self, mirrors: Mirrors, surges: Surges, request: DrainRequest, record: Record
    ) -> _Ending:
        engine, memory = self._engine(mirrors, surges), DrainMemory(self._random)
        written = record
        seen: set[str] = set()
        quiet_at = self._clock.monotonic() + QUIET_FOR
        while True:
            self._changed.clear()
            mirrors.widen()
            if (interference := self._interference(mirrors)) is not None:
                return interference
            result, record = await engine.pass_over(request, record, memory)
            written = await self._kept(record, written)
            await self._settle(surges)
            for remark in memory.take_remarks():
                self._display.say(remark)
            pods = engine.observation.snapshot(self._name).pods
            going = {p.metadata.uid for p in arrange(pods, start=request.start).taken}
            seen |= going
            self._tell_gone(going)
            match result:
                case Working(pods=standings, look_again=wait, blind=blind):
                    self._display.show(
                        Progress(
                            node=self._name,
                            standings=standings,
                            gone=len(seen - going),
                            deadline=request.deadline,
                            by_force=request.may_force,
                            blind=blind,
                        )
                    )
                    await self._wait(wait)
                case Quiet(look_again=wait):
                    await self._wait(wait)
                case Done(force=force) if force is not Force.NONE:
                    return await self._seen_to_go(engine, request) or result
                case Done() if (left := quiet_at - self._clock.monotonic()) > 0:
                    await self._clock.sleep(left)
                case Done() | TimedOut():
                    return result

    def _surges(self, mirrors: Mirrors) -> Surges:
        return Surges(
            self._client,
            mirrors.stores.pods,
            clock=self._clock,
            blind=mirrors.staleness.pods,
            marked=lambda key, seconds: None if seconds else self._to_settle.add(key),
            wake=lambda _node: self._changed.set(),
        )

    async def _settle(self, surges: Surges) -> None:
        """Put the Deployments back whose pod is on its way out; what fails is done in the end."""
        while self._to_settle:
            with suppress(KubeError):
                await surges.settle(self._to_settle.pop())

    async def _put_back(self, surges: Surges) -> None:
        """Have Deployments be again what they were. What fails here, a manager does later on."""
        try:
            await surges.put_back()
        except KubeError as error:
            self._display.say(f"a Deployment could not be put back: {error}")

    def _engine(self, mirrors: Mirrors, surges: Surges) -> DrainEngine:
        stores = mirrors.stores
        disruptions = Disruptions(
            pods=stores.pods.get,
            budgets=stores.budgets.get,
            random=self._random,
            freed=lambda _namespace: self._changed.set(),
        )
        mirrors.tell(disruptions, surges)
        requests = PodRequests(
            self._client,
            disruptions,
            monotonic=self._clock.monotonic,
            random=self._random,
            told=self._tell,
        )
        return DrainEngine(
            Observation(stores, mirrors.staleness),
            requests,
            clock=self._clock,
            disruptions=disruptions,
            turns=PassTurns(wake=lambda _node: self._changed.set()),
            witness=self,
            surges=surges,
        )

    async def _wait(self, seconds: float | None) -> None:
        """Return when something has changed, or after so many seconds; soon in any case, to notice
        that nothing is heard any more."""
        with suppress(TimeoutError):
            async with asyncio.timeout(
                _LONGEST_WAIT if seconds is None else min(_LONGEST_WAIT, seconds)
            ):
                await self._changed.wait()

    async def _seen_to_go(self, engine: DrainEngine, request: DrainRequest) -> Interference | None:
        """Wait until what was deleted by force is gone; name what is not, in the end."""

        def left() -> list[str]:
            pods = engine.observation.snapshot(self._name).pods
            going = arrange(pods, start=request.start).by_force
            self._tell_gone({pod.metadata.uid for pod in going})
            return [pod.metadata.key for pod in going]

        with suppress(TimeoutError):
            async with asyncio.timeout(_SEEN_TO_GO):
                while left():
                    self._changed.clear()
                    await self._changed.wait()
        if not (names := left()):
            return None
        return Interference(
            f"deleted by force, and not gone: pod {first_few(sorted(names), 3, separator=', ')}; "
            "finalizers may hold them"
        )

    def _interference(self, mirrors: Mirrors) -> Interference | None:
        """Tell whether somebody else goes on with the drain, or wants none."""
        node = mirrors.stores.nodes.get(self._name)
        if node is None:
            return None
        mark = drain_mark.mark_of(node)
        if mark is None:
            return Interference(f"the drain of node {self._name} was undone", ours=False)
        if mark.run != self._node.run:
            by = mark.by if mark.by != self._by else "another command of yours"
            return Interference(f"{by} has taken the drain of node {self._name} over", ours=False)
        if not node.spec.unschedulable:
            return Interference(f"node {self._name} was uncordoned: the drain stops")
        if obstacle := why_not_drain(node, None, by=self._by, take_over=True):
            return Interference(obstacle)
        return None

    # ---- what is told ----------------------------------------------------------------------------

    def _tell(self, answered: Answered) -> None:
        meta = answered.action.pod.metadata
        if answered.answer.is_over:
            verb = "evicting" if answered.action.verb is Verb.EVICT else "deleting"
            self._display.say(f"{verb} pod {meta.key}")
            self._asked[meta.uid] = meta.key

    def _tell_gone(self, going: Collection[str]) -> None:
        for uid in self._asked.keys() - going:
            self._display.say(f"pod {self._asked.pop(uid)} gone")

    def handed_over(self, request: DrainRequest, handover: Handover) -> None:
        """Tell what became of a pod's volumes."""
        self._display.say(f"volumes of pod {handover.pod_key}: {handover.reason}")


def _begun(node: Node, trouble: str) -> str:
    cordoned = "already cordoned" if node.spec.unschedulable else "cordoned"
    return f"node/{node.metadata.name} {cordoned}{f'; {trouble}' if trouble else ''}"


def _words(pods: Iterable[PodStanding], request: DrainRequest) -> str:
    return in_words(pods, deadline=request.deadline)


def _because(force: Force) -> str:
    return "" if force in (Force.LABEL, Force.TIMEOUT) else f": {force.value}"


def _given_up(name: str, force: Force, pods: str) -> str:
    left = f": {pods}" if pods else ""
    if force is Force.TIMEOUT:
        return (
            f"the time for node {name} is over, and pods are left{left}. Run it again with another "
            "--timeout, or with --force to delete them"
        )
    return f"node {name} is dead ({force.value}), and ends no pods{left}. --force deletes them"
