"""``mcm run`` as a process of its own, with leases brisk enough for a test."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Self, final

from mcm.options import LeaderElection

BRISK = LeaderElection(
    lease_duration=timedelta(seconds=8),
    renew_deadline=timedelta(seconds=6),
    retry_period=timedelta(seconds=1),
)


@final
class Replica:
    """Use as a context manager; leaving it kills the process. ``log`` is what it said so far."""

    def __init__(
        self,
        folder: Path,
        kubeconfig: Path,
        *,
        port: int,
        namespace: str,
        election: LeaderElection = BRISK,
    ) -> None:
        self._log = folder / f"mcm-{port}.log"
        self._command = [
            *(sys.executable, "-m", "mcm", "run"),
            f"--target-kubeconfig={kubeconfig}",
            f"--namespace={namespace}",
            *("--address=127.0.0.1", f"--port={port}"),
            f"--leader-elect-lease-duration={election.lease_duration.seconds}s",
            f"--leader-elect-renew-deadline={election.renew_deadline.seconds}s",
            f"--leader-elect-retry-period={election.retry_period.seconds}s",
        ]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        environment = {k: v for k, v in os.environ.items() if "KUBECONFIG" not in k}
        output = self._stack.enter_context(self._log.open("wb"))
        self._process = subprocess.Popen(
            self._command, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        self._stack.enter_context(self._process)
        self._stack.callback(self._process.kill)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    @property
    def leads(self) -> bool:
        """Whether it has begun to work. Raises AssertionError if it has ended."""
        assert self._process.poll() is None, f"it ended by itself: {self.log}"
        return "leading: " in self.log

    @property
    def waits(self) -> bool:
        """Whether it has seen that others hold both leases."""
        return self.log.count(" is held by ") - self.log.count(" is held by nobody") >= 2

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(30) == 0, self.log

    def kill(self) -> None:
        """As ``kill -9``: it says no more to anybody."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
