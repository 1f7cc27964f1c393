"""Shows a drain while it runs: live on a terminal, a line for each news else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, final

import click

from mcm.api.timestamps import rfc3339
from mcm.cluster_commands.terminal import live_console
from mcm.drain.result import Cause, PodStanding
from mcm.drain.summary import WORST_FIRST
from mcm.node_commands.plan_text import described
from mcm.node_commands.progress import Display, Progress

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_MOST_PODS: Final = 12
_EXPECTED: Final = frozenset({Cause.LEAVING, Cause.AWAITING_LANE, Cause.AWAITING_WAVE})
"""What every drain goes through: no news."""


@final
class Lines:
    """Prints what has changed, and nothing twice."""

    def __init__(self, print_line: Callable[[str], object] = click.echo) -> None:
        self._print = print_line
        self._told: dict[str, str] = {}
        self._blind = ""

    def say(self, line: str) -> None:
        self._print(line)

    def show(self, progress: Progress) -> None:
        if progress.blind != self._blind:
            self._blind = progress.blind
            self._print(
                f"nothing can be observed: {progress.blind}"
                if progress.blind
                else "all can be observed again"
            )
        if progress.blind:
            return
        told = {s.pod: _news(s) for s in progress.standings if s.cause not in _EXPECTED}
        for standing in progress.standings:
            news = told.get(standing.pod)
            if news is not None and self._told.get(standing.pod) != news:
                self._print(f"pod {standing.pod}: {described(standing)}")
        self._told = told


def _news(standing: PodStanding) -> str:
    """Return what is another when it is worth another line: how much a budget allows changes with
    each pod that comes or goes."""
    numbers = standing.cause is Cause.HELD_BY_BUDGET
    return standing.cause.value if numbers else described(standing)


@final
class Live:
    """Keeps the pods that are left at the bottom of a terminal, and what happened above them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.latest: Progress | None = None

    def say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False)

    def show(self, progress: Progress) -> None:
        self.latest = progress

    def render(self) -> RenderableType:
        from rich.text import Text

        return Text("looking …") if self.latest is None else rendered(self.latest)


def rendered(progress: Progress) -> RenderableType:
    """Return one look as a terminal shows it, however narrow it is."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    left = len({standing.uid for standing in progress.standings})
    total = max(1, progress.gone + left)
    bar = Table.grid(padding=(0, 2), expand=True)
    bar.add_column(ratio=1)
    bar.add_column(no_wrap=True)
    counts = Text(f"{progress.gone} gone  {left} left")
    bar.add_row(ProgressBar(total=total, completed=progress.gone), counts)
    what = "force" if progress.by_force else "until"
    head = f"draining node {progress.node}  {what} {rfc3339(progress.deadline)}"
    lines: list[RenderableType] = [Text(head, no_wrap=True, overflow="ellipsis"), bar]
    if progress.blind:
        lines.append(Text(f"nothing can be observed: {progress.blind}", style="red"))
    ordered = sorted(progress.standings, key=lambda s: (WORST_FIRST.index(s.cause), s.pod))
    for standing in ordered[:_MOST_PODS]:
        style = "" if standing.cause in _EXPECTED else "red" if standing.lasting else "yellow"
        text = f"  {standing.pod}: {described(standing)}"
        lines.append(Text(text, style=style, no_wrap=True, overflow="ellipsis"))
    if len(ordered) > _MOST_PODS:
        lines.append(Text(f"  … and {len(ordered) - _MOST_PODS} more"))
    return Group(*lines)


@contextmanager
def displayed(*, terminal: bool) -> Iterator[Display]:
    """Show it live on a ``terminal``, where the library for that is installed; lines otherwise."""
    console = live_console() if terminal else None
    if console is None:
        yield Lines()
        return
    from rich.live import Live as LiveView

    live = Live(console)
    with LiveView(
        console=console, get_renderable=live.render, refresh_per_second=4, transient=True
    ):
        yield live
