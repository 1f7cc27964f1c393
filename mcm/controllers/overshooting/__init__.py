"""Overshoot safety: a set that has far too many machines is frozen, and makes none meanwhile.

It promises: a set is frozen, and its deployment with it, at the event by which its machines reach
the limit, and unfrozen at the event by which they fall low enough; no number of machines does both.
A set that has what it wants is never frozen, and a frozen one gets there by deleting alone. Whoever
froze it (the Go original, a person), a freeze ends in the same ways.

=========================  =======================================================================
:mod:`.limits`             from how many machines on a set is frozen, and at how many that ends
:mod:`.decision`           freeze, unfreeze, or neither (pure)
:mod:`.set_freeze`         carries that out on a set's label
:mod:`.deployment_freeze`  lets a deployment bear its sets' label, and has all of them unfrozen
:mod:`.explanation`        what condition ``Frozen`` and events say (pure)
=========================  =======================================================================

The label ``freeze=True`` is the fact, and written here only. The condition ``Frozen`` tells of it,
in the status that each object's own controller writes.
"""

from __future__ import annotations

from mcm.controllers.overshooting.controller import build

__all__ = ["build"]
