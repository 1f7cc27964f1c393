"""Whether a set is to be frozen, unfrozen, or left as it is: counts and limits in, action out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import final

from mcm.api.meta import ObjectMeta
from mcm.api.names import ANNOTATION_UNFREEZE, LABEL_FREEZE, LABEL_VALUE_TRUE
from mcm.controllers.overshooting.limits import Limits


class Action(Enum):
    FREEZE = auto()
    UNFREEZE = auto()
    KEEP = auto()


@final
@dataclass(frozen=True, slots=True)
class SetSeen:
    """A set as the decision sees it. ``machines`` are all it owns, those leaving included.

    ``asked``: somebody wants it unfrozen. ``spared``: somebody wanted that a moment ago, and gets
    the time to see what it does.
    """

    machines: int
    limits: Limits | None
    frozen: bool
    asked: bool = False
    spared: bool = False


def decide(seen: SetSeen) -> Action:
    """Say what is due. What somebody asks for is done whatever the numbers are; without limits,
    nothing follows from them."""
    if seen.asked:
        return Action.UNFREEZE
    if seen.limits is None:
        return Action.KEEP
    if seen.frozen:
        return Action.UNFREEZE if seen.machines <= seen.limits.unfreeze_at else Action.KEEP
    too_many = seen.machines >= seen.limits.freeze_at
    return Action.FREEZE if too_many and not seen.spared else Action.KEEP


def is_frozen(meta: ObjectMeta) -> bool:
    """Tell whether an object bears the label, with exactly the value that counts."""
    return meta.labels.get(LABEL_FREEZE) == LABEL_VALUE_TRUE


def is_unfreeze_asked(meta: ObjectMeta) -> bool:
    """Tell whether somebody asks by annotation, whatever its value."""
    return ANNOTATION_UNFREEZE in meta.annotations
