"""Which verbs on which resources the manager needs, for which purpose: the one place that says so.

Pure data. The chart's files of rules are made from it (``make generate``), and ``mcm preflight``
asks a cluster about each of them.
"""

from mcm.access.purposes import OLD_CLASSES, PURPOSES, purpose
from mcm.access.rules import Purpose, Rule

__all__ = ["OLD_CLASSES", "PURPOSES", "Purpose", "Rule", "purpose"]
