"""The machine class controller: a class stays for as long as a machine needs it.

It puts a finalizer on each class that machines use, and takes it off when the last one is gone:
without its class, a VM can neither be made nor deleted. Each write applies only to the version
seen. Nothing here owns a task or a connection.
"""

from __future__ import annotations

from mcm.controllers.machineclass.controller import build

__all__ = ["build"]
