"""Sets for tables, written as ``state("new", 3, "RR.")``: R serves, . does not."""

from __future__ import annotations

from mcm.controllers.deployment.fleet import Fleet, SetState


def state(
    name: str,
    replicas: int,
    machines: str | None = None,
    *,
    terminating: int = 0,
    reported: int = 0,
    chosen: int = 0,
    preserved: int = 0,
    desired: int | None = None,
    most: int | None = None,
    deleted: bool = False,
) -> SetState:
    """``machines`` stand in the order in which they would go; by default all serve."""
    text = "R" * replicas if machines is None else machines
    return SetState(
        uid=name,
        replicas=replicas,
        serving=tuple(c == "R" for c in text),
        terminating=terminating,
        reported=reported,
        chosen=chosen,
        preserved=preserved,
        desired=desired,
        most=most,
        deleted=deleted,
    )


def fleet(new: SetState | None, *old: SetState, deleted: tuple[SetState, ...] = ()) -> Fleet:
    return Fleet(new=new, old=old, deleted=deleted)
