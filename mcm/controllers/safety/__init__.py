"""Deletes VMs that no machine claims, so that mistakes do not become losses.

``orphans`` collects VMs that no machine knows, each only after it was found unclaimed twice and the
API server confirmed it. A class whose provider fails holds up no other class. Nothing here owns a
task or a connection; every pass may be cancelled and repeated.
"""

from __future__ import annotations

from mcm.controllers.safety.controller import build

__all__ = ["build"]
