"""Meltdown protection: where too many machines are unhealthy at once, none is given up.

``hold`` decides (pure), ``fleet_health`` counts, ``protection`` keeps what was decided for each
zone and for the fleet, shows it in metrics, and wakes those who were held; ``holding`` is what that
means for one machine, ``controller`` wires it all.
"""

from __future__ import annotations

from mcm.controllers.machine.health.meltdown.controller import build
from mcm.controllers.machine.health.meltdown.protection import MeltdownProtection, Verdict

__all__ = ["MeltdownProtection", "Verdict", "build"]
