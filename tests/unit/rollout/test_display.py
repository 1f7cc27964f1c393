"""What is printed of a rollout that is followed."""

from __future__ import annotations

import builtins
import io
from typing import Any

import pytest
from rich.console import Console

from mcm.rollout.display import Bar, Lines, displayed, rendered
from mcm.rollout.progress import Progress

BEGUN = Progress("begun", 10, left="3 of 10", updated=5, serving=3, available=9, old=4)


def test_nothing_is_printed_twice() -> None:
    said: list[str] = []
    lines = Lines(said.append)
    stuck = Progress("begun", 10, troubles=(("a", "no quota"),))
    worse = Progress("begun", 10, troubles=(("a", "no quota"), ("b", "gone")))
    for progress in (BEGUN, BEGUN, stuck, stuck, worse, BEGUN, stuck):
        lines.show(progress)
    assert said == ["begun", "  a: no quota", "  b: gone", "  a: no quota"]


def test_how_it_ended_is_left_to_whoever_asked() -> None:
    said: list[str] = []
    Lines(said.append).show(Progress("done", 1, done=True))
    assert said == []


def screen(progress: Progress, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(rendered(progress))
    return capture.get().splitlines()


@pytest.mark.parametrize("width", [80, 60, 200])
def test_a_terminal_shows_a_bar_and_each_trouble_on_one_line(width: int) -> None:
    troubles = tuple((f"machine-{n}", "CrashLoopBackOff: " + "long " * 40) for n in range(12))
    lines = screen(Progress("", 10, left="3 of 10", serving=3, troubles=troubles), width)
    assert all(len(line) <= width for line in lines)
    assert lines[0].startswith("3 of 10")
    assert "3/10 new serve" in lines[1]
    assert "━" in lines[1]
    assert len(lines) == 2 + 8 + 1
    assert lines[-1].strip() == "… and 4 more"


def test_a_deployment_of_no_machines_has_a_bar_too() -> None:
    assert "0/0 new serve" in screen(Progress("", 0), 80)[1]


def test_without_a_terminal_lines_are_printed() -> None:
    with displayed(terminal=False) as display:
        assert isinstance(display, Lines)


def test_without_its_library_lines_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_rich(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "rich":
            raise ModuleNotFoundError(name="rich")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_rich)
    with displayed(terminal=True) as display:
        assert isinstance(display, Lines)


def test_the_bar_shows_the_latest_look() -> None:
    bar = Bar()
    assert "looking" in str(bar.render())
    bar.show(BEGUN)
    assert bar.latest is BEGUN
