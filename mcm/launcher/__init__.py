"""``mcm start``: from a fresh clone to a running fleet, with a live view of it.

Chooses the clusters (:mod:`.clusters`), starts a sandbox if none is given, runs the manager as
``mcm run`` does, and shows progress (:mod:`.progress`). Nothing here is used in production.
"""
