"""API-server reachability: while a cluster cannot be reached, machines are frozen.

``state`` decides, ``probing`` asks the servers, ``controller`` wires both. Health timeouts run on
what is observed, and where an API server is out of reach, what we hold of it may be long untrue: so
nobody is given up and nothing is destroyed on our own motion, and after a longer outage the
timeouts start anew. No phase is invented for the machines. Nothing here owns a task.
"""

from __future__ import annotations

from mcm.controllers.reachability.controller import build
from mcm.controllers.reachability.probing import ReachabilityProbe
from mcm.controllers.reachability.state import Reachability

__all__ = ["Reachability", "ReachabilityProbe", "build"]
