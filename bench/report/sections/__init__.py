"""One module a bench: how its results are shown. Each reads what it shows and nothing else, so that
results of other commits can be shown too; those that lack it raise ``msgspec.ValidationError``, and
the page then shows the bare numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from bench.report.record import Record
from bench.report.section import Section
from bench.report.sections import drain, fleet, growth, informer, startup, steady, workqueue

SECTIONS: Final[Mapping[str, Callable[[Record], Section]]] = {
    "drain": drain.section,
    "fleet": fleet.section,
    "growth": growth.section,
    "informer": informer.section,
    "startup": startup.section,
    "steady": steady.section,
    "workqueue": workqueue.section,
}
