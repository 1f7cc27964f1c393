"""Keeping a machine for somebody to look at: marked on its Node, drained if it failed, for a time.

Who wants it annotates the Machine or its Node; :mod:`.decision` says what follows, and is pure.
What is ours is on record: ``preserveExpiryTime`` on the machine says that it is kept, the condition
``Preserved`` on the Node that its marks are set, and ``…-by-mcm`` that the annotation against the
cluster autoscaler is ours. A Node is never cordoned: its ``unschedulable`` is its user's.

Order: the expiry first, so that nobody deletes the machine meanwhile; when it ends, last, so that
whoever comes after a crash finds what is left to take away. Deletion is never held up by any of it.
"""
