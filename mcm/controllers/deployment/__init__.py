"""The MachineDeployment controller: moves a fleet of machines from one template to the next.

It owns one MachineSet a template and changes their sizes, nothing else; machines it only marks
(:mod:`.scale_down_marks`). It promises, for every order in which sets and machines follow: never
more machines than ``replicas`` and surge, never fewer that serve than promised if there were as
many before, never a second set of one template, nothing written when nothing changes. Every change
of sizes is checked against these promises before it is written (:mod:`.promises`).

A deployment that makes no sense gets the condition ``Progressing`` False with reason
``InvalidSpec`` and an event naming the field, and can still be deleted. An update by strategy
InPlaceUpdate is refused with reason ``StrategyNotSupported``; scaling goes on.
"""

from __future__ import annotations

from mcm.controllers.deployment.controller import build

__all__ = ["build"]
