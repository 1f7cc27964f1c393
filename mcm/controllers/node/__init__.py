"""The node controller: tells Nodes of machines from Nodes of nobody's.

A Node that has had no machine for longer than a machine may take to join is marked as not managed,
and loses our finalizer, which would hold it for ever; the mark goes when a machine claims it. Nodes
are never deleted here. Needs a target cluster; without one there is nothing to do. Nothing here
owns a task or a connection.
"""

from __future__ import annotations

from mcm.controllers.node.controller import build

__all__ = ["build"]
