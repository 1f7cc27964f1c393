"""Tables: what ``kubectl get`` prints, made by the server as a real one does.

:func:`render_table` is pure; the moment that ages are counted from is an argument. Built-in kinds
have columns of their own (one module a family), custom resources those of their definitions, by the
JSONPath subset in :mod:`jsonpath`. A cell never fails: what is missing or of the wrong type shows
as nothing. Names, order and types of columns follow Kubernetes 1.32.
"""

from __future__ import annotations

from mcm.sandbox.apiserver.tables.ages import human_duration
from mcm.sandbox.apiserver.tables.render import columns_of, render_table

__all__ = ["columns_of", "human_duration", "render_table"]
