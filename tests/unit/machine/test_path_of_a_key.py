"""The functions that a machine's key passes from a watch's line to a patch are as documented."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import pytest

from mcm.api.machine import MACHINES
from mcm.client.transport import Request
from mcm.workqueue.state import QueueState
from tests.unit.machine.bench import NAMESPACE, bench, on_bench

DOCUMENT = Path(__file__).parents[3] / "docs" / "architecture.md"
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
            found.append(f"{module}:{frame.f_code.co_qualname}")
        frame = frame.f_back
    return found[::-1]


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
