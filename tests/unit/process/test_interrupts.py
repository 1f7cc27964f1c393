"""Ctrl-C while ``mcm vm`` waits for a provider, as a terminal sends it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "provider-directory"
PATIENCE = 40.0

WAITING = """
import asyncio, sys
import mcm.vm.command
from mcm import __main__
from mcm.driver import UnsupportedDriver

class Slow(UnsupportedDriver):
    async def get_machine_status(self, request):
        print("called", flush=True)
        await asyncio.Event().wait()

mcm.vm.command.load_provider = lambda name: lambda context: Slow()
sys.argv = ["mcm", *sys.argv[1:]]
__main__.main()
"""


def test_who_interrupts_a_call_to_a_provider_is_told_that_its_end_is_unknown() -> None:
    files = [
        "--machineclass",
        str(EXAMPLE / "class.yaml"),
        "--secret",
        str(EXAMPLE / "secret.yaml"),
    ]
    with subprocess.Popen(
        [sys.executable, "-c", WAITING, "vm", "status", "--machinename=a", *files],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            assert process.stdout.readline() == "called\n"
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 130
        finally:
            process.kill()
        assert process.stderr.read() == (
            "mcm: interrupted: what came of the call is unknown, look with `mcm vm status`\n"
        )
