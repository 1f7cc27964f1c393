"""The MachineDeployment controller: moves a fleet of machines from one template to the next.

It owns one MachineSet a template and changes their sizes; machines it only marks as chosen by the
autoscaler (:mod:`.scale_down_marks`), or moves to their new set once they are updated in place
(:mod:`.in_place_update`), and Nodes it marks as old (:mod:`.nodes`). In every order in
which sets and machines follow there are never more machines than ``replicas`` and surge, never
fewer that serve than ``maxUnavailable`` allows if there were as many before, never a second set of
one template, and nothing is written when nothing changes. Every change of sizes is checked against
these bounds before it is written (:mod:`.sizes.bounds`).

A deployment that makes no sense gets the condition ``Progressing`` False with reason
``InvalidSpec`` and an event naming the field, and can still be deleted. Where no Nodes can be seen,
an update by strategy InPlaceUpdate is refused with reason ``NoTargetCluster``; scaling goes on.
"""

from __future__ import annotations

from mcm.controllers.deployment.controller import build

__all__ = ["build"]
