"""A large fleet at rest, for what costs something even then, or each time a manager starts.

``pool`` is one pool of machines as the manager itself leaves it once all is done; ``copies`` makes
as many of it as are wanted, ``workload`` fills their Nodes with pods and volumes. ``server`` serves
all of it in a process of its own, and ``managers`` runs ``mcm run`` in processes that are looked at
from without.
"""
