"""How a drain is shown: lines that tell each news once, and a live view that fits a terminal."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from mcm.drain.result import Cause, PodStanding
from mcm.node_commands.display import Lines, Live, displayed, rendered
from mcm.node_commands.plan_text import described, explained
from mcm.node_commands.progress import Progress

DEADLINE = datetime(2026, 1, 1, 14, tzinfo=UTC)


def standing(pod: str, cause: Cause, detail: str = "", *, lasting: bool = False) -> PodStanding:
    return PodStanding(pod=pod, uid=f"{pod}-uid", cause=cause, detail=detail, lasting=lasting)


def look(*standings: PodStanding, gone: int = 0, blind: str = "") -> Progress:
    return Progress(node="n", standings=standings, gone=gone, deadline=DEADLINE, blind=blind)


HELD = standing("ns/db-0", Cause.HELD_BY_BUDGET, "held back by pod disruption budget ns/b")


def test_a_line_is_told_once_and_again_when_it_changes() -> None:
    lines: list[str] = []
    shown = Lines(lines.append)
    shown.say("node/n cordoned")
    for _ in range(3):
        shown.show(look(HELD))
    shown.show(look(standing("ns/db-0", Cause.REFUSED, "no")))
    shown.show(look())
    shown.show(look(HELD))
    assert [line.split(":")[0] for line in lines] == ["node/n cordoned", *["pod ns/db-0"] * 3]
    assert "ns/b" in lines[1] and "refused" in lines[2]


def test_numbers_that_change_are_no_news() -> None:
    lines: list[str] = []
    shown = Lines(lines.append)
    for allowed in (0, 1, 0):
        detail = f"held back by pod disruption budget ns/b (allows {allowed} disruptions)"
        shown.show(look(standing("ns/a", Cause.HELD_BY_BUDGET, detail)))
    assert lines == ["pod ns/a: held back by pod disruption budget ns/b (allows 0 disruptions)"]


def test_what_every_drain_goes_through_is_no_news() -> None:
    lines: list[str] = []
    ordinary = (Cause.LEAVING, Cause.AWAITING_LANE, Cause.AWAITING_WAVE)
    Lines(lines.append).show(look(*(standing(f"ns/{c.name}", c) for c in ordinary)))
    assert lines == []


def test_blindness_is_told_when_it_begins_and_ends() -> None:
    lines: list[str] = []
    shown = Lines(lines.append)
    for progress in (
        look(HELD),
        look(blind="pods: silent"),
        look(blind="pods: silent"),
        look(HELD),
    ):
        shown.show(progress)
    assert [line.split(":")[0] for line in lines] == [
        "pod ns/db-0",
        "nothing can be observed",
        "all can be observed again",
    ]


@pytest.mark.parametrize("width", [20, 80, 200])
def test_the_live_view_fits_and_shows_the_worst_first(width: int) -> None:
    ordinary = [standing(f"ns/web-{n}", Cause.LEAVING) for n in range(20)]
    broken = standing("ns/z", Cause.BUDGET_MISCONFIGURED, "x" * 300, lasting=True)
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(rendered(look(*ordinary, broken, gone=3)))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    assert lines[2].startswith("  ns/z")
    assert "and 9 more" in lines[-1]
    assert len(lines) == 2 + 12 + 1


def test_lines_go_above_the_live_view_as_they_are() -> None:
    console = Console(file=io.StringIO(), width=80)
    live = Live(console)
    console.print(live.render())
    live.say("evicting pod ns/[red]x")
    live.show(look(HELD))
    console.print(live.render())
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert text.startswith("looking …\nevicting pod ns/[red]x\n") and "ns/db-0" in text


def test_without_a_terminal_there_are_lines() -> None:
    with displayed(terminal=False) as display:
        assert isinstance(display, Lines)


@pytest.mark.parametrize("cause", list(Cause))
def test_every_cause_is_explained_in_one_line(cause: Cause) -> None:
    said = explained(standing("ns/a", cause))
    assert said.startswith(cause.value) and "\n" not in said
    assert described(standing("ns/a", cause, "because")).endswith("because")
