"""The fleet in numbers: what is shown of machines, sets and deployments, under the Go names.

``families`` says what (pure), ``fleet`` keeps it as text, since ten thousand machines are a hundred
thousand lines. What is gone leaves no line behind.
"""

from __future__ import annotations

from mcm.controllers.fleet_metrics.fleet import FleetMetrics

__all__ = ["FleetMetrics"]
