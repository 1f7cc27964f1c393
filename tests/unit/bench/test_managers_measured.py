"""Whoever is measured is started as it was said, watched with all it starts, and ended."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bench.managers.command import BadCommand, ours, parsed
from bench.managers.process import ManagerEnded, ManagerProcess
from bench.managers.queues import QueueDepths, read_depths
from mcm.clock import SystemClock

_CONFIG = Path("/the/kubeconfig")


def test_ours_is_started_as_a_user_would_with_fifty_workers_and_no_limit() -> None:
    arguments = list(ours(["--v=4"]).arguments(_CONFIG, "ns", 1234))
    assert arguments[1:4] == ["-m", "mcm", "run"]
    assert {
        "--control-kubeconfig=/the/kubeconfig",
        "--target-kubeconfig=/the/kubeconfig",
        "--namespace=ns",
        "--provider=instant",
        "--concurrent-syncs=50",
        "--machine-concurrent-syncs=50",
        "--kube-api-qps=0",
        "--port=1234",
        "--v=4",
    } <= set(arguments)


def test_another_gets_what_it_has_placeholders_for() -> None:
    command = parsed("go=a --kubeconfig={kubeconfig} -n {namespace} & b {kubeconfig}; wait")
    assert command.name == "go"
    shell, flag, line = command.arguments(_CONFIG, "ns", 1)
    assert (shell, flag) == ("/bin/sh", "-c")
    assert line == "a --kubeconfig=/the/kubeconfig -n ns & b /the/kubeconfig; wait"


def test_ours_may_have_flags_of_its_own() -> None:
    assert "--max-in-flight=8" in parsed("mcm --max-in-flight=8").line


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "NAME=COMMAND"),
        ("./manager --kubeconfig {kubeconfig}", "NAME=COMMAND"),
        ("go=", "NAME=COMMAND"),
        ("go=manager", "{kubeconfig}"),
        ("go=manager {kubeconfig} {nonsense}", "{nonsense}"),
        ("go=manager {kubeconfig} {", "brace"),
        ("../x=manager {kubeconfig}", "NAME=COMMAND"),
    ],
)
def test_a_command_that_cannot_be_meant_is_refused_by_name(text: str, what: str) -> None:
    with pytest.raises(BadCommand, match="--manager") as refused:
        parsed(text)
    assert what in str(refused.value)


@asynccontextmanager
async def _process(tmp_path: Path, *command: str) -> AsyncIterator[ManagerProcess]:
    process = ManagerProcess("it", command, env=dict(os.environ), log=tmp_path / "log")
    try:
        yield process
    finally:
        process.kill()


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    now = SystemClock().monotonic
    deadline = now() + seconds
    while not condition():
        if now() > deadline:
            return False
    return True


_BUSY = (
    "import time\nwhile time.process_time() < {}: pass\nprint('done', flush=True)\ntime.sleep(60)"
)


@pytest.mark.skipif(not Path("/proc").exists(), reason="there is no /proc to read from")
async def test_cpu_and_memory_of_all_it_has_started_count(tmp_path: Path) -> None:
    one, two = (f'{sys.executable} -c "{_BUSY.format(cpu)}"' for cpu in (0.3, 0.5))
    line = f"{one} & {two} & wait"
    async with _process(tmp_path, "/bin/sh", "-c", line) as process:
        log = tmp_path / "log"
        assert _within(60, lambda: log.read_text().count("done") == 2)
        used = process.usage()
        assert 0.75 <= used.cpu_seconds < 5
        assert used.resident_bytes > 2 * 2**22
        assert used.peak_bytes >= used.resident_bytes
        process.forget_peak()
        assert process.usage().peak_bytes <= used.peak_bytes


@pytest.mark.skipif(not Path("/proc").exists(), reason="there is no /proc to look at")
@pytest.mark.parametrize("obstinate", [False, True])
async def test_nothing_is_left_of_it(tmp_path: Path, obstinate: bool) -> None:
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " if obstinate else ""
    child = f'{sys.executable} -c "{deaf}print(7, flush=True); import time; time.sleep(60)"'
    async with _process(tmp_path, "/bin/sh", "-c", f"{child} & sleep 0.01; {child}") as process:
        assert _within(30, lambda: (tmp_path / "log").read_text().count("7") == 2)
        if obstinate:
            process.kill()
        else:
            await process.stop()
        assert _within(10, lambda: process.usage().resident_bytes == 0)


async def test_one_that_ended_is_told_with_its_last_words(tmp_path: Path) -> None:
    async with _process(tmp_path, "/bin/sh", "-c", "echo no such flag; exit 2") as process:

        def runs_no_more() -> bool:
            process.check()
            return False

        with pytest.raises(ManagerEnded, match=r"(?s)it ended with 2.*no such flag"):
            _within(10, runs_no_more)


def test_depths_of_both_managers_queues_are_read() -> None:
    text = (
        "# TYPE mcm_workqueue_depth gauge\n"
        'mcm_workqueue_depth{name="machine"} 3\n'
        'mcm_workqueue_depth{name="machineset"} 0\n'
        'workqueue_depth{controller="x",name="node"} 2\n'
        'workqueue_adds_total{name="node"} 9\n'
    )
    assert read_depths(text) == {"machine": 3, "node": 2}


def test_depths_of_a_phase_are_sums_since_it_began() -> None:
    queues = QueueDepths("http://nowhere", period=1.0)
    queues.samples += [(9.0, {"a": 5}), (10.5, {"a": 1, "b": 2}), (11.0, {}), (20.0, {"a": 9})]
    assert queues.between(10.0, 12.0) == [(0.5, 3), (1.0, 0)]
