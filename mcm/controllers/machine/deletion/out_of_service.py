"""The taint that gives up a Node whose kubelet is dead, so that its volumes are detached at once.

Without it the cluster's own controller waits six minutes for a kubelet that will never tell that it
unmounted them. It is for Nodes only that certainly run nothing any more (Kubernetes 1.28).
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from mcm.api.codec import to_json_object
from mcm.api.core import Node, Taint
from mcm.api.meta import JSONObject
from mcm.api.names import EFFECT_NO_EXECUTE, TAINT_OUT_OF_SERVICE
from mcm.api.timestamps import whole_seconds
from mcm.controllers.preconditions import for_this_version

SINCE_RELEASE: Final = (1, 28)
"""Releases before it do not heed the taint, or only behind a gate."""
_VALUE: Final = "nodeshutdown"


def out_of_service_since(node: Node) -> datetime | None:
    """Return when the Node was given up; None if it was not, or nobody said when."""
    return next((t.time_added for t in node.spec.taints if _is_it(t)), None)


def out_of_service_patch(node: Node, now: datetime) -> JSONObject | None:
    """Return the merge patch that gives the Node up; None if it is, since a moment that is known.

    Somebody else's taint that does not say since when says it afterwards: the wait that begins with
    it has a limit.
    """
    if out_of_service_since(node) is not None:
        return None
    others = (taint for taint in node.spec.taints if not _is_it(taint))
    ours = Taint(
        key=TAINT_OUT_OF_SERVICE,
        value=_VALUE,
        effect=EFFECT_NO_EXECUTE,
        time_added=whole_seconds(now),
    )
    spec: JSONObject = {"taints": [to_json_object(taint) for taint in (*others, ours)]}
    return for_this_version(node.metadata, {"spec": spec})


def _is_it(taint: Taint) -> bool:
    return taint.key == TAINT_OUT_OF_SERVICE and taint.effect == EFFECT_NO_EXECUTE
