"""Whether a live view can be shown: on a terminal that can, where its library is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def live_console() -> Console | None:
    """Return the console for a live view; None: print lines instead."""
    try:
        from rich.console import Console
    except ModuleNotFoundError:  # it comes with the extra mcm[sandbox]
        return None
    console = Console()
    return console if console.is_terminal and not console.is_dumb_terminal else None
