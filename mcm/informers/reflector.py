"""Does what :class:`.listwatch.ListWatch` decides, and nothing else: requests, streams, waits."""

from __future__ import annotations

import asyncio
import logging
import random as random_module
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar, final

from mcm.api.meta import KubeObject, ObjectMeta, Resource, T
from mcm.client.answers import ListPage
from mcm.client.errors import ApiError, KubeError, RequestTimeout, TransportError
from mcm.client.transport import StreamResponse
from mcm.client.verbs import ObjectReader
from mcm.clock import Clock
from mcm.informers.change import Changes
from mcm.informers.freshness import Currency
from mcm.informers.lines import LineSplitter
from mcm.informers.listwatch import Ending, FetchPage, ListWatch, OpenWatch, ReflectorOptions, Wait
from mcm.informers.sharing import share_repeated
from mcm.informers.stats import InformerStats
from mcm.informers.store import Store
from mcm.informers.watch_events import Bookmark, Event, EventType, FrameDecoder, Unreadable

logger = logging.getLogger(__name__)

S = TypeVar("S", bound=KubeObject)

_SLICE = 128
"""Frames between two looks at the clock."""
_SLICE_SECONDS = 0.004
"""How long frames may keep the loop to themselves."""
_SAY_AGAIN = 60.0  # seconds: an outage costs one line a minute, not one for each try
_REPORTED = 1024
_ADDED, _DELETED = EventType.ADDED, EventType.DELETED  # here for the reason given in frames


class Sink(Protocol[T]):
    """Where the news go. ``deliver`` is synchronous: when it returns, every handler knows."""

    @property
    def store(self) -> Store[T]: ...

    def deliver(self, changes: Changes[T]) -> None: ...

    def deliver_initial(self, changes: Changes[T]) -> None:
        """The same, of what belongs to the first list."""
        ...

    async def replaced(self, changes: Changes[T]) -> None:
        """Take what else a list that is in the store has changed; return when all know."""
        ...

    def freshness_moved(self) -> None:
        """Take note that :attr:`Reflector.currency` may judge otherwise than before."""
        ...


@final
class Reflector(Generic[T]):
    """Keeps a sink's store equal to what a server has, until cancelled.

    ``run`` never ends by itself and lets no failure of the server out: those show in ``stats``, in
    the log, and as silence. When ``run`` is cancelled, its connection is closed before it returns.
    """

    def __init__(
        self,
        source: ObjectReader,
        resource: Resource[T],
        *,
        sink: Sink[T],
        clock: Clock,
        randomness: random_module.Random,
        namespace: str = "",
        field_selector: str = "",
        options: ReflectorOptions | None = None,
        stats: InformerStats | None = None,
    ) -> None:
        self._source = source
        self._resource = resource
        self._namespace = namespace
        self._field_selector = field_selector
        self._sink = sink
        self._store = sink.store
        self._clock = clock
        self._options = options or ReflectorOptions()
        self._stats = stats or InformerStats()
        self._machine = ListWatch(randomness=randomness, options=self._options)
        self.currency = Currency(resource.name, clock.now)
        self._decoder = FrameDecoder(resource)
        self._listing = self._store.begin_list()
        self._reported: dict[tuple[str, str], None] = {}
        self._breathed_at = 0.0
        self._list_began = 0.0
        self._said = ("", 0.0)

    async def run(self) -> None:
        while True:
            match self._machine.next():
                case Wait(seconds=seconds):
                    await self._clock.sleep(seconds)
                case FetchPage() as page:
                    await self._fetch(page)
                case OpenWatch() as watch:
                    await self._follow(watch)

    # ---- lists ---------------------------------------------------------------------------------

    async def _fetch(self, request: FetchPage) -> None:
        self._stats.lists += 1
        if not request.continue_token:
            self._list_began = self._clock.monotonic()
        try:
            page = await self._source.list_page(
                self._resource,
                namespace=self._namespace,
                field_selector=self._field_selector,
                limit=request.limit,
                continue_token=request.continue_token,
                resource_version=request.resource_version,
            )
        except Exception as error:
            # Whatever it was: it is logged and counted, and the only way on is to try again.
            self._note_failure("list", error)
            self._note_freshness(self.currency.failed(error))
            self._machine.failed(error)
            return
        self._heard()
        if not request.continue_token:
            self._listing = self._store.begin_list()
        await self._collect(page)
        if self._machine.page(page.resource_version, page.continue_token):
            await self._replace()

    async def _collect(self, page: ListPage[T]) -> None:
        for at in range(0, len(page.items), _SLICE):
            for item in page.items[at : at + _SLICE]:
                if item.metadata.faults:
                    self._report_faults(item.metadata)
                self._take_listed(item)
            await self._breathe()
        for bad in page.bad:
            meta, reason = bad.metadata, str(bad.error)
            key = meta.key if meta.name else ""
            self._report(key, meta.resource_version, reason)
            self._listing.mark_unreadable(key, reason)

    def _take_listed(self, obj: T) -> None:
        if changes := self._store.take_listed(self._listing, obj):
            self._sink.deliver_initial(changes)

    async def _replace(self) -> None:
        """Hand the complete list over."""
        if self._store.resource_version:
            self._stats.relists += 1
        listing, self._listing = self._listing, self._store.begin_list()
        self._stats.listed.add(self._clock.monotonic() - self._list_began, len(listing))
        changes = self._store.finish_list(listing, self._machine.version)
        await self._sink.replaced(changes)
        self._note_freshness(self.currency.listed(self._clock.monotonic()))

    # ---- watches -------------------------------------------------------------------------------

    async def _follow(self, request: OpenWatch) -> None:
        """Open a watch, read it to its end, and report that end."""
        self._stats.watches += 1
        self._stats.lists += request.streamed_list
        opened = False
        began, known = self._clock.monotonic(), self._stats.events.total()
        if request.streamed_list:
            self._list_began = began
            self._listing = self._store.begin_list()
        end: Ending | Exception
        try:
            async with (
                asyncio.timeout(self._options.silence) as silence,
                self._source.watch(
                    self._resource,
                    namespace=self._namespace,
                    resource_version=request.resource_version,
                    field_selector=self._field_selector,
                    timeout_seconds=request.timeout_seconds,
                    send_initial_events=request.streamed_list,
                    read_timeout=self._options.silence,
                ) as response,
            ):
                opened = True
                now = self._heard()
                self._machine.opened(now)
                self._note_freshness(self.currency.opened(now))
                end = await self._read(response, silence)
        except Exception as error:
            # As for lists. After the headers it is the stream that ended, before them the request.
            end = self._end_of_stream(error) if opened else _refusal(error)
        if opened:
            events = self._stats.events.total() - known
            self._stats.watched.add(self._clock.monotonic() - began, events)
        self._report_end(end, opened=opened)
        self._note_freshness(self._took_end(end, opened=opened))

    def _took_end(self, end: Ending | Exception, *, opened: bool) -> bool:
        if opened:
            return self.currency.ended(self._clock.monotonic())
        return isinstance(end, Exception) and self.currency.failed(end)

    def _report_end(self, end: Ending | Exception, *, opened: bool) -> None:
        now = self._clock.monotonic()
        if isinstance(end, Ending):
            self._stats.silent_watches += end is Ending.SILENT
            self._machine.ended(end, now)
            self._stats.short_watches = self._machine.short_watches
            return
        self._note_failure("watch", end)
        if opened and isinstance(end, ApiError):
            self._machine.error_event(end, now)
        else:
            self._machine.failed(end)

    def _end_of_stream(self, error: Exception) -> Ending:
        if isinstance(error, TimeoutError):
            return Ending.SILENT
        self._note_failure("watch", error)
        return Ending.CLOSED if isinstance(error, TransportError) else Ending.GARBLED

    async def _read(self, response: StreamResponse, silence: asyncio.Timeout) -> Ending | ApiError:
        splitter = LineSplitter()
        loop = asyncio.get_running_loop()
        async for chunk in response.chunks:
            silence.reschedule(loop.time() + self._options.silence)
            self._heard()
            self._stats.received_bytes += len(chunk)
            end = await self._digest(splitter.feed(chunk))
            if end is not None:
                return end
        return Ending.GARBLED if splitter.torn else Ending.CLOSED

    async def _digest(self, lines: Sequence[bytes]) -> ApiError | None:
        """Take the frames in order, in slices; return the error that ends the watch, if any."""
        for at in range(0, len(lines), _SLICE):
            for line in lines[at : at + _SLICE]:
                frame = self._decoder.decode(line)
                if isinstance(frame, Event):
                    self._take_event(frame)
                elif isinstance(frame, Bookmark):
                    await self._take_bookmark(frame)
                elif isinstance(frame, Unreadable):
                    self._take_unreadable(frame)
                else:
                    self._stats.events[EventType.ERROR] += 1
                    return frame.error
            await self._breathe()
        return None

    async def _breathe(self) -> None:
        """Let others run if we have had the loop for long. Chunks that are there already do not
        suspend us, so this is measured across them."""
        if self._clock.monotonic() - self._breathed_at > _SLICE_SECONDS:
            await self._clock.sleep(0)
            self._breathed_at = self._clock.monotonic()

    def _take_event(self, event: Event[T]) -> None:
        kind, obj = event.type, event.object
        self._stats.events[kind] += 1
        if obj.metadata.faults:
            self._report_faults(obj.metadata)
        machine = self._machine
        meta = obj.metadata
        if machine.listing:
            if kind is _DELETED:
                self._listing.forget(meta.key)
            else:
                share_repeated(obj, None)  # as was done with what comes in pages
                self._take_listed(obj)
            return
        if kind is _DELETED:
            changes = self._store.remove(meta.key, uid=meta.uid, version=meta.resource_version)
        else:
            changes = self._store.put(obj)
        if changes:
            self._sink.deliver(changes)
        machine.event(meta.resource_version, added=kind is _ADDED)
        self._store.advance(machine.version)

    async def _take_bookmark(self, bookmark: Bookmark) -> None:
        self._stats.events[EventType.BOOKMARK] += 1
        if not self._machine.listing:
            self._advance(bookmark.version)
            self._note_freshness(self.currency.bookmarked())
        elif bookmark.ends_list:
            self._machine.initial_events_end(bookmark.version)
            await self._replace()

    def _take_unreadable(self, frame: Unreadable) -> None:
        """Go on without the object. Its end is understood all the same: that needs no fields."""
        self._report(frame.key, frame.version, frame.reason)
        deleted = frame.type == EventType.DELETED
        if not deleted and frame.type not in (EventType.ADDED, EventType.MODIFIED):
            return
        if self._machine.listing:
            if deleted:
                self._listing.forget(frame.key)
            else:
                self._listing.mark_unreadable(frame.key, frame.reason)
            return
        if not deleted:
            self._store.mark_unreadable(frame.key, frame.reason)
        elif changes := self._store.remove(frame.key, uid=frame.uid, version=frame.version):
            self._sink.deliver(changes)
        self._advance(frame.version, added=frame.type == EventType.ADDED)

    def _advance(self, version: str, *, added: bool = False) -> None:
        machine = self._machine
        machine.event(version, added=added)
        self._store.advance(machine.version)

    # ---- telling -------------------------------------------------------------------------------

    def _heard(self) -> float:
        now = self._clock.monotonic()
        self._stats.last_heard = now
        self._note_freshness(self.currency.heard(now))
        return now

    def _note_freshness(self, moved: bool) -> None:
        if moved:
            self._sink.freshness_moved()

    def _note_failure(self, verb: str, error: Exception) -> None:
        self._stats.failures[type(error).__name__] += 1
        expected = isinstance(error, KubeError)
        level = logging.WARNING if expected else logging.ERROR
        logger.log(
            logging.DEBUG if expected and self._was_said(f"{verb}: {error}") else level,
            "cannot %s %s: %s",
            verb,
            self._resource.name,
            error,
            exc_info=None if expected else error,
            extra={"resource": self._resource.name, "namespace": self._namespace},
        )

    def _was_said(self, what: str) -> bool:
        """Whether ``what`` was said within the last minute, and the server not heard since."""
        now, heard = self._clock.monotonic(), self._stats.last_heard
        said, at = self._said
        if what == said and now - at < _SAY_AGAIN and (heard is None or heard < at):
            return True
        self._said = what, now
        return False

    def _report_faults(self, meta: ObjectMeta) -> None:
        self._report(meta.key, meta.resource_version, "; ".join(map(str, meta.faults)))

    def _report(self, key: str, version: str, reason: str) -> None:
        """Count an object that is not readable, or not wholly; say so once for each version."""
        self._stats.unreadable += 1
        if (key, version) in self._reported:
            return
        self._reported[key, version] = None
        if len(self._reported) > _REPORTED:
            del self._reported[next(iter(self._reported))]
        logger.error(
            "cannot read an object: %s",
            reason,
            extra={"resource": self._resource.name, "key": key, "version": version},
        )


def _refusal(error: Exception) -> Exception:
    """Our own timeout means the same as the transport's."""
    if isinstance(error, TimeoutError) and not isinstance(error, TransportError):
        return RequestTimeout("no answer to a watch request")
    return error
