"""Evictions that were asked for and that a budget's mirrored status does not show yet.

One for the process, over all drains: a disruption that one drain was granted is none for another,
though the mirror still counts it. It is under way from the request on, until the mirror shows it:
the budget names the pod as disrupted, or the pod is seen to go and the budget was written since.
"""

from __future__ import annotations

import random as random_module
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from mcm.api.core import Pod, PodDisruptionBudget
from mcm.drain.budgets.view import BudgetView
from mcm.informers.versions import newer
from mcm.workqueue.backoff import Backoff, shorter_by

UNSEEN_FOR: Final = 60.0
"""Seconds after which a granted eviction that no mirror shows counts no more."""
_REFUSED: Final = Backoff(20.0, 180.0, spread=shorter_by(0.25))

Freed: TypeAlias = Callable[[str], None]
"""Told a namespace in which a budget may allow something that it did not a moment ago, without any
change of the budget itself."""


@final
@dataclass(frozen=True, slots=True)
class _Before:
    """What a budget's mirror showed when a pod was asked for. ``stamp``: when the server had
    granted an earlier eviction of a pod by that name; empty: it had not."""

    version: str
    stamp: str


@final
@dataclass(slots=True)
class _Disruption:
    """One pod's. ``unseen``: the budgets, by key, whose mirror does not show it yet.
    ``granted_at`` None: the request is under way."""

    pod_key: str
    uid: str
    unseen: dict[str, _Before]
    granted_at: float | None = None
    going_since: str = ""
    """The pod's version that first showed it to go; empty: none was seen."""

    @property
    def namespace(self) -> str:
        return self.pod_key.partition("/")[0]

    @property
    def pod_name(self) -> str:
        return self.pod_key.rpartition("/")[2]

    def is_outdated(self, now: float) -> bool:
        return self.granted_at is not None and now >= self.granted_at + UNSEEN_FOR


@final
@dataclass(frozen=True, slots=True)
class _Refusal:
    """The server refused although the mirrored ``version`` of the budget allows."""

    version: str
    tries: int
    until: float


@final
class Disruptions:
    """``pods`` and ``budgets`` look objects up in the mirror, by key. Times are monotonic seconds.

    Whoever calls :meth:`asked` calls one of :meth:`granted`, :meth:`released`, :meth:`refused` as
    well, whatever happens.
    """

    def __init__(
        self,
        *,
        pods: Callable[[str], Pod | None],
        budgets: Callable[[str], PodDisruptionBudget | None],
        random: random_module.Random,
        freed: Freed = lambda _namespace: None,
    ) -> None:
        self._pods = pods
        self._budgets = budgets
        self._random = random
        self._freed = freed
        self._by_uid: dict[str, _Disruption] = {}
        self._by_budget: dict[str, set[str]] = {}
        self._refusals: dict[str, _Refusal] = {}

    # ---- requests --------------------------------------------------------------------------------

    def asked(self, pod: Pod, view: BudgetView) -> None:
        """The pod's eviction is about to be asked for, as ``view`` allowed."""
        if not view.needs_allowance:
            return
        meta = pod.metadata
        self._forget(meta.uid)
        unseen = {
            b.metadata.key: _Before(b.metadata.resource_version, _stamp(b, meta.name))
            for b in view.budgets
        }
        self._by_uid[meta.uid] = _Disruption(meta.key, meta.uid, unseen)
        for key in unseen:
            self._by_budget.setdefault(key, set()).add(meta.uid)

    def granted(self, uid: str, now: float) -> None:
        """The eviction was accepted, or may have been: nobody knows."""
        if (disruption := self._by_uid.get(uid)) is not None:
            disruption.granted_at = now
            if self._settle(disruption):
                self._freed(disruption.namespace)  # it was counted here and in the mirror

    def released(self, uid: str) -> None:
        """The eviction did not come about, which says nothing of the budget."""
        if (disruption := self._by_uid.get(uid)) is not None:
            self._forget(uid)
            self._freed(disruption.namespace)

    def refused(self, uid: str, now: float, *, retry_after: float | None = None) -> None:
        """A budget refused, although its mirrored version allowed it: that version is not asked
        again for a while, by no pod."""
        disruption = self._by_uid.get(uid)
        if disruption is None:
            return
        for key, seen in disruption.unseen.items():
            last = self._refusals.get(key)
            tries = last.tries + 1 if last and last.version == seen.version else 1
            wait = max(retry_after or 0.0, _REFUSED.delay(tries - 1, self._random.random()))
            self._refusals[key] = _Refusal(seen.version, tries, now + wait)
        self._forget(uid)
        self._freed(disruption.namespace)

    # ---- the mirror ------------------------------------------------------------------------------

    def budget_changed(self, key: str, budget: PodDisruptionBudget | None) -> None:
        """The mirror holds another version of the budget, or (None) none any more."""
        if budget is None or not _is_of(self._refusals.get(key), budget):
            self._refusals.pop(key, None)
        for disruption in self._of(key):
            self._settle_with(disruption, key, budget)

    def pod_changed(self, uid: str) -> None:
        """The mirror holds another state of the pod, or none any more."""
        disruption = self._by_uid.get(uid)
        if disruption is None:
            return
        self._is_going(disruption)
        if self._settle(disruption):
            self._freed(disruption.namespace)

    # ---- what follows ----------------------------------------------------------------------------

    def under_way(self, budget: PodDisruptionBudget, now: float, *, but: str = "") -> int:
        """Return how many disruptions the budget's status does not count yet. ``but`` is the UID
        of a pod whose own one does not matter."""
        key = budget.metadata.key
        for disruption in self._of(key):
            if disruption.is_outdated(now):
                self._forget(disruption.uid)
            else:
                self._settle_with(disruption, key, budget)
        return len(self._by_budget.get(key, set()) - {but})

    def refused_until(self, budget: PodDisruptionBudget) -> float:
        """Return until when this version of the budget is not to be asked; 0 if it may be."""
        refusal = self._refusals.get(budget.metadata.key)
        return refusal.until if refusal is not None and _is_of(refusal, budget) else 0.0

    def outdated_at(self, budget: PodDisruptionBudget) -> float | None:
        """Return when the first disruption under way counts no more, should no mirror show it."""
        granted = [d.granted_at for d in self._of(budget.metadata.key) if d.granted_at is not None]
        return min(granted) + UNSEEN_FOR if granted else None

    # ---- bookkeeping -----------------------------------------------------------------------------

    def _of(self, key: str) -> Iterable[_Disruption]:
        return [self._by_uid[uid] for uid in self._by_budget.get(key, ())]

    def _settle(self, disruption: _Disruption) -> bool:
        """Drop it from the budgets that show it; tell whether any does."""
        before = len(disruption.unseen)
        for key in tuple(disruption.unseen):
            self._settle_with(disruption, key, self._budgets(key))
        return len(disruption.unseen) < before

    def _settle_with(
        self, disruption: _Disruption, key: str, budget: PodDisruptionBudget | None
    ) -> None:
        if key not in disruption.unseen or not self._shows(disruption, key, budget):
            return
        del disruption.unseen[key]
        self._unlink(key, disruption.uid)
        if not disruption.unseen:
            self._by_uid.pop(disruption.uid, None)

    def _shows(self, disruption: _Disruption, key: str, budget: PodDisruptionBudget | None) -> bool:
        if budget is None:
            return True
        before = disruption.unseen[key]
        if _stamp(budget, disruption.pod_name) not in ("", before.stamp):
            return True
        version = budget.metadata.resource_version
        if disruption.granted_at is None or version == before.version:
            return False
        if not self._is_going(disruption):
            return False
        # The server wrote the budget before the pod, and its controller counts anew after that.
        return not disruption.going_since or newer(version, disruption.going_since)

    def _is_going(self, disruption: _Disruption) -> bool:
        pod = self._pods(disruption.pod_key)
        if pod is None or pod.metadata.uid != disruption.uid:
            return True
        if pod.metadata.deletion_timestamp is None:
            return False
        disruption.going_since = disruption.going_since or pod.metadata.resource_version
        return True

    def _forget(self, uid: str) -> None:
        disruption = self._by_uid.pop(uid, None)
        for key in disruption.unseen if disruption else ():
            self._unlink(key, uid)

    def _unlink(self, key: str, uid: str) -> None:
        uids = self._by_budget.get(key, set())
        uids.discard(uid)
        if not uids:
            self._by_budget.pop(key, None)

    def statistics(self) -> Mapping[str, int]:
        """Return how many disruptions are under way, by budget."""
        return {key: len(uids) for key, uids in self._by_budget.items()}


def _is_of(refusal: _Refusal | None, budget: PodDisruptionBudget) -> bool:
    return refusal is not None and refusal.version == budget.metadata.resource_version


def _stamp(budget: PodDisruptionBudget, pod_name: str) -> str:
    return budget.status.disrupted_pods.get(pod_name, "")
