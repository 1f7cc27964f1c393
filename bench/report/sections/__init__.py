"""One module a bench: how its results are shown. Results whose shape a module does not know raise
``msgspec.ValidationError``, and the page then shows the bare numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from bench.report.record import Record
from bench.report.section import Section
from bench.report.sections import drain, informer, workqueue

SECTIONS: Final[Mapping[str, Callable[[Record], Section]]] = {
    "drain": drain.section,
    "informer": informer.section,
    "workqueue": workqueue.section,
}
