"""What the server saw of drains, and which of their promises it saw broken."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, final

from mcm.api.core import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    VOLUME_ATTACHMENTS,
)
from mcm.api.durations import parse_duration
from mcm.api.machine import MACHINES
from mcm.api.meta import Resource, T
from mcm.api.names import ANNOTATION_DRAIN_WAVE, LABEL_FORCE_DELETION
from mcm.api.timestamps import parse_rfc3339
from mcm.client.transport import Request
from mcm.controllers.settings import ControllerSettings
from mcm.providers.simulated.virtual_machine import VIRTUAL_MACHINES
from mcm.sandbox.apiserver.store import Change, ChangeType
from mcm.simulation.harness import Simulation, name_of

_POD: Final = re.compile(r"^/api/v1/namespaces/([^/]+)/pods/([^/]+)(/eviction)?$")
_EARLY: Final = 1.0
"""Seconds by which moments of the manager and of this ledger may differ."""
_SEEN_AFTER: Final = 3.0
"""Seconds after which a manager without troubles knows what happened to a pod or a budget."""
_UNHEALTHY: Final = 300.0
_GENTLE: Final = -1


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """One eviction or deletion of a pod that the manager asked for, and that reached the server.
    ``grace`` None: the pod's own."""

    at: float
    pod: str
    uid: str
    verb: str
    status: int
    grace: int | None

    @property
    def accepted(self) -> bool:
        return self.status in (200, 201)

    @property
    def by_force(self) -> bool:
        return self.grace is not None


@final
@dataclass(slots=True)
class Way:
    """A pod with exclusively attached volumes that is on its way off its Node."""

    pod: str
    uid: str
    node: str
    claims: tuple[str, ...]
    volumes: frozenset[str]
    grace: float
    asked_at: float
    by_manager: bool
    gone_at: float | None = None
    detached_at: float | None = None


@final
class DrainLedger:
    """Listens to ``sim`` all the time. ``broken`` tells what should never have been.

    Until ``troubled_until`` the manager's mirrors may be late, or its requests lost: what follows
    from what it sees is not judged before.
    """

    def __init__(self, sim: Simulation, settings: ControllerSettings | None = None) -> None:
        settings = settings or ControllerSettings()
        self._sim = sim
        self._drain_timeout = settings.drain_timeout
        self._detach = settings.pv_detach_timeout.total_seconds()
        self.asked: list[Asked] = []
        self.broken: list[str] = []
        self.troubled_until = 0.0
        self.forced: dict[str, float] = {}
        """When pods of a Node were first deleted by force."""
        self.ended: dict[str, float] = {}
        """Machines that are gone, and when."""
        self.deleted_at: dict[str, float] = {}
        self._pods: dict[str, dict[str, Any]] = {}
        self._here_since: dict[str, float] = {}
        self._ways: dict[str, Way] = {}
        self._zero_since: dict[str, float] = {}
        self._ill_since: dict[str, float] = {}
        self._force_asked: set[str] = set()
        self._timeouts: dict[str, float] = {}
        self._changed_at: dict[str, float] = {}
        """When somebody last changed how long or how hard a machine is drained."""
        self._away_until = 0.0
        sim.server.witnesses.append(self._hear)
        for resource, see in (
            (PODS, self._see_pod),
            (VOLUME_ATTACHMENTS, self._see_attachment),
            (POD_DISRUPTION_BUDGETS, self._see_budget),
            (MACHINES, self._see_machine),
            (NODES, self._see_node),
            (VIRTUAL_MACHINES, self._see_vm),
        ):
            self._subscribe(resource, see)

    # ---- questions -------------------------------------------------------------------------------

    def accepted(self) -> Counter[str]:
        """Count evictions that the server took, by pod UID."""
        return Counter(a.uid for a in self.asked if a.verb == "evict" and a.accepted)

    def by_pod(self, prefix: str) -> Iterator[Asked]:
        """Yield what was asked of pods of that name."""
        return (a for a in self.asked if a.pod.startswith(prefix))

    def trouble(self, seconds: float) -> None:
        """The manager is kept from seeing or asking for so long."""
        self.troubled_until = max(self.troubled_until, self._now + seconds)

    def away(self, seconds: float) -> None:
        """There is no manager for so long. What it sees and asks for is judged nevertheless."""
        self._away_until = max(self._away_until, self._now + seconds)

    def well_after(self, seconds: float) -> None:
        """Nothing is in the manager's way any more, and its mirrors are current by then."""
        self.troubled_until = self._now + seconds

    def due(self, machine: str) -> float:
        """Return when its pods are deleted by force, if it is being deleted."""
        return self.deleted_at[machine] + self._timeouts.get(
            machine, self._drain_timeout.total_seconds()
        )

    # ---- requests --------------------------------------------------------------------------------

    def _hear(self, request: Request, status: int) -> None:
        agent = next((v for k, v in request.headers.items() if k.lower() == "user-agent"), "")
        found = _POD.match(request.path)
        if (
            found is None
            or request.method not in ("POST", "DELETE")
            or agent.split("/")[0] != "mcm"
        ):
            return
        options = json.loads(request.body) if request.body else {}
        options = options.get("deleteOptions", options)
        asked = Asked(
            at=self._now,
            pod=f"{found[1]}/{found[2]}",
            uid=str((options.get("preconditions") or {}).get("uid", "")),
            verb="evict" if found[3] else "delete",
            status=status,
            grace=options.get("gracePeriodSeconds"),
        )
        self.asked.append(asked)
        pod = self._pods.get(asked.uid)
        node = _node_of(pod) if pod is not None else ""
        if asked.by_force and node:
            self._check_force(asked, node)
            self.forced.setdefault(node, self._now)
        if asked.accepted and asked.verb == "evict":
            self._check_repetition(asked)
        if asked.status == 429:
            self._check_budget(asked, pod)
        if asked.accepted and pod is not None and not asked.by_force:
            self._check_wave(asked, pod)
            self._begin_way(pod, by_manager=True)

    def _check_force(self, asked: Asked, node: str) -> None:
        """Force begins with the deadline to the second, unless somebody or something asks for it
        before."""
        due = self.due(node)
        if self._now < due - _EARLY and not self._is_forced_before_its_time(node):
            self._tell(f"{asked.pod} is deleted by force, though that is due at {due:.1f} s")
        at_last = max(due, self._changed_at.get(node, 0), self.troubled_until, self._away_until)
        if node not in self.forced and self._now > at_last + _SEEN_AFTER:
            self._tell(f"{asked.pod} is deleted by force, though that was due at {due:.1f} s")

    def _is_forced_before_its_time(self, node: str) -> bool:
        ill = self._ill_since.get(node)
        return node in self._force_asked or (
            ill is not None and self._now - ill >= _UNHEALTHY - _EARLY
        )

    def _check_repetition(self, asked: Asked) -> None:
        before = [a for a in self.asked[:-1] if a.uid == asked.uid and a.verb == "evict"]
        if self._now >= self.troubled_until and any(a.accepted for a in before):
            self._tell(f"{asked.pod} is evicted twice")

    def _check_budget(self, asked: Asked, pod: Mapping[str, Any] | None) -> None:
        """Nobody asks what is known to be refused."""
        if pod is None or self._now < self.troubled_until:
            return
        for key in self._budgets_of(pod):
            since = self._zero_since.get(key)
            if since is not None and since < self._now - _SEEN_AFTER:
                self._tell(f"{asked.pod} is asked, though {key} allows nothing since {since:.0f} s")

    def _check_wave(self, asked: Asked, pod: Mapping[str, Any]) -> None:
        node, wave = _node_of(pod), _wave_of(pod)
        for uid, other in self._pods.items():
            there = self._now - self._here_since[uid] > _SEEN_AFTER
            if _node_of(other) == node and _wave_of(other) < wave and there and _counts(other):
                self._tell(f"{asked.pod} of wave {wave} goes before {_key(other)}")

    # ---- volumes ---------------------------------------------------------------------------------

    def _begin_way(self, pod: Mapping[str, Any], *, by_manager: bool) -> None:
        uid, node = pod["metadata"]["uid"], _node_of(pod)
        claims, volumes = self._exclusive_of(pod)
        if uid in self._ways or not volumes:
            return
        grace = float(pod["spec"].get("terminationGracePeriodSeconds", 30))
        way = Way(_key(pod), uid, node, claims, volumes, grace, self._now, by_manager=by_manager)
        if by_manager and self._now >= self.troubled_until:
            for other in self._ways.values():
                if other.node == node and self._is_under_way(other):
                    self._tell(f"{way.pod} goes, while {self._told(other)}")
        self._ways[uid] = way

    def _is_under_way(self, way: Way) -> bool:
        """Tell whether it certainly is, as anybody can see who looked a moment ago."""
        if not way.by_manager and self._now - way.asked_at < _SEEN_AFTER:
            return False
        if way.detached_at is None:
            limit = way.asked_at + way.grace + self._detach - _EARLY
            return self._now < limit
        if self._now > way.detached_at + 90 - _EARLY:
            return False
        return any(self._is_coming(pod, way) for pod in self._pods.values())

    def _is_coming(self, pod: Mapping[str, Any], way: Way) -> bool:
        """Tell whether the pod is about to have the volumes attached elsewhere."""
        meta = pod["metadata"]
        return (
            meta["uid"] != way.uid
            and bool(_node_of(pod))
            and _node_of(pod) != way.node
            and "deletionTimestamp" not in meta
            and pod["status"].get("phase") == "Pending"
            and bool(set(_claims_of(pod)) & set(way.claims))
            and self._now - self._here_since[meta["uid"]] > _SEEN_AFTER
            and not any(
                a["spec"]["source"].get("persistentVolumeName") in way.volumes
                and (a.get("status") or {}).get("attached")
                for a in self._objects(VOLUME_ATTACHMENTS)
            )
        )

    def _exclusive_of(self, pod: Mapping[str, Any]) -> tuple[tuple[str, ...], frozenset[str]]:
        claims = _claims_of(pod)
        volumes = {
            c["spec"].get("volumeName", "")
            for c in self._objects(PERSISTENT_VOLUME_CLAIMS)
            if _key(c) in claims and "ReadWriteMany" not in c["spec"]["accessModes"]
        }
        return claims, frozenset(volumes) & self._attached_to(_node_of(pod))

    def _attached_to(self, node: str) -> frozenset[str]:
        return frozenset(
            a["spec"]["source"].get("persistentVolumeName", "")
            for a in self._objects(VOLUME_ATTACHMENTS)
            if a["spec"]["nodeName"] == node
        )

    def _see_attachment(self, _: Change) -> None:
        self._advance()

    def _advance(self) -> None:
        for way in self._ways.values():
            leaves = way.gone_at is not None and way.detached_at is None
            if leaves and not way.volumes & self._attached_to(way.node):
                way.detached_at = self._now

    def _told(self, way: Way) -> str:
        at = ", ".join(
            f"{what} at {when:.1f} s"
            for what, when in (
                ("asked", way.asked_at),
                ("gone", way.gone_at),
                ("detached", way.detached_at),
            )
            if when is not None
        )
        return f"{way.pod} is on its way ({at})"

    # ---- what changes ----------------------------------------------------------------------------

    def _see_pod(self, change: Change) -> None:
        pod: dict[str, Any] = dict(change.stored.body)
        uid = change.stored.uid
        if change.type is ChangeType.DELETED:
            self._begin_way(pod, by_manager=False)
            self._pods.pop(uid, None)
            if (way := self._ways.get(uid)) is not None:
                way.gone_at = self._now
                self._advance()
            return
        before = self._pods.get(uid)
        if before is None or _node_of(before) != _node_of(pod):
            self._here_since[uid] = self._now
        self._pods[uid] = pod
        if change.stored.terminating and _node_of(pod):
            self._begin_way_unless_ours(pod)

    def _begin_way_unless_ours(self, pod: Mapping[str, Any]) -> None:
        """The server marks a pod before it answers: who asked is heard in the same moment."""
        uid, now = pod["metadata"]["uid"], self._now

        def later() -> None:
            if uid not in self._ways and not any(a.uid == uid and a.at == now for a in self.asked):
                self._begin_way(pod, by_manager=False)

        asyncio.get_running_loop().call_soon(later)

    def _see_budget(self, change: Change) -> None:
        key = change.stored.key
        status: Any = change.stored.body.get("status") or {}
        if change.type is ChangeType.DELETED or status.get("disruptionsAllowed", 0) > 0:
            self._zero_since.pop(key, None)
        elif status.get("observedGeneration") == change.stored.metadata.get("generation"):
            self._zero_since.setdefault(key, self._now)
        else:
            self._zero_since.pop(key, None)

    def _see_machine(self, change: Change) -> None:
        machine: Any = change.stored.body
        name = change.stored.name
        if change.type is ChangeType.DELETED:
            self.ended[name] = self._now
            return
        if change.stored.terminating and name not in self.deleted_at:
            self.deleted_at[name] = self._seconds(machine["metadata"]["deletionTimestamp"])
        timeout = machine["spec"].get("drainTimeout")
        seconds = parse_duration(timeout).total_seconds() if timeout else None
        if seconds is not None and self._timeouts.get(name) != seconds:
            self._timeouts[name], self._changed_at[name] = seconds, self._now
        if (machine["metadata"].get("labels") or {}).get(LABEL_FORCE_DELETION) == "True":
            self._force_asked.add(name)

    def _see_node(self, change: Change) -> None:
        node: Any = change.stored.body
        conditions = {c["type"]: c for c in node.get("status", {}).get("conditions", ())}
        ready = conditions.get("Ready")
        if ready is not None and ready["status"] != "True":
            self._ill_since.setdefault(change.stored.name, self._now)
        elif change.type is not ChangeType.DELETED:
            self._ill_since.pop(change.stored.name, None)

    def _see_vm(self, change: Change) -> None:
        """No VM goes while pods run on it that were to be asked first."""
        name = change.stored.name
        if change.type is not ChangeType.DELETED or name not in self.deleted_at:
            return
        if self._is_forced_before_its_time(name) or self._now >= self.due(name) - _EARLY:
            return
        left = [
            _key(pod)
            for uid, pod in self._pods.items()
            if _node_of(pod) == name
            and _counts(pod)
            and self._now - self._here_since[uid] > _SEEN_AFTER
        ]
        if left:
            self._tell(f"VM {name} is deleted under {', '.join(left)}")

    # ---- inside ----------------------------------------------------------------------------------

    def _budgets_of(self, pod: Mapping[str, Any]) -> Iterator[str]:
        labels = (pod["metadata"].get("labels") or {}).items()
        for budget in self._objects(POD_DISRUPTION_BUDGETS):
            wanted = budget["spec"]["selector"]["matchLabels"].items()
            if wanted <= labels:
                yield _key(budget)

    def _objects(self, resource: Resource[T]) -> Iterable[Any]:
        return self._sim.objects(resource)

    def _subscribe(self, resource: Resource[T], see: Any) -> None:
        storage = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        self._sim.server.store.subscribe(see, storage)

    @property
    def _now(self) -> float:
        return self._sim.clock.monotonic()

    def _seconds(self, text: str) -> float:
        moment: datetime = parse_rfc3339(text)
        return self._now - (self._sim.clock.now() - moment).total_seconds()

    def _tell(self, text: str) -> None:
        self.broken.append(f"{self._now:.1f} s: {text}")


def _key(obj: Mapping[str, Any]) -> str:
    return f"{obj['metadata']['namespace']}/{name_of(dict(obj))}"


def _node_of(pod: Mapping[str, Any]) -> str:
    return str(pod["spec"].get("nodeName", ""))


def _claims_of(pod: Mapping[str, Any]) -> tuple[str, ...]:
    names = (v.get("persistentVolumeClaim") for v in pod["spec"].get("volumes") or ())
    return tuple(f"{pod['metadata']['namespace']}/{n['claimName']}" for n in names if n)


def _wave_of(pod: Mapping[str, Any]) -> int:
    return int((pod["metadata"].get("annotations") or {}).get(ANNOTATION_DRAIN_WAVE, "0"))


def _counts(pod: Mapping[str, Any]) -> bool:
    """Tell whether a drain waits for it: the histories know no other exceptions."""
    owners = pod["metadata"].get("ownerReferences") or ()
    if any(owner["kind"] == "DaemonSet" for owner in owners):
        return False
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
