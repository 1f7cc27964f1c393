"""Shows a rollout while it is followed: a progress bar on a terminal, a line for each news else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol, final

import click

from mcm.cluster_commands.terminal import live_console
from mcm.rollout.progress import Progress

if TYPE_CHECKING:
    from rich.console import RenderableType

_MOST_TROUBLES: Final = 8
Show = Callable[[Progress], None]


class Display(Protocol):
    """Is shown one look after the other."""

    def show(self, progress: Progress) -> None: ...


@final
class Lines:
    """Prints what has changed, and nothing twice."""

    def __init__(self, say: Callable[[str], object] = click.echo) -> None:
        self._say = say
        self._message = ""
        self._troubles: dict[str, str] = {}

    def show(self, progress: Progress) -> None:
        if progress.message and progress.message != self._message and not progress.over:
            self._say(progress.message)
            self._message = progress.message
        troubles = dict(progress.troubles)
        for machine, trouble in troubles.items():
            if self._troubles.get(machine) != trouble:
                self._say(f"  {machine}: {trouble}")
        self._troubles = troubles


@final
class Bar:
    """Keeps a bar and the machines in trouble at the bottom of a terminal."""

    def __init__(self) -> None:
        self.latest: Progress | None = None

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

    total = max(1, progress.desired)
    bar = Table.grid(padding=(0, 2), expand=True)
    bar.add_column(ratio=1)
    bar.add_column(no_wrap=True)
    counts = (
        f"{progress.serving}/{progress.desired} new serve  {progress.available} available  "
        f"{progress.old} old"
    )
    bar.add_row(ProgressBar(total=total, completed=min(progress.serving, total)), Text(counts))
    troubles = progress.troubles[:_MOST_TROUBLES]
    lines = [
        Text(f"  {name}: {trouble}", style="red", no_wrap=True, overflow="ellipsis")
        for name, trouble in troubles
    ]
    if len(progress.troubles) > len(troubles):
        lines.append(Text(f"  … and {len(progress.troubles) - len(troubles)} more"))
    said = Text(progress.left, no_wrap=True, overflow="ellipsis")
    return Group(said, bar, *lines)


@contextmanager
def displayed(*, terminal: bool) -> Iterator[Display]:
    """Show a bar on a ``terminal``, where its library is installed; lines otherwise."""
    console = live_console() if terminal else None
    if console is None:
        yield Lines()
        return
    from rich.live import Live

    bar = Bar()
    with Live(
        console=console, get_renderable=bar.render, refresh_per_second=4, transient=True
    ) as live:
        yield bar
        live.refresh()
