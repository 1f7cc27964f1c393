"""SIGTERM and SIGINT, as an operating system sends them."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PATIENCE = 40.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


"""Seconds: far more than anything here takes, far less than what it would wait for by itself."""

WORKER = """
import asyncio
from mcm.process import run_to_completion

async def main(stop):
    print("begun", flush=True)
    try:
        await stop.wait()
        print("asked", flush=True)
        {work}
    finally:
        print("closed", flush=True)

run_to_completion(main)
"""
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:{port}"}}}}]
users: [{{name: u, user: {{}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    """Run a Python program whose standard output and error are one stream of lines."""
    process = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if word in line:
            return
    raise AssertionError(f"ended before {word!r}: {''.join(seen)}")


def rest_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.read()


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_ends_it_in_order(signum: signal.Signals) -> None:
    with running("-c", WORKER.format(work="await asyncio.sleep(0)")) as process:
        read_until(process, "begun")
        process.send_signal(signum)
        assert process.wait(PATIENCE) == 0
        assert rest_of(process) == "asked\nclosed\n"


def test_the_second_signal_ends_it_at_once_and_still_closes_what_is_open() -> None:
    with running("-c", WORKER.format(work="await asyncio.sleep(1e6)")) as process:
        read_until(process, "begun")
        process.send_signal(signal.SIGTERM)
        read_until(process, "asked")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert rest_of(process) == "closed\n", "and leaves no traceback"


@pytest.mark.parametrize("signals", [1, 2])
def test_a_manager_that_waits_for_its_first_answer_obeys(signals: int, tmp_path: Path) -> None:
    """The server takes the connection and says nothing: each check would wait for its time-out."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(port=silent.getsockname()[1]))
        with running(
            *("-m", "mcm", "run", f"--target-kubeconfig={kubeconfig}"),
            *("--address=127.0.0.1", f"--port={free_port()}"),
        ) as process:
            read_until(process, "metrics on")
            silent.settimeout(PATIENCE)
            connection, _ = silent.accept()
            with connection:
                for _ in range(signals):
                    process.send_signal(signal.SIGTERM)
                assert process.wait(PATIENCE) in ((0,) if signals == 1 else (0, 130))
            text = rest_of(process)
        assert "stopped" in text
        assert "Traceback" not in text and "Unclosed" not in text, text


@pytest.mark.parametrize("module", ["mcm.cli", "click", "mcm.launcher.launcher"])
def test_an_interrupt_while_it_still_loads_ends_it_without_a_word(module: str) -> None:
    program = f"""
import os, signal, sys
from mcm.__main__ import main

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
sys.argv = ["mcm", "start"]
main()
"""
    with running("-c", program) as process:
        said = rest_of(process)
        assert process.wait(PATIENCE) == -signal.SIGINT
    assert said == ""
