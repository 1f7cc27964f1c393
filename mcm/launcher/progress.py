"""The fleet on a terminal: one table, redrawn when something changed, with the log above it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from types import TracebackType
from typing import TextIO, cast, final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mcm.api.core import NODES, Node
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES, Machine, MachineDeployment
from mcm.clock import Clock
from mcm.manager import Manager

_MOST_MACHINES = 15
_COLOURS = {
    "Running": "green",
    "Pending": "yellow",
    "Terminating": "magenta",
    "Failed": "red",
    "CrashLoopBackOff": "red",
    "Unknown": "yellow",
}


@final
class ProgressView:
    """A context manager around the live display; ``observe`` points it at a manager's mirrors."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._console = Console()
        self._manager: Manager | None = None
        self._live = Live(
            console=self._console,
            get_renderable=self._render,
            refresh_per_second=2,
            redirect_stdout=True,
            redirect_stderr=True,
        )

    @property
    def log_stream(self) -> TextIO:
        """Where log lines go so that they scroll above the table."""
        return cast("TextIO", _ConsoleStream(self._console))

    def observe(self, manager: Manager) -> None:
        self._manager = manager

    def __enter__(self) -> ProgressView:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.stop()

    def _render(self) -> Group | Text:
        if self._manager is None:
            return Text("starting …")
        control = self._manager.control_informers
        target = self._manager.target_informers
        deployments = control.store(MACHINE_DEPLOYMENTS).list()
        machines = control.store(MACHINES).list()
        nodes = target.store(NODES).list() if target else ()
        return Group(
            *(_headline(d) for d in deployments), summary(machines, nodes), _table(machines)
        )


@final
class _ConsoleStream:
    """The part of a text stream that a log handler needs."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def write(self, text: str) -> None:
        if text.strip():
            self._console.print(text.rstrip("\n"), markup=False, highlight=False, soft_wrap=True)

    def flush(self) -> None:
        """Nothing is held back."""


def _headline(deployment: MachineDeployment) -> Text:
    status = deployment.status
    return Text(
        f"machinedeployment/{deployment.metadata.name}  desired {deployment.spec.replicas}  "
        f"current {status.replicas}  updated {status.updated_replicas}  "
        f"available {status.available_replicas}",
        style="bold",
    )


def summary(machines: Iterable[Machine], nodes: Iterable[Node]) -> Text:
    """One line that counts machines by phase and Nodes by readiness."""
    phases = Counter(m.phase or "new" for m in machines)
    ready = Counter(_is_ready(n) for n in nodes)
    counted = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items()))
    return Text(f"machines: {counted or 'none'}   nodes: {ready[True]} Ready, {ready[False]} not")


def _is_ready(node: Node) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)


def _table(machines: Iterable[Machine]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("MACHINE", "PHASE", "CLASS", "NODE", "LAST OPERATION"):
        table.add_column(column, no_wrap=True)
    ordered = sorted(machines, key=lambda m: m.metadata.name)
    for machine in ordered[:_MOST_MACHINES]:
        phase = machine.phase or "new"
        table.add_row(
            machine.metadata.name,
            Text(phase, style=_COLOURS.get(phase, "")),
            machine.spec.class_.name,
            machine.node_name,
            machine.status.last_operation.description[:70],
        )
    if len(ordered) > _MOST_MACHINES:
        table.add_row(f"… and {len(ordered) - _MOST_MACHINES} more")
    return table
