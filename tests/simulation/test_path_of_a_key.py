"""The functions a key passes from watch line to patch, as `docs/architecture.md` lists them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import pytest

from mcm.api.meta import JSONObject
from mcm.client.transport import Request, Response
from mcm.sandbox import samples
from mcm.simulation.harness import Simulation
from mcm.simulation.transport import FaultyTransport
from mcm.simulation.virtualtime import run_virtual
from mcm.workqueue.queue import WorkQueue

ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"
LENGTH_BEFORE = 25
"""How many functions it was before the wings were recut."""

_FLOORS = ("mcm.client", "mcm.informers", "mcm.controllers")
_QUEUE = "mcm.workqueue"


def test_the_documented_path_of_a_key_is_the_one_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    up, down = _observed(monkeypatch)
    assert [*up, *down] == _documented()


def test_the_path_is_shorter_than_it_was_and_no_step_goes_back_up() -> None:
    path = _documented()
    assert len(path) < LENGTH_BEFORE
    turn = path.index(f"{_QUEUE}.queue.WorkQueue.add")
    up, down = path[:turn], path[turn + 2 :]
    assert [_floor(f) for f in up] == sorted(_floor(f) for f in up)
    assert [_floor(f) for f in down] == sorted((_floor(f) for f in down), reverse=True)
    for leg in (up, down):
        modules = [_module(function) for function in leg]
        entered = [m for m, before in zip(modules, ["", *modules], strict=False) if m != before]
        assert len(entered) == len(set(entered)), "a module is left and entered again"


def _observed(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """Drive one machine that a user makes; return how its key came in, and its VM's ID out."""
    up: list[str] = []
    down: list[str] = []
    add, get, send = WorkQueue.add, WorkQueue.get, FaultyTransport.request

    def watched_add(queue: WorkQueue[str], key: str, *, priority: int = 0) -> None:
        if key == "default/solo" and queue.name == "machine" and not up:
            up.extend([*_stack(), _name_of(add), _name_of(get)])
        add(queue, key, priority=priority)

    async def watched_send(transport: FaultyTransport, request: Request) -> Response:
        if request.path.endswith("/machines/solo") and b"providerID" in request.body and not down:
            down.extend(_stack())
        return await send(transport, request)

    monkeypatch.setattr(WorkQueue, "add", watched_add)
    monkeypatch.setattr(FaultyTransport, "request", watched_send)

    async def main() -> None:
        async with Simulation(seed=3) as sim:
            *others, deployment = sorted(
                samples.load(), key=lambda m: m["kind"] == "MachineDeployment"
            )
            await sim.apply(others)
            await sim.pass_time(30)
            await sim.apply([_machine_of(deployment)])
            await sim.until(lambda: sim.running() == 1, within=120)

    run_virtual(main)
    return up, down


def _machine_of(deployment: JSONObject) -> JSONObject:
    """Return a machine on its own as the deployment's template has it."""
    spec = deployment["spec"]
    assert isinstance(spec, dict)
    return {
        "apiVersion": deployment["apiVersion"],
        "kind": "Machine",
        "metadata": {"name": "solo", "namespace": "default"},
        "spec": spec["template"]["spec"],
    }


def _documented() -> list[str]:
    """Read the numbered list under the heading "The path of a key"."""
    text = ARCHITECTURE.read_text()
    section = text.split("## The path of a key\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\d+\. `([\w.<>]+)`", section, re.MULTILINE)


def _stack() -> list[str]:
    """Return our functions that are running, the outermost first, without this test's own."""
    found: list[str] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith("mcm.") and not module.startswith("mcm.simulation."):
            found.append(_method(frame) or f"{module}.{frame.f_code.co_qualname}")
        frame = frame.f_back
    return found[::-1]


def _method(frame: FrameType) -> str:
    """Name a method by its object's class, which may have inherited it; empty if it is none."""
    code = frame.f_code
    owner = frame.f_locals.get("self")
    if owner is None or getattr(type(owner), code.co_name, None) is None:
        return ""
    return f"{type(owner).__module__}.{type(owner).__qualname__}.{code.co_name}"


def _name_of(function: object) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"


def _module(function: str) -> str:
    """Return the module's part of a dotted name: all before the first class or function."""
    parts = function.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in sys.modules:
            return ".".join(parts[:length])
    raise AssertionError(f"{function} is in no module that is loaded")


def _floor(function: str) -> int:
    """Return how high a function's room lies: what is read goes up, what is written down."""
    return next(i for i, room in enumerate(_FLOORS) if function.startswith(room))
