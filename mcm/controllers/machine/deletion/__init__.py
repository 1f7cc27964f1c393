"""From a deletion timestamp to nothing left: drain, volumes, VM, Node object, finalizer.

Where a machine is in it stands in its last operation (``steps``), written before each step that
cannot be undone, so any process can go on from there.
"""
