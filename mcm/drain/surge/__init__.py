"""A successor first, then the eviction: for single pods that ask for it by an annotation.

``restart`` restarts the rollout of the pod's Deployment, which makes another pod and, once that is
Ready, takes the old one away by itself. ``scale`` asks for one replica more, lets the drain evict
the pod once another one is Ready elsewhere, and asks for one less again.

What is under way stands on the Deployment (:class:`Marker`), written in the same patch as what it
tells of: nothing is scaled twice, and any process can undo what another one began
(:meth:`Surges.settle`). All of it is bounded; after that the pod is evicted like others. Why a pod
cannot have a successor is said, and it is evicted like others.
"""

from __future__ import annotations

from mcm.drain.surge.decision import Awaited
from mcm.drain.surge.marker import Marker
from mcm.drain.surge.surges import Prepared, Surges

__all__ = ["Awaited", "Marker", "Prepared", "Surges"]
