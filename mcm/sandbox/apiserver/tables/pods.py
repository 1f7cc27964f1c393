"""How a pod is summed up in a line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.tables.ages import age_of
from mcm.sandbox.apiserver.tables.columns import AGE, NAME, NONE, Column, View, wide

_TERMINAL = ("Succeeded", "Failed")


@final
@dataclass(slots=True)
class _Summary:
    ready: int = 0
    total: int = 0
    status: str = ""
    restarts: int = 0
    last_restart: str = ""

    def add_restarts(self, container: JSONObject) -> None:
        self.restarts += _int(container.get("restartCount"))
        finished = _state(container, "terminated", of="lastState").get("finishedAt")
        self.last_restart = max(self.last_restart, str(finished or ""))


def summarise(view: View) -> _Summary:
    """Derive READY, STATUS and RESTARTS by kubectl's rules: the least healthy container counts."""
    summary = _Summary(
        total=view.size("spec", "containers"),
        status=view.text("status", "reason") or view.text("status", "phase"),
    )
    if _condition(view, "PodScheduled").get("reason") == "SchedulingGated":
        summary.status = "SchedulingGated"
    sidecars = {
        c.get("name")
        for c in view.objects("spec", "initContainers")
        if c.get("restartPolicy") == "Always"
    }
    summary.total += len(sidecars)
    initialised = _sum_up_init(view, summary, sidecars)
    if initialised or _is_true(view, "Initialized"):
        _sum_up_running(view, summary, sidecars)
    if view.terminating and view.text("status", "reason") == "NodeLost":
        summary.status = "Unknown"
    elif view.terminating and view.text("status", "phase") not in _TERMINAL:
        summary.status = "Terminating"
    return summary


def _sum_up_init(view: View, summary: _Summary, sidecars: set[object]) -> bool:
    """Look at the init containers in order up to the first unfinished; return whether all are."""
    planned = view.size("spec", "initContainers")
    for index, container in enumerate(view.objects("status", "initContainerStatuses")):
        summary.add_restarts(container)
        terminated = _state(container, "terminated")
        if terminated and not terminated.get("exitCode"):
            continue
        if container.get("name") in sidecars and container.get("started"):
            summary.ready += bool(container.get("ready"))
            continue
        waiting = _state(container, "waiting").get("reason")
        if terminated:
            summary.status = f"Init:{_end_of(terminated)}"
        elif waiting and waiting != "PodInitializing":
            summary.status = f"Init:{waiting}"
        else:
            summary.status = f"Init:{index}/{planned}"
        return False
    return True


def _sum_up_running(view: View, summary: _Summary, sidecars: set[object]) -> None:
    summary.restarts, summary.last_restart = 0, ""
    init = view.objects("status", "initContainerStatuses")
    _count_restarts(summary, (c for c in init if c.get("name") in sidecars))
    containers = view.objects("status", "containerStatuses")
    _count_restarts(summary, containers)
    running = 0
    for container in reversed(containers):
        terminated = _state(container, "terminated")
        waiting = _state(container, "waiting").get("reason")
        if waiting:
            summary.status = str(waiting)
        elif terminated:
            summary.status = _end_of(terminated)
        elif container.get("ready"):
            running += 1
    summary.ready += running
    if summary.status == "Completed" and running:
        summary.status = "Running" if _is_true(view, "Ready") else "NotReady"


def _count_restarts(summary: _Summary, containers: Iterable[JSONObject]) -> None:
    for container in containers:
        summary.add_restarts(container)


def _end_of(terminated: JSONObject) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{_int(terminated.get('exitCode'))}"


def _state(container: JSONObject, name: str, *, of: str = "state") -> JSONObject:
    states = container.get(of)
    state = states.get(name) if isinstance(states, dict) else None
    return state if isinstance(state, dict) else {}


def _condition(view: View, kind: str) -> JSONObject:
    found = (c for c in view.objects("status", "conditions") if c.get("type") == kind)
    return next(found, {})


def _is_true(view: View, kind: str) -> bool:
    return _condition(view, kind).get("status") == "True"


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0


def _restarts(view: View) -> str:
    summary = summarise(view)
    if not summary.restarts or not summary.last_restart:
        return str(summary.restarts)
    return f"{summary.restarts} ({age_of(summary.last_restart, view.now)} ago)"


def _ready(view: View) -> str:
    summary = summarise(view)
    return f"{summary.ready}/{summary.total}"


def _address(view: View) -> object:
    addresses = view.objects("status", "podIPs")
    return (addresses[0].get("ip") if addresses else view.text("status", "podIP")) or NONE


def _gates(view: View) -> str:
    gates = [str(g.get("conditionType")) for g in view.objects("spec", "readinessGates")]
    return f"{sum(_is_true(view, gate) for gate in gates)}/{len(gates)}" if gates else NONE


POD_COLUMNS: tuple[Column, ...] = (
    NAME,
    Column("Ready", _ready),
    Column("Status", lambda view: summarise(view).status),
    Column("Restarts", _restarts),
    AGE,
    wide("IP", _address),
    wide("Node", lambda view: view.text("spec", "nodeName", missing=NONE)),
    wide("Nominated Node", lambda view: view.text("status", "nominatedNodeName", missing=NONE)),
    wide("Readiness Gates", _gates),
)
