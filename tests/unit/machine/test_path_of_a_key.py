"""The functions that a machine's key passes from a watch's line to a patch are as documented."""

from __future__ import annotations

import re
import sys
from itertools import groupby
from pathlib import Path
from types import FrameType

import pytest

from mcm.api.machine import MACHINES
from mcm.client.transport import Request
from mcm.workqueue.state import QueueState
from tests.unit.machine.bench import NAMESPACE, bench, on_bench

DOCUMENT = Path(__file__).parents[3] / "docs" / "architecture.md"
LENGTH_BEFORE = 21
"""How many functions it was before the wings were recut."""

_FLOORS = ("mcm.client", "mcm.informers", "mcm.controllers", "mcm.workqueue")
"""The rooms on the way, the lowest first; the queue is where it turns."""

_PLAYED = ("mcm.sandbox", "mcm.simulation")


def documented(heading: str) -> list[str]:
    """The functions of the numbered list under a heading."""
    section = DOCUMENT.read_text().split(f"### {heading}\n", 1)[1].split("\n#", 1)[0]
    listed = re.findall(r"^\d+\. `(\S+)`: `(\S+)`", section, re.MULTILINE)
    return [f"mcm.{module}:{name}" for module, name in listed]


def way_here() -> list[str]:
    """The project's functions on the stack, outermost first, coroutines included."""
    frame: FrameType | None = sys._getframe(1)
    found: list[str] = []
    while frame is not None:
        module = str(frame.f_globals["__name__"])
        if module.startswith("mcm.") and not module.startswith(_PLAYED):
            found.append(_method(frame) or f"{module}:{frame.f_code.co_qualname}")
        frame = frame.f_back
    return found[::-1]


def _method(frame: FrameType) -> str:
    """Name a method by its object's class, which may have inherited it; empty if it is none."""
    owner = frame.f_locals.get("self")
    if owner is None or getattr(type(owner), frame.f_code.co_name, None) is None:
        return ""
    return f"{type(owner).__module__}:{type(owner).__qualname__}.{frame.f_code.co_name}"


def test_the_way_is_shorter_than_it_was_and_no_step_of_it_goes_back() -> None:
    up, down = documented("From the watch to the queue"), documented("From the queue to the patch")
    assert len(up) + len(down) < LENGTH_BEFORE
    for way in (up, down[::-1]):
        floors = [next(i for i, r in enumerate(_FLOORS) if f.startswith(r)) for f in way]
        assert floors == sorted(floors)
        modules = [module for module, _ in groupby(f.partition(":")[0] for f in way)]
        assert len(modules) == len(set(modules)), "a module is left and entered again"


@on_bench
async def test_the_way_of_a_key_is_the_documented_one() -> None:
    ways: dict[str, list[str]] = {}
    add = QueueState.add

    def adding(state: QueueState[str], key: str, *, priority: int, now: float) -> int:
        if key == f"{NAMESPACE}/m":
            ways.setdefault("in", way_here())
        return add(state, key, priority=priority, now=now)

    def writing(request: Request) -> None:
        if request.path.endswith("/nodes/node-m"):
            ways.setdefault("out", way_here())

    async with bench() as b:
        await b.make_class()
        await b.running()
        b.transport.before_write = writing
        with pytest.MonkeyPatch.context() as patching:
            patching.setattr(QueueState, "add", adding)
            template = {"metadata": {"labels": {"pool": "x"}}}
            patch = {"spec": {"nodeTemplate": template}}
            await b.client.patch(MACHINES, "m", patch, namespace=NAMESPACE)
            await b.settle()
    assert ways["in"] == documented("From the watch to the queue")
    assert ways["out"] == documented("From the queue to the patch")
