"""Traces: what a reconcile did, and for how long, as spans for an OpenTelemetry backend.

:mod:`.tracer` is what the rooms above see; without a backend it does nothing. :mod:`.exporting`
needs the extra ``mcm[tracing]`` and is imported only when traces are wanted.

A span bears names, verbs, codes and times: nothing that was read from an object, nothing that a
provider or a server said. So no secret can be in one.
"""

from __future__ import annotations

from mcm.tracing.tracer import NO_TRACES, Kind, Span, Tracer, Value

__all__ = ["NO_TRACES", "Kind", "Span", "Tracer", "Value"]
