"""All that a pass over a drain looks at in the cluster, as it was at one moment, and how sure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from mcm.api.core import Node, Pod, PodDisruptionBudget
from mcm.drain.budgets import BudgetView, view_for
from mcm.drain.volumes import NodeVolumes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """``node`` is None where there is none, or none any more."""

    node: Node | None
    pods: tuple[Pod, ...]
    """Those on the Node."""
    budgets: Mapping[str, Sequence[PodDisruptionBudget]] = field(default_factory=dict)
    """By the namespaces of these pods."""
    volumes: NodeVolumes
    blind: str = ""
    """Why the pods may be others by now: nothing is concluded from them. Empty: they are believed
    to be these."""
    may_get_pods: bool = False
    """Some pod awaits the scheduler: it may be on its way to the Node."""
    budgets_stale: str = ""
    """The same of budgets: then the server is asked, which knows."""
    _views: dict[str, BudgetView] = field(default_factory=dict, init=False, compare=False)
    """By pod UID, as a pass asks for each more than once, and selectors take time to match."""

    def budgets_of(self, pod: Pod) -> BudgetView:
        """Return what its budgets say of the pod, which is one of those on the Node."""
        uid = pod.metadata.uid
        if uid not in self._views:
            self._views[uid] = view_for(pod, self.budgets.get(pod.metadata.namespace, ()))
        return self._views[uid]
