"""``mcm preflight``: what a manager would meet in a live cluster, told before it runs there.

Reads once (:mod:`.reading`), then judges what was seen: every check in :mod:`.checks` is a pure
function from :class:`.seen.Seen` to findings, and none stops another. Nothing is written: the
transport (:mod:`.read_only`) lets nothing pass but reads, and the reviews by which a server tells
what its caller may do, which it stores nowhere.
"""
