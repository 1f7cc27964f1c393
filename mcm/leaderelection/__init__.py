"""One leader at a time, by a Lease object: who holds it works, everybody else waits.

What is promised, as long as no two clocks run at rates further apart than lease duration to renew
deadline (15 to 10 by default; what the clocks *show* never matters):

* two electors never both say ``is_leading``, and ``fence()`` lets nothing pass where it is not so;
* leadership that cannot be renewed by the renew deadline ends: the guarded work is cancelled, and
  ``run()`` raises :class:`LeadershipLost` after it has stopped;
* while guarded work winds down after a cancellation, the lease is still renewed; it is released
  only after the work has stopped, and only if the server's record still names us;
* a holder that died is followed no later than lease duration and retry period after its last
  renewal, and so where several leases are needed: they are taken together or not at all
  (:mod:`.precedence`), and none is held that another could use.

The record is that of client-go, so that mixed fleets exclude each other. The elector's client must
not be fenced by it, and should have connections of its own (``Lane.LEASE``). :mod:`.election` is
the synchronous part, :mod:`.elector` the driver, :mod:`.leases` several of them as one. The caller
closes the client.
"""

from __future__ import annotations

from mcm.leaderelection.election import LeadershipLost, Timings
from mcm.leaderelection.elector import LeaderElector, new_identity
from mcm.leaderelection.leases import AllLeases
from mcm.leaderelection.metrics import ElectionMetrics

__all__ = [
    "AllLeases",
    "ElectionMetrics",
    "LeaderElector",
    "LeadershipLost",
    "Timings",
    "new_identity",
]
