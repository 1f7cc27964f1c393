"""The acts on machines: the only modules of the machine controller that await.

Each act takes a machine as last seen, asks the pure modules what is due, does it, and returns the
machine as it then is. An act may be cancelled at any await, and may be repeated by any process at
any point: what must not be lost is written before what cannot be undone.
"""
