"""The secret controller: a secret stays for as long as a machine class refers to it.

It puts a finalizer on each such secret and takes it off when no class refers to it any more; no
other secret is ever written. Each write applies only to the version seen. Secrets' contents are
neither read nor logged. Nothing here owns a task or a connection.
"""

from __future__ import annotations

from mcm.controllers.secret.controller import build

__all__ = ["build"]
