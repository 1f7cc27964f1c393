"""How many machines are updated in place next.

With R desired machines of which U may be unavailable: at most as many as serve beyond R - U, and
no more than the new set lacks, those counted which are on their way into it. Whoever is being
updated does not serve, however its phase reads; a failed one does not either, but is on no way.
"""

from __future__ import annotations


def quota(*, serving: int, floor: int, desired: int, in_new: int, on_the_way: int) -> int:
    """Return how many more machines may be selected now.

    ``serving`` machines will go on serving as things stand, ``floor`` must. ``desired`` ones are to
    be in the new set, which has a size of ``in_new``; ``on_the_way`` more are to join it.
    """
    return max(0, min(serving - floor, desired - in_new - on_the_way))
