"""Failed machines that a set does not replace: those somebody asked to keep, and some unasked.

:mod:`.protection` says until when one stays, :mod:`.budget` which of those nobody spoke of are kept
(both pure), and :mod:`.auto_preserver` writes it on them. Marks, drain and end of a preservation
are the machine controller's.
"""
