"""The MachineSet controller: keeps as many machines as ``spec.replicas`` says.

It promises: never a machine more than wanted, also when answers get lost; the same victims for the
same snapshot (:mod:`mcm.controllers.replicas.deletion_order`); at most :func:`.scaling.burst`
creations or deletions in a pass, creations with a slow start; nothing written when nothing changes.
A machine on its way out is no replica; a Failed one is deleted and replaced, unless it is
preserved.

A set that makes no sense gets the condition ``ReplicaFailure`` with reason ``InvalidSpec`` and an
event naming the field, and can still be deleted. Frozen sets (label ``freeze=True``) create
nothing. Phases of machines are not written here: the machine controller says ``Terminating``.
"""

from __future__ import annotations

from mcm.controllers.machineset.controller import build

__all__ = ["build"]
