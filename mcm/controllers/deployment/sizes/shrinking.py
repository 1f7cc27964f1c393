"""Takes replicas from sets: before all else machines that do not serve, then as many as may go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mcm.controllers.deployment.fleet import SetState


def shrunk(
    states: Iterable[SetState], targets: Mapping[str, int], by: int, *, spare: int
) -> dict[str, int]:
    """Return ``targets``, sizes by UID, with at most ``by`` replicas less, taken from ``states`` in
    their order. No more than ``spare`` machines that serve go."""
    result, ordered = dict(targets), tuple(states)
    for losing in (0, spare):
        by = _taken(ordered, result, by, losing)
    return result


def _taken(states: Sequence[SetState], targets: dict[str, int], by: int, losing: int) -> int:
    """Take from ``targets``; return how many replicas are left to take."""
    for state in states:
        before = targets[state.uid]
        after = state.reduced(before, by, losing=losing)
        targets[state.uid] = after
        losing -= state.guaranteed(before) - state.guaranteed(after)
        by -= before - after
    return by
