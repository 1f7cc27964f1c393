"""The machine controller: one VM and one Node for each Machine object, from claim to farewell.

``flow`` says which steps a machine is due for, ``reconciler`` takes them. What a step decides and
does lies in the folder named for what happens to the machine: ``creation``, ``deletion``,
``health``, ``node``. ``wakeups`` says which machine a change concerns, ``controller`` wires it.

Passes over one machine never overlap; those over different machines do, in no order. What a pass
must not lose is written on the machine before what cannot be undone, so a pass may be cut short at
any await and taken up by any process, the Go original's included. Nothing here owns a task or a
connection.
"""

from __future__ import annotations

from mcm.controllers.machine.controller import build

__all__ = ["build"]
