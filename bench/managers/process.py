"""A manager's process, or processes, and the CPU and memory that they use.

It gets a session of its own, so that whatever it starts is counted with it and ended with it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, final

from bench.managers import usage
from bench.managers.usage import Usage

_STOP_WITHIN: Final = 30.0


class ManagerEnded(Exception):
    """It ended by itself; the text holds the end of its log."""


@final
class ManagerProcess:
    """One running manager. ``log`` gets its output."""

    def __init__(
        self, name: str, arguments: Sequence[str], *, env: Mapping[str, str], log: Path
    ) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                list(arguments),
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def check(self) -> None:
        """Raise :class:`ManagerEnded` unless it runs."""
        code = self._process.poll()
        if code is not None:
            raise ManagerEnded(f"the manager {self.name} ended with {code}:\n{self.tail()}")

    def usage(self) -> Usage:
        """Read what its processes use, all together."""
        return usage.usage_of(usage.session(self.pid))

    def forget_peak(self) -> None:
        """Let the peak begin anew with what is resident now."""
        for each in usage.session(self.pid):
            usage.forget_peak(each)

    def tail(self, lines: int = 20) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    async def stop(self) -> None:
        """End it, at first as an orderly stop does, and whatever else is left of its session."""
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self._process.wait, _STOP_WITHIN)
        self.kill()

    def kill(self) -> None:
        """End all of its session at once."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)
