"""A driver that does not heed its end must not keep the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

_HEAD = """
import asyncio, logging, threading
from mcm.forced_exit import ForcedExit
from mcm.leaderelection import LeadershipLost

logging.basicConfig()

async def stubborn():
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass

async def swallows():
    asyncio.create_task(stubborn(), name="create_machine machine ns/m")
    await asyncio.sleep(0)

async def blocks():
    asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)
    await asyncio.sleep(0)

async def obeys():
    asyncio.create_task(asyncio.Event().wait(), name="obedient")
    await asyncio.sleep(0)

async def loses_the_lease():
    await swallows()
    raise LeadershipLost("not leading: it is held by another")

def run(main):
    with ForcedExit(0.5) as forced_exit, asyncio.Runner() as runner:
        runner.run(forced_exit.after(main()))
"""


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _HEAD + script],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("main", "code", "told"),
    [
        ("swallows", 0, "something does not end: create_machine machine ns/m"),
        ("blocks", 0, "something does not end: a thread"),
        ("loses_the_lease", 1, "(after LeadershipLost: not leading: it is held by another)"),
    ],
)
def test_a_process_ends_whatever_a_driver_does(main: str, code: int, told: str) -> None:
    ended = run(f"run({main})")
    assert (ended.returncode, told in ended.stderr) == (code, True), ended.stderr


def test_what_ends_by_itself_is_not_forced_to() -> None:
    ended = run("run(obeys)\nimport time\ntime.sleep(1)\nprint('alive')")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "alive\n", "")


def test_errors_still_come_out() -> None:
    script = "async def main():\n    raise ValueError('broken')\nrun(main)"
    ended = run(script)
    assert ended.returncode == 1
    assert "ValueError: broken" in ended.stderr
    assert "exiting although" not in ended.stderr


def test_the_process_of_the_manager_is_held_to_that() -> None:
    script = (
        "from mcm.process import run_to_completion\n"
        "async def main(stop):\n    await swallows()\n"
        "run_to_completion(main)"
    )
    ended = run(script)
    assert ended.returncode == 0
    assert "create_machine machine ns/m" in ended.stderr
