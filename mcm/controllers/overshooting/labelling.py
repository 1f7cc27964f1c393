"""The changes that freeze an object and unfreeze it."""

from __future__ import annotations

from mcm.api.meta import JSONObject, ObjectMeta
from mcm.api.names import ANNOTATION_UNFREEZE, LABEL_FREEZE, LABEL_VALUE_TRUE
from mcm.controllers.overshooting.decision import is_frozen, is_unfreeze_asked


def freezing() -> JSONObject:
    return {"metadata": {"labels": {LABEL_FREEZE: LABEL_VALUE_TRUE}}}


def unfreezing(meta: ObjectMeta) -> JSONObject:
    """Return the change that takes off the label and the request to do so; empty if none is there.

    A label of another value froze nothing, and is somebody's own.
    """
    change: JSONObject = {}
    if is_frozen(meta):
        change["labels"] = {LABEL_FREEZE: None}
    if is_unfreeze_asked(meta):
        change["annotations"] = {ANNOTATION_UNFREEZE: None}
    return {"metadata": change} if change else {}
