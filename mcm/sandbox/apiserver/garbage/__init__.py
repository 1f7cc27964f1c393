"""What goes without a request: dependents of the deleted, content of namespaces, old events.

A real cluster does most of this in its controller manager; here it can be left out.
"""
